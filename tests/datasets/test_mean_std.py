from __future__ import annotations

import numpy as np
import pytest

from rtrain.datasets.mean_std import Moments, given_statistics
from rtrain.errors import DatasetError


def moments_of(*chunks):
    moments = Moments()
    for chunk in chunks:
        moments.add(chunk)
    return moments


@pytest.mark.parametrize("offset", [0, 1e6])
def test_chunks_give_the_moments_of_the_whole(offset):
    x = np.random.default_rng(0).standard_normal((1000, 3)) * [1, 10, 0.1] + offset
    moments = moments_of(x[:10], x[10:500], x[500:])
    np.testing.assert_allclose(moments.mean, x.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(moments.std, x.std(axis=0), rtol=1e-7)


def test_bytes_count_as_zero_to_one_per_channel():
    x = np.random.default_rng(0).integers(0, 256, (50, 3, 8, 8), dtype=np.uint8)
    moments = moments_of(x)
    np.testing.assert_allclose(moments.mean, (x / 255).mean(axis=(0, 2, 3)))
    np.testing.assert_allclose(moments.std, (x / 255).std(axis=(0, 2, 3)))


def test_missing_values_are_left_out():
    x = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]])
    assert moments_of(x[:2], x[2:]).mean[0] == 2
    assert np.isnan(moments_of(x).mean[1])


def test_a_constant_has_a_deviation_of_one():
    assert moments_of(np.full((10, 1), 0.1, np.float32)).std == (1.0,)


def test_given_statistics_must_fit_the_channels():
    assert given_statistics(True, 3) is None
    assert given_statistics(False, 3) == ((), ())
    assert given_statistics({"mean": [0.5], "std": [2]}, 1) == ((0.5,), (2.0,))
    with pytest.raises(DatasetError, match="has 1 numbers, but the data has 3"):
        given_statistics({"mean": [0.5], "std": [2]}, 3)
