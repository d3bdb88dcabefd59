"""``rtrain runs``: one file per group of verbs."""
