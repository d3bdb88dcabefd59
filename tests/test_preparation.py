"""What is found out before anything starts."""

import numpy as np
import pytest

from rtrain.errors import ConfigError
from rtrain.preparation import check_shares
from rtrain.testing.small_data import in_memory


def test_more_workers_than_rows_to_train_on_are_refused():
    rows = {"x": np.zeros((3, 2), "float32"), "y": np.zeros(3, "int64")}
    dataset = in_memory({"train": rows}, "classification", num_classes=2)
    for fits in (0, 1, 3):
        check_shares(dataset, fits)
    check_shares(None, 8)
    with pytest.raises(ConfigError, match=r"4 workers can't share 3 rows of the split 'train'\.\nTry: num_workers=3"):
        check_shares(dataset, 4)
