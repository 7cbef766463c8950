"""Palaver's repository: the folders below are the sub-packages of `palaver`.

This file lets tools that read imports see the folders as one package. It is not shipped.
"""
