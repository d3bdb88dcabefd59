"""The torch trainer on a GPU: precisions, compiling, strategies on one GPU, rows that the GPU has no memory for."""

import numpy as np
import pytest
from gpu_runs import DEVICE, PROBE, TrainsOnGpu, accuracy, devices, fit, resume

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(180)]
SHORT = ("mlp", "trainer.max_epochs=4", PROBE)


class TestMlp(TrainsOnGpu):
    config = "mlp"

    def test_rows_are_on_the_gpu(self, run):
        assert [entry["rows"] for entry in devices(run)] == [DEVICE, DEVICE]


class TestResnet(TrainsOnGpu):
    config = "resnet"
    overrides = (PROBE, "~trainer.scheduler")  # its length would follow from that of the run


@pytest.fixture(scope="module")
def on_cpu(project):
    return fit(project, *SHORT, device="cpu")


@pytest.mark.parametrize(
    "override",
    [
        "trainer.precision=bf16",
        pytest.param("trainer.precision=fp16", marks=pytest.mark.skipif(DEVICE == "cpu", reason="fp16 needs a GPU")),
        "trainer.compile=true",
        "trainer.ema_decay=0.9",
        "trainer.deterministic=false",
    ],
)
def test_each_mode_learns_what_float32_learns_on_a_cpu(project, on_cpu, override):
    run = fit(project, *SHORT, override)
    assert devices(run) == [{"model": DEVICE, "rows": DEVICE}]
    assert accuracy(run) == pytest.approx(accuracy(on_cpu), abs=0.03)


@pytest.mark.skipif(DEVICE == "cpu", reason="fp16 needs a GPU")
def test_the_scale_of_fp16_is_resumed(project):
    begun = fit(project, *SHORT, "trainer.precision=fp16", "trainer.max_epochs=2")
    whole = fit(project, *SHORT, "trainer.precision=fp16")
    run = resume(begun, "trainer.max_epochs=4")
    assert run.metrics["val/loss"] == pytest.approx(whole.metrics["val/loss"], rel=1e-3)


def test_rows_that_the_gpu_has_no_memory_for_stay_in_main_memory(project, on_cpu, monkeypatch):
    """As of a GPU whose memory is in use: no share of what is free is enough for the rows."""
    from rtrain.trainers.torch.inputs import loader

    monkeypatch.setattr(loader, "GPU_SHARE", 0.0)
    run = fit(project, *SHORT)
    assert devices(run) == [{"model": DEVICE, "rows": DEVICE}]
    assert accuracy(run) == pytest.approx(accuracy(on_cpu), abs=0.03)


def test_streamed_rows_reach_the_gpu(project, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2000, 4))
    rows = np.column_stack([x, x.sum(1) > 0])
    np.savetxt(tmp_path / "rows.csv", rows, ["%.6f"] * 4 + ["%d"], ",", header="a,b,c,d,y", comments="")
    data = ("dataset=csv", f"dataset.path={tmp_path}/rows.csv", "dataset.label=y", "dataset.memory=stream")
    run = fit(project, *SHORT, *data)
    assert devices(run) == [{"model": DEVICE, "rows": DEVICE}]
    assert run.metrics["test/accuracy"] > 0.9
