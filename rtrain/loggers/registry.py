"""The available loggers: the files next to this one, and the entry points ``rtrain.loggers``."""

from rtrain.plugins import PluginFiles

LOGGERS = PluginFiles("run.loggers", "rtrain.loggers", "Logger")
