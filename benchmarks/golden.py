"""Golden outputs: hashes of the files that fixed commands write, to show that a refactoring changes no output.

    python -m benchmarks.golden record golden.json [--captions CAPTIONS]     before a change
    python -m benchmarks.golden check golden.json [--captions CAPTIONS]      after it: lists what differs; exit code 1

The commands cover rules (negatives, positives, both sides, conversations, triples), refinement, audit, retrieval, a text
build, an image build, shards and every export. They run on a ColorShape corpus that the script draws; with CAPTIONS (any
input with captions of images, COCO's as JSON lines, say), on its first `REAL` rows as well. Compare on one machine only:
another processor may round sums in another order.

Files that hold times, versions or paths (manifests, receipts, cards, reports, configs) are left out. Of what a command
prints with ``--json`` nothing is hashed.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

REAL = 1_500  # rows of CAPTIONS
LEFT_OUT = {"manifest.json", "build.yaml", "README.md", "report.html", "index.json", "croissant.json", "corpus.json"}
LEFT_OUT_FOLDERS = {"receipts", "corpus", "manifests"}
EXPORTS = {
    "llava": "llava.json",
    "sugarcrepe": "sugarcrepe.json",
    "negclip": "negclip.tsv",
    "openai": "openai.jsonl",
    "triplets": "triplets.jsonl",
    "parquet": "pairs.parquet",
    "hf": "hf",
    "croissant": "croissant",
    "webdataset": "webdataset",
}


def commands(captions: str) -> Iterator[tuple[str, list[str]]]:
    """Yield a name and the arguments of each command; outputs go to a folder of that name."""
    yield "demo", ["demo", "--no-prefect", "--pairs", "600", "--workers", "2", "--out", "demo"]
    yield "text-build", ["build", "text.yaml", "--no-prefect", "--workers", "2", "--out", "text-build"]
    for to, name in EXPORTS.items():
        yield f"export-{to}", ["export", "demo", "--to", to, "--out", f"export-{to}/{name}"]
    inputs = {"colorshape": "demo/corpus/00000.tar", **({"real": captions} if captions else {})}
    for given, path in inputs.items():
        made = f"{given}-negatives/rows.jsonl"
        yield f"{given}-negatives", ["generate", "negatives", path, "--out", made]
        yield (
            f"{given}-shuffle",
            ["generate", "negatives", path, "--types", "shuffle", "--out", f"{given}-shuffle/rows.jsonl"],
        )
        both = f"{given}-both-sides/rows.jsonl"
        yield f"{given}-both-sides", ["generate", "negatives", path, "--both-sides", "--seed", "3", "--out", both]
        limits = ["--quota", "200", "--max-word-share", "0.05"]
        yield f"{given}-limited", ["generate", "negatives", path, *limits, "--out", f"{given}-limited/rows.parquet"]
        yield f"{given}-positives", ["generate", "positives", path, "--out", f"{given}-positives/rows.jsonl"]
        talks = f"{given}-conversations/rows.jsonl"
        yield f"{given}-conversations", ["generate", "conversations", path, "--out", talks]
        yield f"{given}-triples", ["generate", "triples", made, "--out", f"{given}-triples/rows.jsonl"]
        yield f"{given}-refine", ["refine", made, "--out", f"{given}-refine/rows.jsonl"]
        reference = ["--reference", "--cells", "20", "--out", f"{given}-reference/rows.jsonl"]
        yield f"{given}-reference", ["refine", made, *reference]
        yield f"{given}-audit", ["audit", made, "--report", f"{given}-audit/page.md"]
        yield f"{given}-index", ["index", "build", path, "--out", f"{given}-index"]
        hits = ["--k", "20", "--out", f"{given}-retrieve/hits.parquet", "--pairs", f"{given}-retrieve/pairs.parquet"]
        yield f"{given}-retrieve", ["retrieve", "--index", f"{given}-index", "--queries", "queries.json", *hits]


TEXT_BUILD = """\
name: text
seed: 5
input: {path: demo/corpus/00000.tar}
negatives: {both_sides: true}
positives: {}
conversations: {vocabulary: [circle, square, heart, star, cross, ring]}
refine: {method: general}
shards: {images: false}
part_size: 200
"""
QUERIES = {"animals": {"classes": ["dog", "cat", "red circle", "blue square"], "templates": ["a photo of a {}."]}}


def run(folder: Path, captions: str) -> dict[str, str]:
    """Run all commands in ``folder``; return the SHA-256 of each file by its path."""
    (folder / "text.yaml").write_text(TEXT_BUILD, encoding="utf-8")
    (folder / "queries.json").write_text(json.dumps(QUERIES), encoding="utf-8")
    if captions:
        with Path(captions).open(encoding="utf-8") as given:
            (folder / "real.jsonl").write_text("".join(islice(given, REAL)), encoding="utf-8")
        captions = "real.jsonl"
    hashes: dict[str, str] = {}
    for name, arguments in commands(captions):
        out = folder / name
        if name.partition("-")[0] not in {"demo", "text"} and not name.endswith("-index"):
            out.mkdir()
        code = _call(folder, arguments)
        print(f"{name:<28} exit {code}", file=sys.stderr, flush=True)
        hashes[f"{name}: exit code"] = str(code)
        hashes |= {f"{name}/{path}": digest for path, digest in _hashes(out)}
    return hashes


def _call(folder: Path, arguments: Sequence[str]) -> int:
    command = [sys.executable, "-m", "pairwright", *arguments]
    done = subprocess.run(
        command, check=False, cwd=folder, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}
    )
    if done.returncode not in {0, 3}:
        sys.exit(f"{' '.join(arguments)}: exit code {done.returncode}\n{done.stderr}")
    return done.returncode


def _hashes(out: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(out.rglob("*")):
        inside = path.relative_to(out)
        if path.is_file() and path.name not in LEFT_OUT and not LEFT_OUT_FOLDERS & set(inside.parts):
            yield inside.as_posix(), hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    """Record hashes, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["record", "check"])
    parser.add_argument("file", type=Path, help="JSON file of the hashes")
    parser.add_argument("--captions", default="", help="JSON lines with captions of images")
    given = parser.parse_args()
    captions = str(Path(given.captions).resolve()) if given.captions else ""
    folder = Path(tempfile.gettempdir()) / "pairwright-golden"  # always the same: tables of pairs hold paths of images
    folder.mkdir()
    try:
        found = run(folder, captions)
    finally:
        shutil.rmtree(folder)
    if given.action == "record":
        given.file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        print(f"{len(found):,} hashes -> {given.file}")
        return
    before = json.loads(given.file.read_text(encoding="utf-8"))
    names = sorted({*before, *found})
    changed = [f"{_mark(name, before, found)} {name}" for name in names if before.get(name) != found.get(name)]
    print("\n".join(changed) or f"{len(found):,} hashes are equal")
    sys.exit(bool(changed))


def _mark(name: str, before: dict[str, str], now: dict[str, str]) -> str:
    """Return whether an output is new (+), gone (-) or changed (~)."""
    return "+" if name not in before else "-" if name not in now else "~"


if __name__ == "__main__":
    main()
