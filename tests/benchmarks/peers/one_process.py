"""Run a command, and write what it took to a file as JSON: exit code, seconds, seconds of processor, peak memory in kB.

Usage: one_process.py FILE COMMAND... It is small: the peak memory of a process begins with that of the one it is
started by.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

if __name__ == "__main__":
    began = time.perf_counter()
    process = subprocess.Popen(sys.argv[2:])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    found = [process.returncode, time.perf_counter() - began, used.ru_utime + used.ru_stime, used.ru_maxrss]
    Path(sys.argv[1]).write_text(json.dumps(found))
