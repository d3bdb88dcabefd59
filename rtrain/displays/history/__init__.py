"""What a terminal shows of the runs that were: the list, a run, a comparison, curves."""
