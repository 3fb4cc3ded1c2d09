"""Estimated input tokens per row of the commands that ask a model, by captions per request (``--dry-run``; nothing is sent).

    python -m benchmarks.llm.prompt_tokens [CASE ...] [--rows 200] [--groups 1 4 16] [--captions FILE]

They include instructions, demonstrations and schema, and no repairs of invalid answers.
"""

import argparse
import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

CASES: dict[str, tuple[list[str], bool]] = {
    "negatives, seven types": (["negatives"], True),
    "negatives, 4 candidates": (["negatives", "--candidates", "4"], True),
    "negatives, both sides": (["negatives", "--both-sides"], True),
    "negatives, workflow": (["negatives", "--variant", "workflow"], True),
    "positives, four types": (["positives"], True),
    "conversation": (["conversations", "--types", "conversation"], False),
    "detail": (["conversations", "--types", "detail"], False),
    "reasoning": (["conversations", "--types", "reasoning"], False),
}


def estimate(command: list[str], rows: Path, group: int | None) -> str:
    """Return the input tokens per row of a command."""
    given = [sys.executable, "-m", "pairwright", "generate", *command, str(rows), "--method", "llm"]
    given += ["--out", str(rows.with_name("out.jsonl")), "--model", "small", "--dry-run", "--json"]
    given += ["--captions-per-request", str(group)] if group is not None else []
    done = subprocess.run(given, check=True, capture_output=True, text=True)
    [plan] = json.loads(done.stdout)["plan"]
    return f"{plan['tokens_in']['low'] / plan['rows']:,.0f}"


def main() -> None:
    """Estimate and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = Path(os.environ.get("PAIRWRIGHT_TEST_DATA", "../shared/data")) / "coco_captions" / "captions.jsonl"
    parser.add_argument("cases", nargs="*", help=", ".join(CASES))
    parser.add_argument("--rows", type=int, default=200)
    parser.add_argument("--groups", type=int, nargs="*", default=[1, 4, 16])
    parser.add_argument("--captions", type=Path, default=data, help="JSONL of captions [COCO's]")
    given = parser.parse_args()
    if unknown := set(given.cases) - set(CASES):
        parser.error(f"no case {', '.join(unknown)}. There are: {', '.join(CASES)}.")
    print(f"| input tokens per row | {' | '.join(f'{group} per request' for group in given.groups)} |")
    print(f"|---|{'---|' * len(given.groups)}")
    with TemporaryDirectory() as folder:
        rows = Path(folder) / "rows.jsonl"
        with given.captions.open("rb") as lines:
            rows.write_bytes(b"".join(islice(lines, given.rows)))
        for name in given.cases or CASES:
            command, grouped = CASES[name]
            found = [
                estimate(command, rows, group if grouped else None) for group in given.groups[: None if grouped else 1]
            ]
            print(f"| {name} | {' | '.join(found + [''] * (len(given.groups) - len(found)))} |", flush=True)


if __name__ == "__main__":
    main()
