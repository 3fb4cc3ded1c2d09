"""OpenCLIP's own training script on shards, as it is.

    python -m benchmarks.openclip_training --shards 'demo/shards/00000.tar' [--cache ~/.cache/pairwright-consumers]

OpenCLIP has an environment of its own, made once in the cache folder with pip; the model is tiny, with random weights. Nothing
is downloaded but the packages. Prints a table: losses of the first and the last step, and the number of steps.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from benchmarks.llm.peers.environments import CannotBeUsed, Peer, environment_of, python_of

HERE: Final = Path(__file__).resolve().parent / "consumers"
OPEN_CLIP: Final = Peer(
    "train_openclip.py",
    "-",
    ("open_clip_torch[training]==3.3.0", "webdataset==0.2.86", "torch==2.13.0", "torchvision"),
)
RUNS: Final = {
    "CLIP": (),
    "CLIP, --accum-freq 2": ("--accum-freq", "2"),
    "SigLIP, --siglip": ("--siglip",),
}


def main() -> int:
    """Print the table; exit code 1 if a run failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", required=True, help="a tar or a brace pattern, with sizes.json beside it")
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "pairwright-consumers")
    args = parser.parse_args()
    print("| loss | steps | first loss | last loss | versions |\n| --- | ---: | ---: | ---: | --- |")
    failed = 0
    for name, arguments in RUNS.items():
        try:
            found = train(str(Path(args.shards).absolute()), args.cache.absolute(), arguments)
        except CannotBeUsed as error:
            failed += 1
            print(f"| {name} | no | | | {str(error).splitlines()[-1]} |", flush=True)
            print(error, file=sys.stderr)
            continue
        losses, versions = (
            found["losses"],
            ", ".join(f"{each} {version}" for each, version in found["versions"].items()),
        )
        print(f"| {name} | {len(losses)} | {losses[0]:.3f} | {losses[-1]:.3f} | {versions} |", flush=True)
    return bool(failed)


def train(shards: str, cache: Path, arguments: tuple[str, ...] = ()) -> dict[str, Any]:
    """Train for one epoch, and return what `consumers/train_openclip.py` prints.

    Args:
        shards: a tar or a brace pattern.
        cache: folder of the environment.
        arguments: further ones of OpenCLIP.

    Raises:
        CannotBeUsed: the environment cannot be made, or the script fails.
    """
    python = python_of(OPEN_CLIP, cache)
    env = {**environment_of(OPEN_CLIP, cache), "OMP_NUM_THREADS": "1"}
    env.pop("PYTHONPATH")  # a folder `datasets` of ours would stand in Hugging Face's place
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [python, HERE / OPEN_CLIP.script, shards, scratch, *arguments],
            cwd=scratch,
            env=env,
            capture_output=True,
            text=True,
            check=False,
        )
    for line in reversed(done.stdout.splitlines()):
        if line.startswith("{"):
            return dict(json.loads(line))
    raise CannotBeUsed("\n".join([*done.stderr.splitlines()[-20:], f"exit code {done.returncode}"]))


if __name__ == "__main__":
    sys.exit(main())
