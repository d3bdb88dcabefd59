"""Models of Keras."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
from keras import layers


def mlp(input_shape: Sequence[int], num_classes: int, hidden: Sequence[int] = (128, 128), dropout: float = 0.0) -> Any:
    """Return a multilayer perceptron of flattened rows, with ReLU, that gives logits.

    Args:
        input_shape: Shape of one row.
        num_classes: Outputs; 1 for a regression.
        hidden: Width of each hidden layer.
        dropout: Share of activations that are zeroed while training.
    """
    model = keras.Sequential([layers.Input(tuple(input_shape)), layers.Flatten()])
    for width in hidden:
        model.add(layers.Dense(width, activation="relu"))
        if dropout:
            model.add(layers.Dropout(dropout))
    model.add(layers.Dense(num_classes))
    return model


def cnn(
    input_shape: Sequence[int],
    num_classes: int,
    channels: Sequence[int] = (32, 64),
    dropout: float = 0.5,
    padding: str = "same",
) -> Any:
    """Return the convolutional network of Keras's MNIST example, for small images, that gives logits.

    Args:
        input_shape: (height, width, channels).
        num_classes: Outputs; 1 for a regression.
        channels: Channels of each 3 x 3 convolution; each is followed by the maximum over 2 x 2 pixels.
        dropout: Share of activations before the last layer that are zeroed while training.
        padding: ``same``, or ``valid`` as in the example, which takes two pixels off at each convolution.
    """
    model = keras.Sequential([layers.Input(tuple(input_shape))])
    for width in channels:
        model.add(layers.Conv2D(width, 3, activation="relu", padding=padding))
        model.add(layers.MaxPooling2D(2))
    model.add(layers.Flatten())
    model.add(layers.Dropout(dropout))
    model.add(layers.Dense(num_classes))
    return model
