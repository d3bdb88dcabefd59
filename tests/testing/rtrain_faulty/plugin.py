"""The trainer, seen from the driver."""

from rtrain.trainers.base import TrainerPlugin
from rtrain.trainers.loops.auto import check_roles
from rtrain_faulty.config import Conf


class Plugin(TrainerPlugin):
    """Softmax regression with faults."""

    Conf = Conf

    def check(self, job):
        check_roles(job.trainer_name, job.dataset.info, ())

    def backend_config(self, conf):
        raise NotImplementedError("trains on one worker")

    def load_predictor(self, trained, device):
        from rtrain_faulty.loop import load

        return load(trained)
