"""Tests that the author of a plugin inherits."""

import pytest

# So that a failure shows the values that it compared.
pytest.register_assert_rewrite(f"{__name__}.trainer_contract", f"{__name__}.logger_contract")
