"""Outcomes of ``rtrain smoke`` as JUnit XML, which CI systems show as test results."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, ElementTree, SubElement, indent

from rtrain.errors import ConfigError
from rtrain.runs.filesystem.files import named_output

if TYPE_CHECKING:
    from rtrain.smoke import Outcome

XML_ELEMENTS = {"missed": "failure", "wrong": "error", "skipped": "skipped"}
"""What stands in the test case of an outcome that did not pass, by its status."""
COUNTED = {"failures": "failure", "errors": "error", "skipped": "skipped"}
NOT_XML = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Sequences that colour a terminal, and characters that XML can't hold or that show nothing."""


def check_junit(path: Path) -> None:
    """Create the folder of a file for results, so that what can't be written is known before training.

    Raises:
        ConfigError: It is a folder.
        RtrainError: Its folder can't be created or written.
    """
    if path.is_dir():
        raise ConfigError(f"--junit: {path} is a folder.", f"Name a file: {path / 'smoke.xml'}")
    with named_output(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise ConfigError(f"--junit: {path} can't be written.", "Use another folder.")


def write_junit(path: Path, outcomes: Sequence[Outcome]) -> None:
    """Write one test case for each outcome; what a training printed stands in it as ``system-err``.

    Its class is the folder of the config: names of files repeat.
    """
    counts = {
        "tests": len(outcomes),
        **{name: sum(XML_ELEMENTS.get(one.status) == kind for one in outcomes) for name, kind in COUNTED.items()},
    }
    seconds = sum(outcome.seconds for outcome in outcomes)
    attributes = {**{name: str(count) for name, count in counts.items()}, "time": f"{seconds:.3f}"}
    root = Element("testsuites", attributes)
    suite = SubElement(root, "testsuite", {"name": "rtrain smoke", **attributes})
    for outcome in outcomes:
        _add_case(suite, outcome)
    indent(root)
    with named_output(path):
        ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _add_case(suite: Element, outcome: Outcome) -> None:
    smoke = outcome.smoke
    names = {"classname": smoke.folder, "name": smoke.name, "file": str(smoke.primary.path)}
    names = {attribute: _clean(text) for attribute, text in names.items()}
    case = SubElement(suite, "testcase", {**names, "time": f"{outcome.seconds:.3f}"})
    told = _clean("\n".join(outcome.lines))
    if outcome.status == "passed":
        SubElement(case, "system-out").text = told
    else:
        SubElement(case, XML_ELEMENTS[outcome.status], {"message": told.partition("\n")[0]}).text = told
    if outcome.output:
        SubElement(case, "system-err").text = _clean(outcome.output)


def _clean(text: str) -> str:
    """Return the text without what XML can't hold."""
    return NOT_XML.sub("", text)
