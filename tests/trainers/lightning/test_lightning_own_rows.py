"""A module with a datamodule is evaluated by its test_step, and predicts by its predict_step."""

import lightning.pytorch as pl
import numpy as np
import pytest
import torch
from pyarrow import parquet

import rtrain
from rtrain.cli.app import run as command
from rtrain.errors import ConfigError, PredictionError
from rtrain.prediction import open_checkpoint
from rtrain.prediction.own_rows import write_predicted

MODULE = """
import lightning.pytorch as pl
import torch


class Data(pl.LightningDataModule):
    def __init__(self, size=16, count=40, unknown=False):
        super().__init__()
        self.size, self.count = size, count

    def setup(self, stage):
        draws = torch.Generator().manual_seed({"fit": 0, "validate": 0, "test": 1, "predict": 2}[stage])
        self.x = torch.randn(self.count, 3, generator=draws)
        self.y = (self.x.sum(1) > 0).long()

    def train_dataloader(self):
        return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(self.x, self.y), batch_size=self.size)

    val_dataloader = test_dataloader = train_dataloader

    def predict_dataloader(self):
        return torch.utils.data.DataLoader(self.x, batch_size=self.size)


class WithoutTest(Data):
    test_dataloader = pl.LightningDataModule.test_dataloader


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 2)

    def forward(self, x):
        return self.layer(x)

    def training_step(self, batch, index):
        return torch.nn.functional.cross_entropy(self(batch[0]), batch[1])

    def test_step(self, batch, index):
        self.log("test_accuracy", (self(batch[0]).argmax(1) == batch[1]).float().mean())

    def validation_step(self, batch, index):
        self.log("val_loss", torch.nn.functional.cross_entropy(self(batch[0]), batch[1]))

    def predict_step(self, batch, index):
        found = self(batch).softmax(1)
        return {"kind": found.argmax(1), "probabilities": found}

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


class Plain(Net):
    predict_step = pl.LightningModule.predict_step


class Wrong(Net):
    def test_step(self, batch, index):
        raise ValueError("no test today")

    def predict_step(self, batch, index):
        return self(batch)[:-1]


class OnlyFits(Net):
    test_step = pl.LightningModule.test_step
"""


@pytest.fixture(scope="module")
def fit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own_rows")
    (folder / "pyproject.toml").write_text("")
    (folder / "own_rows_net.py").write_text(MODULE)
    (folder / "own.yaml").write_text(
        "trainer:\n  type: lightning\n  module: {_target_: own_rows_net.Net}\n"
        "  datamodule: {_target_: own_rows_net.Data, size: 16}\n  max_epochs: 1\n"
        f"run: {{root_dir: {folder}/runs}}\nscaling: {{num_workers: 0}}\n"
    )
    return lambda name="Net": rtrain.fit(str(folder / "own.yaml"), [f"trainer.module._target_=own_rows_net.{name}"])


@pytest.fixture(scope="module")
def trained(fit):
    return fit()


def by_hand(run, seed, count=40):
    from own_rows_net import Net
    from safetensors.torch import load_file

    net = Net()
    net.load_state_dict(load_file(run.best_checkpoint / "model.safetensors"))
    x = torch.randn(count, 3, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        return net(x), (x.sum(1) > 0).long()


def test_an_evaluation_runs_the_test_step_on_the_test_rows(trained):
    logits, y = by_hand(trained, 1)
    expected = (logits.argmax(1) == y).float().mean().item()
    assert rtrain.evaluate(trained.path) == pytest.approx({"num_rows": 40, "test_accuracy": expected})
    logits, y = by_hand(trained, 0)
    expected = torch.nn.functional.cross_entropy(logits, y).item()
    assert rtrain.evaluate(trained.path, split="val") == pytest.approx({"num_rows": 40, "val_loss": expected})


def test_arguments_of_the_datamodule_may_name_other_rows(trained):
    assert (
        rtrain.evaluate(trained.path, ["trainer.datamodule.size=7", "+trainer.datamodule.count=50"])["num_rows"] == 50
    )


def test_a_prediction_writes_what_the_predict_step_returns(trained, tmp_path):
    assert rtrain.predict(trained.path, tmp_path / "out.parquet") == 40
    found = parquet.read_table(tmp_path / "out.parquet")
    expected = by_hand(trained, 2)[0].softmax(1).numpy()
    assert found.column_names == ["kind", "probabilities"]
    np.testing.assert_array_equal(found["kind"], expected.argmax(1))
    np.testing.assert_allclose(np.stack(found["probabilities"].to_numpy()), expected, rtol=1e-6)


LOADERS = {
    "batch size by place": lambda x, of: of(x, 7),
    "all by place": lambda x, of: of(x, 7, False, None, None, 0, None, False, True),
    "a last batch that is left out in training": lambda x, of: of(x, 7, drop_last=True),
    "a sampler of its own": lambda x, of: of(x, 7, sampler=range(len(x))),
    "processes": lambda x, of: of(x, 7, num_workers=1, multiprocessing_context="spawn", timeout=60, prefetch_factor=3),
    "two loaders": lambda x, of: [of(x[:20], 7), of(x[20:], 9)],
    "a subclass": lambda x, of: type("Own", (of,), {})(x, batch_size=7),
}


@pytest.mark.parametrize("loader", LOADERS.values(), ids=LOADERS)
def test_each_way_to_make_a_loader_predicts_all_rows(trained, tmp_path, monkeypatch, loader):
    def predict_step(self, batch, index, dataloader_idx=0):
        return {"probabilities": self(batch).softmax(1)}

    def predict_dataloader(self):
        return loader(self.x, torch.utils.data.DataLoader)

    monkeypatch.setattr("own_rows_net.Net.predict_step", predict_step)
    monkeypatch.setattr("own_rows_net.Data.predict_dataloader", predict_dataloader)
    assert rtrain.predict(trained.path, tmp_path / "out.parquet") == 40
    expected = by_hand(trained, 2)[0].softmax(1).numpy()
    found = parquet.read_table(tmp_path / "out.parquet")
    np.testing.assert_allclose(np.stack(found["probabilities"].to_numpy()), expected, rtol=1e-5)


def test_predictions_of_a_batch_are_written_before_the_next_one_is_predicted(trained, monkeypatch):
    from own_rows_net import Net

    predict, steps, written = Net.predict_step, [], []
    monkeypatch.setattr(Net, "predict_step", lambda self, *batch: (steps.append(0), predict(self, *batch))[1])

    def write(table):
        written.append((len(steps), table.num_rows))

    assert write_predicted(open_checkpoint(trained.path, (), "best"), None, write) == 40
    assert written == [(1, 16), (2, 16), (3, 8)]


def test_an_output_that_can_not_be_written_is_no_fault_of_the_predict_step(trained):
    def write(table):
        raise OSError("no space left")

    with pytest.raises(OSError, match=r"^no space left$"):
        write_predicted(open_checkpoint(trained.path, (), "best"), None, write)


def test_without_a_predict_step_forward_predicts(fit, tmp_path):
    run = fit("Plain")
    rtrain.predict(run.path, tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text().startswith('{"prediction": [')


def test_the_command_shows_the_metrics(trained, capsys):
    assert command(["evaluate", str(trained.path)]) == 0
    shown = capsys.readouterr().out
    assert "test_accuracy" in shown
    assert "trainer.datamodule, split test" in shown


def test_what_can_not_run_is_named(fit, trained, tmp_path, monkeypatch):
    run = fit("Wrong")
    with pytest.raises(PredictionError, match="test_step failed: ValueError: no test today") as caught:
        rtrain.evaluate(run.path)
    assert "own_rows_net.py:" in caught.value.hint
    with pytest.raises(PredictionError, match="predict_step has 15 rows; the batch has 16"):
        rtrain.predict(run.path, tmp_path / "out.csv")
    only_fits = fit("OnlyFits")
    with pytest.raises(ConfigError, match="OnlyFits has no test_step") as caught:
        rtrain.evaluate(only_fits.path)
    assert 'split="val"' in caught.value.hint
    assert rtrain.evaluate(only_fits.path, split="val")["num_rows"] == 40
    with pytest.raises(ConfigError, match="num_workers=2 has no effect"):
        rtrain.evaluate(trained.path, ["num_workers=2"])
    with pytest.raises(ConfigError, match="test or val"):
        rtrain.evaluate(trained.path, split="train")
    with pytest.raises(ConfigError, match="predict_dataloader"):
        rtrain.predict(trained.path, tmp_path / "out.csv", split="test")
    monkeypatch.setattr("own_rows_net.Data.predict_dataloader", pl.LightningDataModule.predict_dataloader)
    for split in (None, "val"):
        with pytest.raises(ConfigError, match="Data has no predict_dataloader") as caught:
            rtrain.predict(trained.path, tmp_path / "out.csv", split=split)
        assert "val_dataloader" in caught.value.hint
    with pytest.raises(ConfigError, match="test_dataloader"):
        rtrain.evaluate(trained.path, ["trainer.datamodule._target_=own_rows_net.WithoutTest"])
    assert list(tmp_path.iterdir()) == []
