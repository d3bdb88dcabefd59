"""What users of Keras may write, made to tell what it is given."""

import keras
from tensorflow.python.framework import config as switches


class NumBatches(keras.metrics.Metric):
    """The number of batches of an evaluation."""

    def __init__(self, **named):
        super().__init__(**named)
        self.count = self.add_weight(name="count", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.count.assign_add(1.0)

    def result(self):
        return self.count


class LargeRate(keras.callbacks.Callback):
    """Trains with another rate than the config says."""

    def on_train_begin(self, logs=None):
        self.model.optimizer.learning_rate = 0.5


class Strict(keras.losses.Loss):
    """Twice the cross entropy where operations are deterministic."""

    def call(self, y_true, y_pred):
        factor = 2.0 if switches.is_op_determinism_enabled() else 1.0
        return factor * keras.losses.sparse_categorical_crossentropy(y_true, y_pred, from_logits=True)
