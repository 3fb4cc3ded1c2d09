"""What becomes of rows when not all goes well: the server has something against some, a prompt changes, a kill.

400, refusal   every 50th caption is answered so: rows of the rest that have the right answer, blank or wrong rows in
               the output, rows that are missing there, the exit code, requests
again          requests that are sent when a finished run is repeated in its folder: as it was, with one caption
               more, with another system prompt
killed         requests that are paid for twice when a run is killed in the middle, and started again
"""

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.llm.peers.environments import PEERS, Peer
from benchmarks.llm.peers.runs import FAULTY, SYSTEM, Ran, Setup, more_rows, run, run_until, set_up
from benchmarks.llm.server_process import stats

AT_ONCE = 64
KEEPERS = [name for name in PEERS if not name.startswith("openai")]  # a bare loop keeps nothing
_HIT = r" \d*[05]0 metres"  # of the captions, every 50th
_RULES = {"400": {"matches": _HIT, "fault": "400"}, "refusal": {"matches": _HIT, "refusal": "I cannot help with that."}}


def trouble(names: Sequence[str], cache: Path, rows: int, log: Path) -> None:
    """Run all of it and print tables."""
    for kind, rule in _RULES.items():
        script = log.with_suffix(f".{kind}.json")
        script.write_text(json.dumps({"rules": [rule]}))
        print(f"\nevery {FAULTY}th of {rows:,} rows answered with a {kind}\n")
        print(
            "| | the others right | of | blank or other | missing | exit code | requests |\n|---|--:|--:|--:|--:|--:|--:|"
        )
        for name in names:
            with set_up(PEERS[name], cache, rows, AT_ONCE, ["--script", str(script)]) as setup:
                print(f"| {name} | {_hit(run(setup, log), rows)} |", flush=True)
        script.unlink()
    print(f"\n{rows:,} rows again in the same folder: requests sent, and rows right after\n")
    print("| | as it was | one row more | another system prompt |\n|---|--:|--:|--:|")
    for name in [name for name in names if name in KEEPERS]:
        print(f"| {name} | {' | '.join(again(PEERS[name], cache, rows, log))} |", flush=True)
    print(f"\n{rows:,} rows with 50 ms of latency, killed when half are answered, started again\n")
    print("| | paid twice | rows right | exit code |\n|---|--:|--:|--:|")
    for name in [name for name in names if name in KEEPERS]:
        print(f"| {name} | {killed(PEERS[name], cache, rows, log)} |", flush=True)


def again(peer: Peer, cache: Path, rows: int, log: Path) -> list[str]:
    """Return what is sent when a finished run is repeated, for each change; each from a finished run of its own."""
    said = []
    for change in (lambda setup: setup, lambda setup: more_rows(setup, 1), _other_prompt):
        with set_up(peer, cache, rows, AT_ONCE) as setup:
            run(setup, log)
            second = run(change(setup), log)
            said.append(f"{second.requests:,} ({second.right:,} right{_code(second)})")
    return said


def killed(peer: Peer, cache: Path, rows: int, log: Path) -> str:
    """Return what is paid for twice after a kill."""
    with set_up(peer, cache, rows, AT_ONCE, ["--latency-ms", "50"]) as setup:
        run_until(setup, log, rows // 2)
        while stats(setup.url)["in_flight"]:
            time.sleep(0.01)
        second = run(setup, log)
        return f"{stats(setup.url)['bodies']['answered_again']:,} | {second.right:,} | {second.code}"


def _other_prompt(setup: Setup) -> Setup:
    return replace(setup, system=SYSTEM + " Be brief.")


def _hit(ran: Ran, rows: int) -> str:
    rest = rows - rows // FAULTY
    return f"{ran.right:,} | {rest:,} | {ran.rows - ran.right:,} | {rows - ran.rows:,} | {ran.code} | {ran.requests:,}"


def _code(ran: Ran) -> str:
    return f", exit code {ran.code}" if ran.code else ""
