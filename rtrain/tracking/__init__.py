"""Sends the contents of a run directory to trackers while training continues."""
