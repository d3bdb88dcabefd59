"""What users may write for ``dataset.function``."""

import numpy as np
from source_files import table


def rows(shift=0):
    """Return a table."""
    return table(shift)


def other_rows():
    """Return another one."""
    return table(1)


def arrays(shift=0):
    """Return arrays by name."""
    x = np.random.default_rng(shift).normal(size=(60, 4))
    return {"x": x, "y": np.arange(60) % 3, "z": np.arange(60) % 4}


def other_arrays():
    """Return others."""
    return arrays(1)


def texts(shift=0):
    """Return a table of texts."""
    number = np.arange(60)
    return {
        "text": np.array([f"{'good' if row % 2 else 'bad'} film {row + shift}" for row in number]),
        "other": np.array([f"text {row}" for row in number]),
        "y": number % 2,
        "z": number % 3,
    }


def other_texts():
    """Return others."""
    return texts(1)
