"""Two processes train what one process trains."""

import keras
import keras_runs
import pytest
from epochs_contract import EpochsOnTwoRanks, fit_rank
from keras_runs import make_conf

from rtrain.config.targets import allow_list

HERE = __name__


@keras.saving.register_keras_serializable()
class Balanced(keras.losses.Loss):
    """Rows of rare classes among those that it sees at once count more."""

    def call(self, y_true, y_pred):
        losses = keras.losses.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)
        same = keras.ops.equal(keras.ops.reshape(y_true, (-1, 1)), keras.ops.reshape(y_true, (1, -1)))
        return losses / keras.ops.mean(keras.ops.cast(same, "float32"), axis=1)


class TestTwoRanks(EpochsOnTwoRanks):
    runs, trainer = keras_runs, "tensorflow"

    def test_a_loss_that_normalises_by_itself_is_refused(self, tmp_path, ranks):
        with pytest.raises(AssertionError, match="TrainingError"):
            ranks.run(_fit, tmp_path, make_conf(loss={"_target_": f"{HERE}.Balanced"}))


def _fit(rank, folder, conf):
    allow_list.FRAMEWORKS = allow_list.FRAMEWORKS | {HERE}
    return fit_rank(rank, keras_runs.fit, folder, conf)
