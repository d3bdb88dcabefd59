"""The last module that a process imports before it waits for a task: it leaves a file for who counts them."""

import os
from pathlib import Path

from rtrain.cluster.prestart import ARRIVALS

Path(os.environ[ARRIVALS], str(os.getpid())).touch()
