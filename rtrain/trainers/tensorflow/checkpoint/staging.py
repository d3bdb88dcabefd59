"""Copies of a model's numbers, so that they can be written while training changes the numbers themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
import tensorflow as tf


class Stager:
    """Copies the values of variables, each time into the same room: new memory costs more than the copying does."""

    def __init__(self, variables: Iterable[Any]) -> None:
        self._variables = list(variables)
        self._room: list[np.ndarray] = []

    def take(self) -> None:
        """Copy the values as they are now, in place of those before."""
        values = [np.asarray(one.value.read_value()) for one in self._variables]
        self._room = self._room or [np.empty_like(value) for value in values]
        for room, value in zip(self._room, values, strict=True):
            np.copyto(room, value)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Have each variable show its copy to this thread, and to no other."""
        shown = list(zip(self._variables, self._room, strict=True))
        with tf.device("CPU"), keras.StatelessScope(shown, initialize_variables=False):
            yield
