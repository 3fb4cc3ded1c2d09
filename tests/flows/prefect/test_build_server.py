"""The temporary Prefect server of a build."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

_REQUEST = """
import asyncio
import urllib.request

from pairwright.flows.prefect.flow_reports import FlowReports
from pairwright.flows.prefect.server import build_server

with build_server(FlowReports(), print) as ready:
    asyncio.run(ready())
    from prefect.settings import PREFECT_API_URL

    with urllib.request.urlopen(f"{PREFECT_API_URL.value()}/health") as reply:
        print("retry", reply.headers["Retry-After"])
"""


@pytest.mark.slow
def test_clients_try_again_at_once_what_the_database_was_too_busy_for(tmp_path: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    done = subprocess.run(
        [sys.executable, "-c", _REQUEST],
        env={**environment, "PREFECT_HOME": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
    )
    assert 0 < float(done.stdout.split()[1]) < 1  # without, two seconds at each of the answers 503 of SQLite
