"""XGBoost on a GPU: ``device=cuda``."""

import pytest
from gpu_runs import DEVICE, PROBE, TrainsOnGpu, devices, fit

import rtrain

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(180)]
TABLE = (
    *("xgboost", "dataset=sklearn", "dataset.name=make_classification", "dataset.split.test=0.5"),
    "dataset.arguments={n_samples: 200000, n_features: 20, n_informative: 8, flip_y: 0.1}",
)


class TestXGBoost(TrainsOnGpu):
    config = "xgboost"
    short, long = "trainer.num_boost_round=10", "trainer.num_boost_round=20"


def test_the_area_under_the_curve_is_that_of_a_cpu(project):
    runs = [fit(project, *TABLE, PROBE, device=device) for device in (DEVICE, "cpu")]
    assert [devices(run)[0]["model"] for run in runs] == [DEVICE, "cpu"]
    there, here = (rtrain.evaluate(run.path, split="test")["auc"] for run in runs)
    assert here > 0.9
    assert there == pytest.approx(here, abs=1e-3)
