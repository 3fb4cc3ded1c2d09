"""CPU time and memory of ``pairwright mix`` over synthetic sources: does memory stay flat as rows grow?

    python -m benchmarks.instruction_mixture --rows 100000 1000000

Three sources: a LLaVA JSON list, gzipped JSON Lines, and Parquet of questions and answers, with 5% duplicates. Half of
the rows are asked for. Images are named and not looked at.
"""

import argparse
import gzip
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.process_usage import measured
from pairwright.datasets.rng import make_rng

_WORDS = tuple("a red bus parked near two small dogs on the wet grass while an old man rides his horse".split())  # noqa: SIM905 - a sentence reads better
_CONFIG = """\
keep: 0.5
sources:
  - {path: talks.json, verify_images: off}
  - {path: more.jsonl.gz, verify_images: off}
  - {path: vqa.parquet, verify_images: off, prompt: short}
"""


def main() -> None:
    """Print a line for each number of rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    print("| rows read | rows written | bytes read | CPU seconds | rows/CPU second | peak resident |")
    print("| --- | --- | --- | --- | --- | --- |")
    for rows in parser.parse_args().rows:
        with tempfile.TemporaryDirectory() as folder:
            print(_line(rows, Path(folder)), flush=True)


def _line(rows: int, folder: Path) -> str:
    _write_sources(rows, folder)
    size = sum(path.stat().st_size for path in folder.iterdir())
    (folder / "mixture.yaml").write_text(_CONFIG)
    command = [
        sys.executable,
        "-m",
        "pairwright",
        "mix",
        str(folder / "mixture.yaml"),
        "--out",
        str(folder / "out.json"),
    ]
    run = measured([*command, "--json"], log=folder / "log")
    told = json.loads(run.stdout)
    found = sum(source["found"] for source in told["sources"])
    return (
        f"| {found:,} | {told['rows']:,} | {size / 2**20:,.0f} MiB | {run.cpu:.0f} | {found / run.cpu:,.0f} | "
        f"{run.resident / 2**20:,.0f} MiB |"
    )


def _write_sources(rows: int, folder: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    third = rows // 3
    with (folder / "talks.json").open("w") as handle:
        handle.write("[")
        for number, row in enumerate(_talks(third, "talks")):
            handle.write((",\n" if number else "\n") + json.dumps(row))
        handle.write("\n]\n")
    with gzip.open(folder / "more.jsonl.gz", "wt", compresslevel=1) as handle:
        for row in _talks(third, "more"):
            handle.write(json.dumps(row) + "\n")
    schema = pa.schema([(name, pa.string()) for name in ("image", "question", "answer")])
    with parquet.ParquetWriter(folder / "vqa.parquet", schema) as writer:
        for start in range(0, third, 10_000):
            batch = [_question(number) for number in range(start, min(third, start + 10_000))]
            writer.write_table(pa.Table.from_pylist(batch, schema=schema))


def _talks(rows: int, name: str) -> Iterator[dict[str, Any]]:
    for number in range(rows):
        which = number if number % 20 else number // 2  # every twentieth came before
        rng = make_rng(0, 0, name, 1, which)
        said = [" ".join(rng.choices(_WORDS, k=rng.randrange(6, 60))) for _ in range(6)]
        turns = [{"from": "gpt" if place % 2 else "human", "value": text} for place, text in enumerate(said)]
        turns[0]["value"] = "<image>\n" + turns[0]["value"]
        yield {"id": str(number), "image": f"coco/{which % 120_000:012d}.jpg", "conversations": turns}


def _question(number: int) -> dict[str, str]:
    rng = make_rng(0, 0, "vqa", 1, number)
    asked = " ".join(rng.choices(_WORDS, k=8))
    return {
        "image": f"gqa/{number // 10:08d}.jpg",
        "question": f"Is this {asked}?",
        "answer": rng.choice(["yes", "no"]),
    }


if __name__ == "__main__":
    main()
