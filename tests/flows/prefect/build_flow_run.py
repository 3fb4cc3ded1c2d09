"""The flow of a schedule, run once, for `test_scheduled.py`: CONFIG, OUT, and the words of a command for failures.

In a process of its own, as in `story_told.py`.
"""

import asyncio
import sys
from contextlib import suppress

from pairwright.datasets.errors import PairwrightError
from pairwright.flows.prefect.build_flow import build_flow

if __name__ == "__main__":
    config, out, *command = sys.argv[1:]
    with suppress(PairwrightError):
        asyncio.run(build_flow(config=config, out=out, overrides={"workers": 1}, on_failure=command or None))
