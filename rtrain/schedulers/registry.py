"""The available schedulers: the files next to this one, and the entry points ``rtrain.schedulers``."""

from rtrain.plugins import PluginFiles

SCHEDULERS = PluginFiles("sweep.scheduler", "rtrain.schedulers", "Scheduler")
