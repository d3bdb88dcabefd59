"""The probe for Lightning, which has callbacks of its own."""

from pathlib import Path

from lightning.pytorch import Callback
from probes import device_of, record


class Probe(Callback):
    """Record where the module is at the end of training."""

    def on_train_end(self, trainer, pl_module):
        record(Path(trainer.default_root_dir), model=device_of(pl_module))
