"""Exports in the hands of their consumers: each is opened by its library, and trained on for one step where that trains.

    python -m benchmarks.export_consumers --input BUILD [--cache ~/.cache/pairwright-consumers] [--only trl,ms-swift]

Each library has an environment of its own at pinned versions, made once in the cache folder with pip; the model is tiny, with
random weights, made on the spot (`consumers/tiny_vlm.py`). Nothing is downloaded but the packages.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.llm.peers.environments import CannotBeUsed, Peer, environment_of, python_of
from pairwright.datasets.exports.formats import export

HERE = Path(__file__).resolve().parent / "consumers"
_TORCH = ("torch==2.13.0", "torchvision")


@dataclass(frozen=True)
class Consumer:
    """A library that opens an export.

    Attributes:
        format: value of ``--to``.
        script: in `consumers`.
        pins: what pip installs.
        arguments: of the script, after the export and a scratch folder.
    """

    format: str
    script: str
    pins: tuple[str, ...]
    arguments: tuple[str, ...] = ()


_TRL = ("trl==1.16.0", *_TORCH, "pillow")
_LLAMA_FACTORY = ("llamafactory==0.9.5", "torch==2.13.0")
_MS_SWIFT = ("ms-swift==4.6.0", *_TORCH)
CONSUMERS = (
    Consumer("hf-parquet", "open_hub_folder.py", _TRL),
    Consumer("trl", "open_trl.py", _TRL, ("sft",)),
    Consumer("trl-dpo", "open_trl.py", _TRL, ("dpo",)),
    Consumer("llamafactory", "open_llamafactory.py", _LLAMA_FACTORY, ("sft",)),
    Consumer("llamafactory", "open_llamafactory.py", _LLAMA_FACTORY, ("dpo",)),
    Consumer("ms-swift", "open_ms_swift.py", _MS_SWIFT, ("sft",)),
    Consumer("ms-swift", "open_ms_swift.py", _MS_SWIFT, ("dpo",)),
    Consumer("lmms-eval", "open_lmms_eval.py", ("lmms-eval==0.7.3", "filelock<4", "torch==2.13.0")),
)


def main() -> int:
    """Print the table; exit code 1 if a consumer failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--input", type=Path, required=True, help="a build or shards")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "pairwright-consumers")
    parser.add_argument("--only", default="", help="formats, separated by commas")
    args = parser.parse_args()
    chosen = [each for each in CONSUMERS if not args.only or each.format in args.only.split(",")]
    print("| `--to` | consumer | opened | trained one step, loss |\n| --- | --- | --- | --- |")
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        for consumer in chosen:
            shown, message = _row(consumer, args.input.absolute(), args.cache.absolute(), Path(scratch))
            failed += bool(message)
            print(f"| {' | '.join(shown)} |", flush=True)
            print(message, end="", file=sys.stderr)
    return bool(failed)


def _row(consumer: Consumer, source: Path, cache: Path, scratch: Path) -> tuple[list[str], str]:
    name = consumer.pins[0].replace("==", " ")
    out = scratch / consumer.format
    if not out.exists():
        export(source, consumer.format, scratch / "written" / consumer.format)
        (scratch / "written" / consumer.format).rename(out)  # an export can be moved
    try:
        found = _open(consumer, out, cache, Path(tempfile.mkdtemp(dir=scratch)))
    except CannotBeUsed as error:
        return [consumer.format, name, f"no: {error.args[0].splitlines()[-1]}", ""], f"{error}\n"
    trained = f"{' '.join(consumer.arguments)}, {found['loss']:.3f}" if "loss" in found else "-"
    name = f"{found['library']} {found['version']}" if "library" in found else name
    return [consumer.format, name, f"{found['rows']:,} rows", trained], ""


def _open(consumer: Consumer, out: Path, cache: Path, scratch: Path) -> dict[str, Any]:
    """Return what the consumer's script prints.

    Raises:
        CannotBeUsed: the environment cannot be made, or the script fails.
    """
    peer = Peer(consumer.script, "-", consumer.pins)
    python = python_of(peer, cache)
    env = {
        **environment_of(peer, cache),
        "OMP_NUM_THREADS": "1",
        "HF_HOME": str(scratch / "hf"),
        "MODELSCOPE_CACHE": str(scratch / "modelscope"),
    }
    env.pop("PYTHONPATH")  # a folder `datasets` of ours would stand in Hugging Face's place
    done = subprocess.run(
        [python, HERE / consumer.script, out, scratch, *consumer.arguments],
        cwd=scratch,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    for line in _last_lines(done.stdout):
        if line.startswith("{"):
            return dict(json.loads(line))
    raise CannotBeUsed("\n".join([*done.stderr.splitlines()[-20:], f"exit code {done.returncode}"]))


def _last_lines(text: str) -> Iterator[str]:
    return reversed(text.splitlines())


if __name__ == "__main__":
    sys.exit(main())
