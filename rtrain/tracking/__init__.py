"""Brings what is in a run directory to trackers, beside the training."""
