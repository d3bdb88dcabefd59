"""Paragraphs of documentation, and the library that each comes from: texts that are on every machine with rtrain."""

import ast
import random
import re
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

NAMES = re.compile(r"\b(sk)?(learn|numpy|np|pandas|pd|torch|scipy|sp)\b\.?", re.IGNORECASE)


def paragraphs(libraries, num_rows, seed=0):
    """Return a frame with the columns ``text`` and ``library``: ``num_rows`` paragraphs of each library.

    The libraries' names are removed, so that only the content can tell them apart.
    """
    rows = []
    for library in libraries:
        found = _paragraphs(Path(find_spec(library).origin).parent)
        rows += [(text, library) for text in random.Random(seed).sample(found, num_rows)]
    return pd.DataFrame(rows, columns=["text", "library"])


def _paragraphs(folder):
    """Return the different paragraphs of 8 to 60 words in the docstrings of a package, in a fixed order."""
    files = [file for file in sorted(folder.rglob("*.py")) if "test" not in str(file.relative_to(folder))]
    texts = [text for file in files for text in _docstrings(file)]
    parts = [" ".join(NAMES.sub(" ", part).split()) for text in texts for part in text.split("\n\n")]
    return list(dict.fromkeys(part for part in parts if 8 <= len(part.split()) <= 60 and ">>>" not in part))


def _docstrings(file):
    tree = ast.parse(file.read_text(encoding="utf-8"))
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef
    return [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds)]
