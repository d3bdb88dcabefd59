import pytest
from torch_runs import join

from rtrain.testing.ranks import RankProcesses


@pytest.fixture(scope="session")
def world():
    """Two ranks."""
    two = RankProcesses(join)
    yield two
    two.close()


@pytest.fixture(autouse=True)
def no_other_threads():
    """Train on one thread; what torch is set to is put back by the loop itself."""
    import torch

    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    yield
    assert (torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()) == before
