"""What a worker process of Ray's imports before it waits for a task: Ray imports this module, which imports them."""

import os
from importlib import import_module
from pathlib import Path

from rtrain.cluster.prestart import ARRIVALS, MODULES
from rtrain.process.quick_imports import search_as_usual, search_less

search_less()
try:
    for name in os.environ[MODULES].split(","):
        import_module(name)
except Exception as e:
    raise ImportError(str(e)) from e  # Ray logs it; any other ends the process. The task's own import reports it
finally:
    search_as_usual()
    if folder := os.environ.get(ARRIVALS):
        Path(folder, str(os.getpid())).touch()
