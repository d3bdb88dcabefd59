"""What is found out before anything starts."""

import numpy as np
import pytest

from rtrain.datasets.base import Dataset, DatasetInfo, ResidentSplit
from rtrain.errors import ConfigError
from rtrain.preparation import check_shares


def test_more_workers_than_rows_to_train_on_are_refused():
    rows = ResidentSplit({"x": np.zeros((3, 2), "float32"), "y": np.zeros(3, "int64")})
    info = DatasetInfo(
        name="tiny",
        task="classification",
        input_shape=(2,),
        num_classes=2,
        num_rows={"train": 3},
        fingerprint="",
        memory="resident",
        memory_reason="",
    )
    dataset = Dataset(info, {"train": rows})
    for fits in (0, 1, 3):
        check_shares(dataset, fits)
    check_shares(None, 8)
    with pytest.raises(ConfigError, match=r"4 workers can't share 3 rows of the split 'train'\.\nTry: num_workers=3"):
        check_shares(dataset, 4)
