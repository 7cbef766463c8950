"""ONNX Runtime, kept from telling anyone about it.

From 1.31 on its wheels for Linux and macOS write a device id into the user's cache and send events to their maker
(microsoft/onnxruntime#27379), unless the environment says otherwise before the first import. So nothing else in
Palaver imports it.
"""

import os
from importlib import import_module
from typing import Any

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

onnxruntime: Any = import_module("onnxruntime")
