"""All runs and sweeps below some folders: found, listed, compared, labelled, exported and removed."""
