"""The user's own code, as pages of the docs name it."""
