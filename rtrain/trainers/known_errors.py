"""What to try after errors of user code that say too little themselves, and which of them come again for sure."""

from __future__ import annotations

import re

from rtrain.config.did_you_mean import to_try
from rtrain.errors import text_of

_SHAPES = re.compile(r"mat1 and mat2 shapes cannot be multiplied \((\d+)x(\d+) and (\d+)x(\d+)\)")
_CHANNELS = re.compile(r"expected input\[[^\]]*\] to have (\d+) channels, but got (\d+) channels")
_ON_DEVICES = re.compile(r"all tensors to be on the same device")
_LABEL = re.compile(r"Target (-?\d+) is out of bounds|device-side assert triggered")
_TWICE = re.compile(r"Trying to backward through the graph a second time")
_NO_GRAD = re.compile(r"does not require grad and does not have a grad_fn")
_DTYPES = re.compile(r"(?:must have|to have) the same dtype|expected scalar type (\w+) but found (\w+)")
_LOADER = re.compile(r"DataLoader worker \(pid.*(?:killed by signal|exited unexpectedly)")
_LOGGER = re.compile(r"Cannot use `?(\w+)`? callback with `?Trainer`? that has no logger")
_MODULE = re.compile(r"No module named '([\w.]+)'")

_HINTS = (
    (_SHAPES, "Rows of {1} numbers reach a layer made for {2}: change the layer's in_features, or reshape before it."),
    (_CHANNELS, "Images have {1} channels, the layer is made for {0}: change its in_channels."),
    (_ON_DEVICES, "Move what the code makes itself to the device of its input: tensor.to(x.device)."),
    (_LABEL, "A label is outside of what the model predicts: compare num_classes with the labels."),
    (_TWICE, "A tensor of the step before is used again: detach() it, or compute it again."),
    (_NO_GRAD, "Nothing that is trained leads to the loss: look for detach(), no_grad() or .item() on the way."),
    (_DTYPES, "Convert one of the two: tensor.to(other.dtype)."),
    (
        _LOADER,
        "A process of the DataLoader crashed or was killed. To see the line, set its num_workers to 0.",
    ),
    (
        _LOGGER,
        "rtrain records metrics itself and gives Lightning no logger. {0} needs one in trainer.trainer_args: "
        "logger: [{{_target_: lightning.pytorch.loggers.CSVLogger, save_dir: logs}}]",
    ),
    (_MODULE, to_try("pip install {0}", "or check the spelling of the import")),
)
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
    "Take less memory: a smaller trainer.batch_size, data that is streamed (dataset.memory=stream), or fewer "
    "workers on a machine (num_workers, scaling.placement_strategy=SPREAD)."
)
LESS_GPU_MEMORY = "Take less memory of the GPU: a smaller trainer.batch_size, a smaller model, or half precision."


def what_to_try(error_type: str, message: str) -> str | None:
    """Return what to do about an error by its class and message, where that is known."""
    if is_out_of_memory(error_type, message):
        return LESS_GPU_MEMORY if re.search(r"cuda|\bGPU_\d", message, re.IGNORECASE) else LESS_MEMORY
    for pattern, hint in _HINTS:
        if found := pattern.search(message):
            return hint.format(*found.groups())
    return None


def is_of_code(error: BaseException) -> bool:
    """Tell whether an error that the user's code raised is its own mistake, and not that of a machine or a service."""
    return type(error) in _OF_CODE and not _OF_MACHINES.search(text_of(error))


def is_out_of_memory(error_type: str, message: str) -> bool:
    """Tell whether an error says that memory of the machine, or of a GPU, was not enough."""
    return bool(_OUT_OF_MEMORY.search(f"{error_type}: {message}"))
