"""What a process forgets of a project, and what it keeps."""

import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path

import pytest

from rtrain.config.targets.allow_list import use_project_root
from rtrain.config.targets.forgetting import keep_imported, project_state_forgotten

FILES = {
    "a module": ("net.py", "net"),
    "one with the name of a framework": ("evaluate.py", "evaluate"),
    "a package": ("nets/__init__.py", "nets"),
    "in a package": ("nets/small.py", "nets.small"),
    "in a folder of a folder": ("parts/nets/small.py", "parts.nets.small"),
}


@pytest.fixture(params=FILES)
def module(request, tmp_path, monkeypatch):
    """Return the name of a module of a project in the current folder."""
    file, name = FILES[request.param]
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text("state = []\n")
    if "evaluate" in sys.modules:
        monkeypatch.delitem(sys.modules, "evaluate")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name


@pytest.mark.parametrize("known", [False, True])
def test_each_block_finds_the_modules_as_they_are_written(module, known):
    if known:  # Ray gives its workers the path of the driver
        use_project_root(Path.cwd())
    for _ in range(2):
        with project_state_forgotten(Path.cwd()):
            state = import_module(module).state
            assert state == []
            state.append(1)


def test_modules_that_the_program_had_before_keep_their_state(module):
    use_project_root(Path.cwd())
    mine = import_module(module)
    keep_imported()
    mine.state.append(1)
    with project_state_forgotten(Path.cwd()):
        assert import_module(module) is mine
    assert import_module(module) is mine
    for name in ("nets", "parts", "parts.nets", module):
        sys.modules.pop(name, None)
    keep_imported()


@pytest.mark.parametrize("inner", ["", "import ops\n", "import parts.ops\n"])
def test_a_module_that_can_not_run_twice_stays_as_it_was(tmp_path, monkeypatch, caplog, inner):
    once = "import sys\nif sys.registered: raise KeyError('registered already')\nsys.registered.append(1)\nstate = []\n"
    (tmp_path / "parts").mkdir()
    which = inner.split()[-1] if inner else "own"
    (tmp_path / "own.py").write_text(inner + "state = []\n")
    (tmp_path / f"{which.replace('.', '/')}.py").write_text(once)
    monkeypatch.setattr(sys, "registered", [], raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    states = []
    for _ in range(3):
        with project_state_forgotten(tmp_path):
            states.append(import_module("own").state)
    assert (states[0] is states[1], states[1] is states[2]) == (not inner, not inner)
    assert caplog.text.count(f"{which} stays as it was: it can't be imported a second time") == 2
    assert "KeyError: 'registered already'" in caplog.text


def test_an_error_of_the_first_import_stays_an_error(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text("1 / 0\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    for _ in range(2):
        with project_state_forgotten(tmp_path), pytest.raises(ZeroDivisionError):
            import_module("own")


def test_a_package_of_several_places_keeps_what_is_installed(tmp_path, monkeypatch):
    for place in ("env/lib/site-packages", "."):
        (tmp_path / place / "shared").mkdir(parents=True)
    installed, own = tmp_path / "env/lib/site-packages/shared/there.py", tmp_path / "shared/mine.py"
    installed.write_text("")
    own.write_text("state = []\n")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "env/lib/site-packages")])
    there = None
    for _ in range(2):
        with project_state_forgotten(tmp_path):
            from shared import mine, there as found  # noqa: I001 - made by this test

            assert mine.state == []
            mine.state.append(1)
            assert there in (None, found)
            there = found
    for name in ("shared.there", "shared"):
        del sys.modules[name]


PROGRAM = """
import sys
from pathlib import Path
import rtrain
from rtrain.config.targets.forgetting import project_state_forgotten
before = set(sys.modules)
with project_state_forgotten(ROOT):
    import own, rtrain.models, graphlib
print(*sorted(before - set(sys.modules)))
print(*sorted({"__main__", "own", "rtrain.models", "graphlib"} & set(sys.modules)))
"""
ROOTS = {
    "the program": "Path.cwd()",
    "rtrain": "Path(rtrain.__file__).parents[1]",
    "Python": "Path(sys.modules['threading'].__file__).parents[1]",
    "everything": "Path('/')",
}


@pytest.mark.parametrize("root", ROOTS)
def test_what_else_lies_in_the_folder_of_the_project_stays(tmp_path, root):
    (tmp_path / "main.py").write_text(PROGRAM.replace("ROOT", ROOTS[root]))
    (tmp_path / "own.py").write_text("")
    done = subprocess.run([sys.executable, "main.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    gone, there = done.stdout.split("\n")[:2]
    assert gone == ""
    mine = [] if root in ("the program", "everything") else ["own"]
    assert there.split() == sorted(["__main__", *mine, "rtrain.models", "graphlib"])


def test_another_thread_may_import_meanwhile(tmp_path):
    over = threading.Event()

    def work():
        for number in range(10_000):
            sys.modules[f"made_up_{number}"] = sys
            del sys.modules[f"made_up_{number}"]
            if over.is_set():
                return

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(20):
            with project_state_forgotten(tmp_path):
                pass
    finally:
        over.set()
        thread.join()
