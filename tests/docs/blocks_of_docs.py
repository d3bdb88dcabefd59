"""The blocks of code in README, the docs and the recipes, in their order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "recipes").rglob("*.md"))]
]
PROGRAMS = ("rtrain", "pip", "git", "grep", "make", "python", "python3", "tensorboard", ".venv/bin/pytest")
BLOCK = re.compile(
    r"^```(?P<language>\w*)\n(?P<fenced>.*?)^```$|(?:\A|(?<=\n\n))(?P<indented>(?: {4}[^\n]*\n|\n(?= {4}))+)",
    re.DOTALL | re.MULTILINE,
)
COMMAND = re.compile(rf"(?:\$ )?(?:[A-Z_]+=\S+ )*(?:{'|'.join(map(re.escape, PROGRAMS))}) .*")
FILE = re.compile(r"(?:# @package \S+\n)?# ([\w./-]+\.\w+)(?:,.*)?\n")


@dataclass(frozen=True)
class Block:
    """A file, a piece of code, a command line, or a picture of what a terminal shows."""

    page: str
    line: int
    language: str
    """``shell`` of a command line, ``text`` of a picture."""
    text: str
    shown: str = ""
    """What the page shows as the output of the command line."""

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.name}"

    @property
    def name(self) -> str:
        """The first line up to its comment or columns, shortened: so tables name the block."""
        return re.split(r" {2,}|\n", self.text.strip())[0][:80]

    @property
    def file(self) -> str | None:
        """The name of the file that the block is, as its first line says, or the line after Hydra's package."""
        found = FILE.match(self.text)
        return found[1] if found else None


def blocks_of(page: str, text: str) -> Iterator[Block]:
    """Yield the blocks of a page; each line of a block of commands is one of its own."""
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        if found["fenced"] is not None:
            yield Block(page, line + 1, found["language"] or "text", found["fenced"])
        else:
            yield from _indented(page, line, re.sub(r"^ {4}", "", found["indented"], flags=re.MULTILINE))


def _indented(page: str, line: int, text: str) -> Iterator[Block]:
    first, _, rest = text.partition("\n")
    if not COMMAND.fullmatch(first):
        yield Block(page, line, "text", text)
    elif first.startswith("$ "):
        yield Block(page, line, "shell", first[2:], shown=rest)
    else:
        for command in re.finditer(r"(?:.*\\\n)*.+", text):
            at = line + text.count("\n", 0, command.start())
            yield Block(page, at, "shell", command[0])


BLOCKS = {page: list(blocks_of(page, (ROOT / page).read_text())) for page in PAGES}
