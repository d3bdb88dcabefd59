"""The keys of the trainer."""

from dataclasses import dataclass


@dataclass(kw_only=True)
class Conf:
    """What to do wrong."""

    fault: str = ""
    """One of those that ``loop.py`` asks for; nothing is wrong without."""

    num_steps: int = 5
    """Steps of gradient descent; each takes all rows."""
