"""The available searches: the files next to this one, and the entry points ``rtrain.searches``."""

from rtrain.plugins import PluginFiles

SEARCHES = PluginFiles("sweep", "rtrain.searches", "Search")
