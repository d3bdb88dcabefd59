"""Calls from Python: their arguments as configs and overrides, and how errors show them."""
