"""The test server as a process of its own, whose CPU time is not that of what is measured."""

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

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


def stats(url: str) -> dict[str, Any]:
    """Return what the server at a base URL has counted, body by body."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url.removesuffix("/v1") + "/_stats?each=1") as answer:
        found: dict[str, Any] = json.load(answer)
    return found
