"""The tests of tables are made of their rows."""

from acting_tables import pytest_generate_tests

__all__ = ["pytest_generate_tests"]
