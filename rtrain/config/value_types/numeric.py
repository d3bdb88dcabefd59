"""Which texts are numbers; imports nothing, so that every part of the config may ask."""


def is_number(text: str) -> bool:
    """Return whether a text is a number, as Python's ``float`` reads it."""
    try:
        float(text)
    except ValueError:
        return False
    return True
