"""Imports without most of the searches for garbage that Python makes meanwhile: a tenth of a short run's time."""

import gc

USUAL = gc.get_threshold()
FEWER = (10_000, *USUAL[1:])


def search_less() -> None:
    """Have Python look for garbage less often: imports leave next to none."""
    gc.set_threshold(*FEWER)


def search_as_usual() -> None:
    """Take it back, before code of the user's runs, whose garbage may hold large arrays."""
    if gc.get_threshold() == FEWER:
        gc.set_threshold(*USUAL)
