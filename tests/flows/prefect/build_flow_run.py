"""The flow of a schedule, run once, for `test_build_flow.py`: CONFIG, OUT, and the words of a command for failures.

What an uncaught error of pairwright would print goes to stdout.

In a process of its own, as in `artifacts_flow.py`.
"""

import asyncio
import sys
import traceback

from pairwright.datasets.errors import PairwrightError
from pairwright.flows.prefect.build_flow import build_flow

if __name__ == "__main__":
    config, out, *command = sys.argv[1:]
    try:
        asyncio.run(build_flow(config=config, out=out, overrides={"workers": 1}, on_failure=command or None))
    except PairwrightError as error:
        sys.stdout.write("".join(traceback.format_exception(error)))
