"""The test server as a process of its own, whose CPU time is not that of what is measured."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

PAIRWRIGHT = [sys.executable, "-m", "pairwright"]


@contextmanager
def server(*options: str) -> Iterator[str]:
    """Run ``pairwright dev llm-server`` with some options; give its base URL."""
    command = [*PAIRWRIGHT, "dev", "llm-server", "--exit-with-parent", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()
