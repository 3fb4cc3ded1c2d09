"""What a killed build leaves behind: nothing."""

import os
import select
import signal
import subprocess
import sys

CODE = """
import subprocess, sys
from pairwright.flows.prefect.server import terminated_with_this_process
child = subprocess.Popen(["sleep", "600"], stdout=subprocess.DEVNULL)
with terminated_with_this_process(child.pid):
    print(child.pid, flush=True)
    sys.stdin.read()
child.poll() is None or sys.exit("ended too early")
child.terminate()
"""


def start() -> tuple[subprocess.Popen[str], int]:
    process = subprocess.Popen([sys.executable, "-c", CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    return process, int(process.stdout.readline())


def test_the_child_ends_when_its_parent_is_killed() -> None:
    process, child = start()
    handle = os.pidfd_open(child)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert select.select([handle], [], [], 30)[0], "the child runs on"
    os.close(handle)


def test_the_child_is_left_alone_when_the_block_ends() -> None:
    process, _ = start()
    process.communicate("")
    assert process.returncode == 0
