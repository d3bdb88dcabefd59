"""Tests that the author of a plugin inherits."""
