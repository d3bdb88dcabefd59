"""The user's predictors: an error in one is shown with its name and line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rtrain.config.targets.importing import raised_at
from rtrain.errors import PredictionError, RtrainError, first_line


@contextmanager
def predicting(name: str) -> Iterator[None]:
    """Turn what the block raises into an error of a prediction.

    Args:
        name: What is called, for messages.

    Raises:
        PredictionError: It fails, or wants to end the process.
    """
    try:
        yield
    except RtrainError:
        raise
    except SystemExit as error:
        raise PredictionError(f"{name} ended the process: exit({error.code})", raised_at(error)) from error
    except Exception as error:
        raise PredictionError(
            f"{name} failed: {type(error).__name__}: {first_line(error)}", raised_at(error)
        ) from error
