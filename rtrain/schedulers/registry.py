"""Which schedulers there are: the files beside this one, and the entry points ``rtrain.schedulers``."""

from rtrain.plugins import PluginFiles

SCHEDULERS = PluginFiles("sweep.scheduler", "rtrain.schedulers", "Scheduler")
