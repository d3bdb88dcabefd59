"""``python -m rtrain`` is ``rtrain``."""

from rtrain.cli import main

if __name__ == "__main__":  # processes that are spawned import it under another name
    main()
