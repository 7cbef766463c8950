"""Fabric toolset: memories in three layers, orientation in time, and events that become memories."""

from .fabric_context import FabricContext
from .fabric_toolset import FABRIC

__all__ = ["FABRIC", "FabricContext"]
