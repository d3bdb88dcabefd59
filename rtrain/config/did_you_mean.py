"""The known word that a wrong one was probably meant to be."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache

CUTOFF = 0.6
MOST = 12
"""Most words that a hint lists."""
START_OF_HINT = r"(?m)^ *(did you mean|try):"
"""Matches the first words of the lines that :func:`did_you_mean` and :func:`to_try` write."""
LONG, LONG_CUTOFF = 7, 0.8
"""Letters from which on a part of a name may have several wrong ones, and how alike it still has to be."""


def closest(word: str, known: Iterable[str], cutoff: float = CUTOFF) -> str | None:
    """Return the known word closest to ``word``; one that is a single edit away always counts as close, in any case.

    Numbers are part of a name's meaning: ``resnet34`` is neither ``resnet`` nor ``resnet18``, nor is ``l2`` ``l1``.
    """
    words = [one for one in dict.fromkeys(known) if one != word]
    near = _nearest(word, [one for one in words if not _is_other_number(word, one)])
    if near is not None:
        return near
    numbers = set(re.findall(r"\d+", word))
    folded = {one.casefold(): one for one in reversed(words) if numbers <= set(re.findall(r"\d+", one))}
    found = get_close_matches(word.casefold(), folded, 1, cutoff)
    return folded[found[0]] if found else None


def alike(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that ``word`` is a misspelling of: part by part, so that other names don't match.

    ``max_steps`` is a misspelling of neither ``max_epochs`` nor ``save_steps``, though most of its letters are theirs,
    and ``beta_1`` is none of ``beta_2``.
    """
    digits = set(re.findall(r"\d", word))
    words = [one for one in dict.fromkeys(known) if one != word and all(digit in one for digit in digits)]
    near = _nearest(word, words)
    if near is not None:
        return near
    return max((one for one in words if _parts_alike(word, one)), key=lambda one: _ratio(word, one), default=None)


def nearest_or_all(word: str, known: Iterable[str], cutoff: float = CUTOFF) -> str:
    """Return the hint of an error that names the known word closest to ``word``; if none is close, what there is."""
    words = list(dict.fromkeys(known))
    near = closest(word, words, cutoff)
    if near is not None:
        return did_you_mean(_visible(near))
    return there_are(words)


def there_are(known: Iterable[str], most: int = MOST) -> str:
    """Return the line that names what there is, as all messages say it."""
    words = list(dict.fromkeys(known))
    return f"available: {', '.join(map(_visible, words[:most]))}{', ...' if len(words) > most else ''}"


def _visible(name: str) -> str:
    """Return a name in quotes if it begins or ends with a blank, as some columns' do."""
    return name if name == name.strip() else repr(name)


def did_you_mean(*meant: object) -> str:
    """Return the line that names what was probably meant, as all messages say it."""
    return f"did you mean: {' or '.join(map(str, meant))}"


def to_try(attempt: str, otherwise: str | None = None) -> str:
    """Return the line that names a command, or words of one, that would do, as all messages say it.

    Args:
        attempt: Nothing but what can be pasted: a session makes words of a command whole.
        otherwise: One more line, for what else would do.
    """
    return f"try: {attempt}" if otherwise is None else f"try: {attempt}\n{otherwise}"


def use_instead(ours: str) -> str:
    """Return the sentence that names what rtrain has for something that it does not take, as all messages say it."""
    return f"Use {ours} instead."


@lru_cache(maxsize=20_000)
def plain(name: str) -> str:
    """Return a name as names are compared: ``maxEpochs``, ``max-epochs`` and ``MAX_EPOCHS`` are one."""
    return re.sub(r"[\W_]", "", name.casefold())


def one_edit(left: str, right: str) -> bool:
    """Return whether one letter added, dropped, changed or swapped with the next one turns ``left`` into ``right``."""
    if abs(len(left) - len(right)) > 1 or len(left) < 2:
        return False
    start = _same_start(left, right)
    rest_left, rest_right = left[start:], right[start:]
    swapped = rest_left[:2] == rest_right[1::-1] and rest_left[2:] == rest_right[2:] and len(rest_left) > 1
    return swapped or rest_left[1:] == rest_right[1:] or rest_left[1:] == rest_right or rest_left == rest_right[1:]


def _is_other_number(left: str, right: str) -> bool:
    """Return whether two names differ in their digits, of which both have equally many."""
    digits, others = re.findall(r"\d", left), re.findall(r"\d", right)
    return digits != others and len(digits) == len(others)


def _nearest(word: str, words: list[str]) -> str | None:
    """Return the word that is the same but for case and separators, else one that is a single edit away."""
    bare = plain(word)
    for similar in (
        [one for one in words if plain(one) == bare],
        [one for one in words if one_edit(word, one)],
        [one for one in words if one_edit(bare, plain(one))],
    ):
        if similar:
            return max(similar, key=lambda one: _same_start(word, one))
    return None


def _parts_alike(left: str, right: str) -> bool:
    parts, others = _parts(left), _parts(right)
    return len(parts) == len(others) and all(map(_part_alike, parts, others))


def _part_alike(left: str, right: str) -> bool:
    if left == right or (min(len(left), len(right)) > 2 and (left.startswith(right) or right.startswith(left))):
        return True
    if min(len(left), len(right)) < LONG:
        return min(len(left), len(right)) > 2 and (one_edit(left, right) or _is_mixed_up(left, right))
    return _ratio(left, right) >= LONG_CUTOFF


def _is_mixed_up(left: str, right: str) -> bool:
    """Return whether two words have the same letters in another order, all but the first one: ``ephocs``."""
    return len(left) > 4 and left[0] == right[0] and sorted(left) == sorted(right)


@lru_cache(maxsize=20_000)
def _parts(name: str) -> tuple[str, ...]:
    """Return the words that a name is made of, in small letters: ``max_epochs``, ``maxEpochs``."""
    return tuple(part.casefold() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name))


def _ratio(left: str, right: str) -> float:
    return SequenceMatcher(None, left.casefold(), right.casefold()).ratio()


def _same_start(left: str, right: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
