"""Size limits of a YAML file. They need no Hydra, so that commands that read no file start immediately."""

MAX_BYTES = 1_000_000
"""Of a file."""
MAX_NODES = 50_000
"""Most nodes that a file may have once its aliases are expanded."""
MAX_DEPTH = 50
"""Most mappings and lists that may lie in one another."""
MAX_REFERENCES_OF_TEXT = 100
"""Most references that one text may hold."""
MAX_KEY = 1_000
"""Characters of a key."""
MAX_TEXT = 10_000
"""Longest text of a file that holds references, each character of which takes up to a tenth of a millisecond."""
