"""``rtrain init``: a first config for a table, from a look at its rows."""
