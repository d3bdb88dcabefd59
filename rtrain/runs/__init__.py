"""Everything inside a run directory; standard library only, so that reading one needs nothing else."""
