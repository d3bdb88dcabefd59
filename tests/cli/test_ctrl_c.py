"""Ctrl-C before training, again and again: exit code 130 without a traceback."""

import subprocess
import sys
import textwrap

import pytest

# A process sends the signals to itself: nothing here depends on how fast the machine is.
BEGIN = """
import atexit, os, signal, sys, time
from types import ModuleType
import rtrain.cli

def ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(5)

class Mangled:
    def __del__(self):
        ctrl_c()

app = sys.modules["rtrain.cli.app"] = ModuleType("rtrain.cli.app")
"""
CASES = {
    "once": "try:\n    ctrl_c()\nexcept KeyboardInterrupt:\n    return 130",
    "while it cleans up": "try:\n    ctrl_c()\nfinally:\n    ctrl_c()",
    "made another error": "try:\n    ctrl_c()\nexcept KeyboardInterrupt:\n    raise ValueError",
    "made an error of the user's": "try:\n    ctrl_c()\nexcept KeyboardInterrupt:\n    return 2",
    "in exit handlers": "atexit.register(ctrl_c)\natexit.register(ctrl_c)\nreturn 0",
    "where Python can't raise it": "Mangled()\ntime.sleep(5)",
    "where it ends": "Last.wanted = True\nreturn 130",
}
END = """
class Last:
    wanted = False
    def __del__(self, kill=os.kill, pid=os.getpid(), number=signal.SIGINT):
        if Last and Last.wanted:
            kill(pid, number)

kept = sys.modules["kept_to_the_end"] = Last()
app.run = run
sys.argv = ["rtrain", "fit"]
rtrain.cli.main()
"""


@pytest.mark.parametrize("case", CASES)
def test_ctrl_c_ends_a_command_with_130_and_no_traceback(case):
    script = f"{BEGIN}\ndef run(words):\n{textwrap.indent(CASES[case], '    ')}\n{END}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
