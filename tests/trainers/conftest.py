"""Let the tests of all trainers import the modules beside this file."""

import sys
from pathlib import Path

import pytest

pytest.register_assert_rewrite("boosting_tests", "epoch_tests", "exactness", "not_finite_tests")
sys.path.insert(0, str(Path(__file__).parent))
