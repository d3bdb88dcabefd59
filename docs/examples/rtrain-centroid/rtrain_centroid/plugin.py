from rtrain.errors import ConfigError
from rtrain.trainers.base import TrainerPlugin
from rtrain_centroid.config import Conf


class Plugin(TrainerPlugin):
    """The nearest mean of each class, in NumPy."""

    Conf = Conf

    def check(self, job):
        if job.dataset is None or job.dataset.info.task != "classification":
            raise ConfigError("trainer 'centroid' needs a dataset of classes.", "try: dataset=digits")
        if job.conf.scaling.num_workers > 1:
            raise ConfigError("trainer 'centroid' trains on one worker.", "try: num_workers=1")
        from rtrain.trainers.loops.auto import check_roles

        check_roles("centroid", job.dataset.info, used=())

    def load_predictor(self, trained, device):
        from rtrain_centroid.loop import load

        return load(trained)
