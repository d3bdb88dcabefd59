import pytest
from keras_runs import join

from rtrain.testing.two_ranks import TwoRanks


@pytest.fixture(scope="session")
def ranks():
    """Two ranks."""
    two = TwoRanks(join)
    yield two
    two.close()
