"""A run as a process of its own, to be stopped and killed by tests.

    python -m tests.generators.llm.session_process URL CACHE OUT ROWS [BUSY [TIMEOUT]]

Asks one question a row and writes a line for each that has ended: its number and what became of it. With row BUSY it
is busy until its input ends, and reads no answers meanwhile. A request may take TIMEOUT seconds.
"""

import sys
from functools import partial
from pathlib import Path

from pairwright.generators.llm.client.messages import Message, Reply, Request
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.runner import LLMRow
from pairwright.generators.llm.session import Session

AT_ONCE = 16


def settings(url: str, timeout: float = 600.0) -> LLMSettings:
    """Return settings for a test server."""
    return LLMSettings.from_env({}, base_url=url, api_key="x" * 20, model="m", max_concurrency=AT_ONCE, timeout=timeout)


def question(number: int, attempt: int) -> LLMStep[str]:
    """Ask one question; return "kept", or a word that says why not."""
    [outcome] = yield [Request((Message("user", f"question {number}"),), "m", sample=attempt)]
    if not isinstance(outcome, Reply):
        return outcome.code
    return "kept" if outcome.text == f"You said: question {number}" else "bad_answer"


def main(url: str, cache: str, out: str, rows: str, *more: str) -> None:
    """Run."""
    busy, timeout = (*more, *("", "600")[len(more) :])
    with Path(out).open("w") as file, Session(settings(url, float(timeout)), cache=Path(cache)) as session:
        for done in session.run(LLMRow(str(n), partial(question, n)) for n in range(int(rows))):
            print(done.row, done.result, file=file, flush=True)
            if done.row == busy:
                sys.stdin.read()


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
