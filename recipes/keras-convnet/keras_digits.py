"""A small convolutional network for small pictures."""

import keras
from keras import layers


def convnet(input_shape, num_classes):
    """Return a model from pictures, (height, width, channels), to one logit per class."""
    return keras.Sequential(
        [
            keras.Input(input_shape),
            layers.Conv2D(32, 3, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 3, padding="same", activation="relu"),
            layers.Flatten(),
            layers.Dropout(0.3),
            layers.Dense(num_classes),
        ]
    )
