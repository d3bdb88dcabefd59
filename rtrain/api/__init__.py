"""The functions of ``import rtrain``: what a command does, for Python and notebooks."""
