"""Files of JUnit's XML can be parsed, whatever a training has printed."""

from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from rtrain.cli.app import run
from rtrain.cli.junit import write_junit
from rtrain.smoke import Outcome

STRANGE = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000), 0xFFFE, 0xFFFF]))


@pytest.mark.parametrize(("name", "why", "code"), [("there", "is a folder", 2), ("file/x.xml", "can't be written", 1)])
def test_a_place_that_can_not_be_written_is_refused_before_training(name, why, code, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    Path("file").touch()
    Path("one.yaml").write_text("defaults: [{trainer: torch}]\nsmoke: {}\n")
    assert run(["smoke", "one.yaml", "--junit", name]) == code
    told = capsys.readouterr()
    assert (name in told.err, why in told.err, told.out, Path("runs").exists()) == (True, True, "", False)


@pytest.mark.parametrize("status", ["passed", "missed", "wrong", "skipped"])
def test_no_character_breaks_the_file(tmp_path, status):
    path = Path(f"/x{STRANGE}y".replace("\0", ""))
    text = f"a{STRANGE}\x1b[1;31mé\U0001f600]]>&<"
    smoke = SimpleNamespace(name=text, folder=text, primary=SimpleNamespace(path=path))
    write_junit(tmp_path / "out.xml", [Outcome(smoke=smoke, status=status, lines=(text, "b"), output=text)])
    (case,) = ElementTree.parse(tmp_path / "out.xml").iter("testcase")
    kept = "é\U0001f600]]>&<"
    assert case.get("name") == case.get("classname") == f"a\t\n\r{kept}"
    assert case.get("file") == "/x\t\n\ry"
    told, printed = case
    assert (told.text.split(), printed.text.split()) == (["a", kept, "b"], ["a", kept])
    assert status == "passed" or told.get("message").startswith("a")
