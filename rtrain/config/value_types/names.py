"""Names of runs and sweeps, which become folders."""

from __future__ import annotations

import re
import unicodedata

NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""What the name of a run or of a sweep looks like: it becomes a folder."""
MAX_NAME = 120
"""Most characters of such a name."""
_LETTERS = str.maketrans({"ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "AE", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L"})
"""Latin letters that Unicode does not compose of a plain one and its accents."""


def as_name(text: str) -> str:
    """Return ``text`` as the name of a run: as it is if it is one, else without accents, and "-" for other characters.

    Empty if nothing is left of it: ``日本`` has no letter that a name may have.
    """
    if re.fullmatch(NAME, text) and len(text) <= MAX_NAME:
        return text
    letters = unicodedata.normalize("NFKD", text.translate(_LETTERS))
    plain = "".join(one for one in letters if not unicodedata.combining(one))
    return re.sub(r"[^A-Za-z0-9._-]+", "-", plain).strip("._-")[:MAX_NAME]
