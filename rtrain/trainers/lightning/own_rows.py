"""Evaluate and predict with a module on the rows of its datamodule: Lightning's ``test`` and ``predict``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import lightning.pytorch as pl
import numpy as np
from lightning.pytorch.utilities.data import extract_batch_size
from lightning.pytorch.utilities.exceptions import MisconfigurationException
from lightning.pytorch.utilities.model_helpers import is_overridden
from torch.utils.data import BatchSampler, DataLoader

from rtrain.errors import ConfigError, first_line
from rtrain.trainers.lightning.inputs import with_batches
from rtrain.trainers.lightning.predictor import load_module
from rtrain.trainers.lightning.quiet import quiet
from rtrain.trainers.loops.custom.predictors.outputs import as_columns
from rtrain.trainers.trained import LoadedCheckpoint
from rtrain.trainers.user_code import predicting

Take = Callable[[Mapping[str, np.ndarray]], None]
EVALUATED = {"val": ("validation_step", "val_dataloader"), "test": ("test_step", "test_dataloader")}
"""What Lightning calls for the rows of a split."""
TO_TEST = "Define it, or evaluate the validation rows: --split val"
TO_PREDICT = "Define it to return a loader of the rows to predict, e.g. self.val_dataloader()"
HONOURED = ("precision", "limit_val_batches", "limit_test_batches", "limit_predict_batches")
"""Arguments of training's Trainer that count here too."""


class OwnRows:
    """A module with its datamodule, which have steps and loaders for each way of running them."""

    def __init__(self, trained: LoadedCheckpoint, device: str) -> None:
        self._module = load_module(trained)
        self._data = trained.builder.build(trained.conf.datamodule, "trainer.datamodule")
        self._device, self._given = device, trained.conf.trainer_args

    def evaluate(self, split: str | None) -> tuple[str, int, Mapping[str, float]]:
        """Run ``test_step``, or ``validation_step`` for the split ``val``; return split, rows and what was logged.

        Raises:
            ConfigError: There is no such step or loader.
        """
        if split not in (None, "test", "val"):
            raise ConfigError(f"a datamodule is evaluated on test or val, not on {split}.", "Leave --split out.")
        name, loader = EVALUATED["val" if split == "val" else "test"]
        self._check_has(name, loader, "Write it" if split == "val" else TO_TEST)
        rows = _Rows()
        trainer = self._trainer(rows)
        run = trainer.validate if split == "val" else trainer.test
        with _running(name):
            found = run(self._module, datamodule=self._data, verbose=False)
        return split or "test", rows.num_rows, {key: value for one in found for key, value in one.items()}

    def predict(self, split: str | None, take: Take) -> None:
        """Give ``take`` what ``predict_step`` returns for each batch of ``predict_dataloader``, as columns.

        Raises:
            ConfigError: There is no such loader.
            PredictionError: The step returns no column for its rows.
        """
        self._check_has("predict_step", "predict_dataloader", TO_PREDICT)
        if split is not None:
            message = f"--split {split}: the rows to predict come from predict_dataloader of the datamodule."
            raise ConfigError(message, "Leave --split out.")
        loaders_of = self._data.predict_dataloader
        self._data.predict_dataloader = lambda: _remade(loaders_of())
        try:
            with _running("predict_step"):
                trainer = self._trainer(_Rows(take))
                trainer.predict(self._module, datamodule=self._data, return_predictions=False)
        except _NotTakenError as error:
            raise error.cause from None

    def _check_has(self, step: str, loader: str, hint: str) -> None:
        """Refuse a module without a step, or a datamodule without a loader; each module can predict."""
        for part, name in ((self._module, step), (self._data, loader)):
            if name != "predict_step" and not is_overridden(name, part):
                raise ConfigError(f"{type(part).__name__} has no {name}.", hint)

    def _trainer(self, rows: _Rows) -> pl.Trainer:
        given = {name: self._given[name] for name in HONOURED if name in self._given}
        with quiet():
            return pl.Trainer(
                accelerator="gpu" if self._device == "cuda" else "cpu",
                devices=1,
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                callbacks=[rows],
                **given,
            )


def _remade(loaders: Any) -> Any:
    """Return plain loaders made with their arguments by name: Lightning makes them again, and fails by place."""
    if isinstance(loaders, list | tuple):
        return [_remade(one) for one in loaders]
    batches = loaders.batch_sampler if type(loaders) is DataLoader else None
    return with_batches(loaders, batches, loaders.dataset) if type(batches) is BatchSampler else loaders


class _NotTakenError(BaseException):
    """What takes the predictions failed, and not the step that made them."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(cause)
        self.cause = cause


class _Rows(pl.Callback):
    """Counts the rows of batches, and passes on what is predicted of them."""

    def __init__(self, take: Take | None = None) -> None:
        self.num_rows, self._take = 0, take

    def on_test_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, *_: Any) -> None:
        """Count the rows."""
        self.num_rows += extract_batch_size(batch)

    on_validation_batch_end = on_test_batch_end

    def on_predict_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, *_: Any) -> None:
        """Pass the predictions on."""
        assert self._take is not None
        columns = as_columns(outputs, extract_batch_size(batch), "predict_step")
        try:
            self._take(columns)
        except Exception as error:
            raise _NotTakenError(error) from error


@contextmanager
def _running(step: str) -> Iterator[None]:
    with quiet(), predicting(step):
        try:
            yield
        except MisconfigurationException as error:
            raise ConfigError(f"Lightning can't run {step}: {first_line(error)}") from error
