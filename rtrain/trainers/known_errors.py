"""What to try after errors of user code that say too little themselves, and which of them come again for sure."""

from __future__ import annotations

import re
from itertools import chain

from rtrain.config.did_you_mean import to_try
from rtrain.errors import text_of
from rtrain.trainers.registry import plugins

_HINTS = ((r"No module named '([\w.]+)'", to_try("pip install {0}", "or check the spelling of the import")),)
"""Patterns of messages, and what to try; plugins have more of them."""
_OF_CODE = (
    *(AssertionError, AttributeError, ImportError, ModuleNotFoundError, IndexError, KeyError, LookupError, NameError),
    *(UnboundLocalError, NotImplementedError, RecursionError, SyntaxError, IndentationError, TypeError, ValueError),
    *(ZeroDivisionError, ArithmeticError, OverflowError, RuntimeError),
)
"""Classes, not what is derived from them: a ``JSONDecodeError`` may be a file that another process writes just now."""
_OF_MACHINES = re.compile(r"cuda|cudnn|cublas|hip |driver|device|timed? ?out|resource|temporar|network|connect", re.I)

_OUT_OF_MEMORY = re.compile(
    r"MemoryError|OutOfMemory|out of memory|can't allocate memory|cannot allocate memory|not enough memory"
    r"|resource_?exhausted|bad_alloc|unable to allocate|low on memory|memory pressure|\bOOM\b",
    re.IGNORECASE,
)
LESS_MEMORY = (
    "Use less memory: a smaller trainer.batch_size, streamed data (dataset.memory=stream), or fewer "
    "workers on a machine (num_workers, scaling.placement_strategy=SPREAD)."
)
LESS_GPU_MEMORY = "Use less GPU memory: a smaller trainer.batch_size, a smaller model, or half precision."


def what_to_try(error_type: str, message: str) -> str | None:
    """Return what to do about an error by its class and message, where that is known."""
    if is_out_of_memory(error_type, message):
        return LESS_GPU_MEMORY if re.search(r"cuda|\bGPU_\d", message, re.IGNORECASE) else LESS_MEMORY
    for pattern, hint in chain((one for _, plugin in plugins() for one in plugin.hints), _HINTS):
        if found := re.search(pattern, message):
            return hint.format(*found.groups())
    return None


def is_of_code(error: BaseException) -> bool:
    """Tell whether an error that the user's code raised is its own mistake, and not that of a machine or a service."""
    return type(error) in _OF_CODE and not _OF_MACHINES.search(text_of(error))


def is_out_of_memory(error_type: str, message: str) -> bool:
    """Return whether an error says that memory of the machine, or of a GPU, was not enough."""
    return bool(_OUT_OF_MEMORY.search(f"{error_type}: {message}"))
