"""Why a word that was tried is refused: whether its key is to blame, and the reason in plain words."""

from __future__ import annotations

from omegaconf.errors import OmegaConfBaseException

from rtrain.config.compose.resolve import MissingValuesError
from rtrain.config.diagnostics.omegaconf_messages import plain_words
from rtrain.config.validate import InvalidError, Problem
from rtrain.errors import IdleKeyError, first_line


def blames(error: Exception | None, key: str) -> bool:
    """Return whether a failed check has to do with ``key``; that other keys are wrong too doesn't count."""
    if isinstance(error, InvalidError):
        return any(_is_about(one, key) for one in error.problems)
    if isinstance(error, MissingValuesError):  # a choice may ask for more
        return key in error.keys
    return error is not None and key.rpartition(".")[2] in str(error)


def reason(error: Exception | None, key: str) -> str | None:
    """Return what a failed check says about the value of ``key``; None if it says nothing about it.

    Args:
        error: What the check raised.
        key: With dots, from the root.
    """
    if isinstance(error, IdleKeyError):
        return f"{first_line(error)}. {(error.hint or '').strip()}".rstrip()
    if isinstance(error, InvalidError):
        said = (f"{one.key}: {one.message}" for one in error.problems if _is_about(one, key) and one.owner is None)
        return next(said, None)
    cause = omegaconf_error(error)
    words = plain_words(cause.msg or "") if cause is not None else ""
    return f"{key}: {words}" if words.startswith(("must be", "can't be")) else None


def omegaconf_error(error: BaseException | None) -> OmegaConfBaseException | None:
    """Return the error of OmegaConf's from which ``error`` was raised; None if there is none."""
    while error is not None:
        if isinstance(error, OmegaConfBaseException):
            return error
        error = error.__cause__ or error.__context__
    return None


def _is_about(problem: Problem, key: str) -> bool:
    found = problem.key.replace("/", ".")
    return f"{key}.".startswith(f"{found}.") or f"{found}.".startswith(f"{key}.")
