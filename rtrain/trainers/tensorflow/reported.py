"""Models that ``ray.train.tensorflow.keras.ReportCheckpointCallback`` reports from a train loop, of Keras 2 or 3."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from rtrain.process.variables import variables_set
from rtrain.trainers.loops.boosting.margins import probabilities_of_margins
from rtrain.trainers.loops.custom.predictors.reported import Columns, ReportedModel, array_of
from rtrain.trainers.tensorflow.world import LEGACY


def load_model(model: ReportedModel) -> Callable[[Columns], Any]:
    """Return what predicts with a model: probabilities of classes, also where its last layer gives logits."""
    with _keras_of(model.file) as keras:
        model.import_loop()  # registers the user's classes
        found = keras.models.load_model(str(model.file), compile=False, safe_mode=False)
    names = list(getattr(found, "input_names", None) or ())
    activation = getattr(getattr(found.layers[-1], "activation", None), "__name__", "")
    is_logits = model.info.task == "classification" and activation == "linear"

    def predict(columns: Columns) -> Any:
        by_name = names and set(names) <= set(columns)
        several = {name: columns[name] for name in names} if by_name else columns
        takes_one = not by_name and ("x" in columns or len(found.inputs or ()) == 1)
        output = found.predict(array_of(columns) if takes_one else several, verbose=0)
        if not is_logits or not isinstance(output, np.ndarray):
            return output
        return probabilities_of_margins(output[:, 0] if output.shape[1:] == (1,) else output)

    return predict


@contextmanager
def _keras_of(file: Path) -> Iterator[Any]:
    """Give the package that wrote a file, which is ``tf.keras`` in the block: its versions don't read each other's."""
    with zipfile.ZipFile(file) as archive:
        is_second = str(json.loads(archive.read("metadata.json"))["keras_version"]).startswith("2.")
    with variables_set({LEGACY: "1" if is_second else "0"}):
        if is_second:
            import tf_keras as found
        else:
            import keras as found
        yield found
