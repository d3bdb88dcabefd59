import pytest
from jax_runs import World


@pytest.fixture(scope="session")
def world():
    """Two ranks."""
    two = World()
    yield two
    two.close()
