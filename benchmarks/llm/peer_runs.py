"""LLM requests about many captions: this package compared with other packages, each in its own environment.

    python -m benchmarks.llm.peer_runs [--rows 2000] [--rounds 3] [--only NAME,...] [--cases plain,latency]
    python -m benchmarks.llm.peer_runs --cases trouble

The job: short captions, all different, one chat request each (system and user message, 64 tokens, temperature 0) to
``pairwright dev llm-server`` in a separate process; the answers end on disk. Each peer is used as its documentation
shows for an OpenAI-compatible server (``benchmarks/llm/peers/``), with telemetry off. Environments are
made once, with pip, under ``--cache``.

    plain    no latency, concurrency 64
    latency  100 ms, concurrency 256
    trouble  not speed: refused and refusing rows, a changed prompt, a kill

Rounds are interleaved; figures are medians. *Run proper*: from captions in memory to answers on disk, without the start
of the interpreter and imports. *CPU* is that of the client with all the processes that it starts. *Memory* is their sum
at one moment. *Order*: whether the output has the order of the captions.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.llm.peers.environments import PEERS, CannotBeUsed, python_of, versions_of
from benchmarks.llm.peers.failures import trouble
from benchmarks.llm.peers.runs import Ran, run, set_up

CASES: dict[str, tuple[list[str], int]] = {"plain": ([], 64), "latency": (["--latency-ms", "100"], 256)}
CACHE = Path.home() / ".cache" / "pairwright-peers"


def measure(names: Sequence[str], case: str, given: argparse.Namespace) -> None:
    """Measure the peers in a case, round by round, and print a row for each."""
    options, at_once = CASES[case]
    found: dict[str, list[Ran]] = {name: [] for name in names}
    for _ in range(given.rounds):
        for name in names:
            with set_up(PEERS[name], given.cache, given.rows, at_once, options) as setup:
                found[name].append(run(setup, given.log))
    print(
        f"\n{case}: {given.rows:,} rows, {at_once} at once, {' '.join(options) or 'no latency'}, {given.rounds} rounds\n"
    )
    print("| | rows/s | to ours | with start | CPU ms/row | with start | MiB | right | order | requests |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|---|--:|")
    ours = _rate(found[names[0]], given.rows)
    for name in names:
        print(f"| {name} | {_row(found[name], given.rows, ours)} |", flush=True)


def _row(runs: Sequence[Ran], rows: int, ours: float) -> str:
    last = runs[-1]
    rate = _rate(runs, rows)
    if not rate:
        return (
            f"did not end: exit code {last.code}, {last.right:,} rows right, {last.requests:,} requests | | | | | | | |"
        )
    with_start = rows / statistics.median(each.whole for each in runs)
    cpu = statistics.median(each.cpu for each in runs) / rows * 1000
    whole = statistics.median(each.whole_cpu for each in runs) / rows * 1000
    memory = statistics.median(each.resident for each in runs) / 2**20
    right = min(each.right for each in runs)
    order = "yes" if all(each.ordered for each in runs) else "no"
    requests = max(each.requests for each in runs)
    return (
        f"{rate:,.0f} | {f'{rate / ours:.2f}' if ours else ''} | {with_start:,.0f} | {cpu:.3f} | {whole:.3f} | {memory:,.0f}"
        f" | {right:,} | {order} | {requests:,}"
    )


def _rate(runs: Sequence[Ran], rows: int) -> float:
    """Return rows/s of the run proper; 0 where a run did not end."""
    return rows / statistics.median(each.wall for each in runs) if all(each.wall for each in runs) else 0.0


def usable(names: Sequence[str], cache: Path) -> list[str]:
    """Return the peers that stand in their environments; tell the others' reasons, and all versions."""
    found = []
    for name in names:
        try:
            python_of(PEERS[name], cache)
        except CannotBeUsed as reason:
            print(f"{name}: not measured, it does not install here: {reason}")
            continue
        found.append(name)
        print(f"{name}: {versions_of(PEERS[name], cache)}", flush=True)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="names of peers, with commas; ours is always measured")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--cache", type=Path, default=CACHE, help=f"folder of the environments [{CACHE}]")
    parser.add_argument("--log", type=Path, help="file for what the peers say")
    given = parser.parse_args()
    only, cases = [name for name in given.only.split(",") if name], given.cases.split(",")
    for kind, said, known in (("peer", only, list(PEERS)), ("case", cases, [*CASES, "trouble"])):
        if unknown := set(said) - set(known):
            parser.error(f"no {kind} {', '.join(sorted(unknown))}. There are: {', '.join(known)}.")
    with tempfile.TemporaryDirectory() as folder:
        given.log = given.log or Path(folder) / "log"
        print(f"Python {sys.version.split()[0]}")
        names = usable([name for name in PEERS if not only or name in only or name == next(iter(PEERS))], given.cache)
        for case in cases:
            if case == "trouble":
                trouble(names, given.cache, given.rows, given.log)
            else:
                measure(names, case, given)


if __name__ == "__main__":
    main()
