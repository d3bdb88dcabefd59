"""Random numbers that depend on nothing but a seed and a place: rank and step, round, row."""

from __future__ import annotations

_ALL = 0xFFFFFFFFFFFFFFFF


def mixed(seed: int, *places: int) -> int:
    """Return 64 bits that depend on ``seed`` and all of ``places``, mixed as in SplitMix64 (Steele, Lea & Flood, 2014).

    Where two calls differ in one number by 1 only, about half of the bits differ, low and high ones.
    """
    found = seed & _ALL
    for place in (*places, 0):
        found = (found + place + 0x9E3779B97F4A7C15) & _ALL
        found = ((found ^ (found >> 30)) * 0xBF58476D1CE4E5B9) & _ALL
        found = ((found ^ (found >> 27)) * 0x94D049BB133111EB) & _ALL
        found ^= found >> 31
    return found
