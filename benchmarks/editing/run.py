"""Hard negatives by rules on real captions: yield, attacks, words, candidates per slot, speed and memory.

    python -m benchmarks.editing.run CAPTIONS.jsonl [--half odd] [--images 4000] [--types A,B] [--json OUT] [--markdown OUT]
    python -m benchmarks.editing.run CAPTIONS.jsonl --half odd --readings FOLDER [--per-type 60]
    python -m benchmarks.editing.run CAPTIONS.jsonl --half odd --refine

Rows of the input are ``{"image_id", "captions": [...]}``; every caption of the first ``--images`` images of the half
(even or odd lines) becomes a pair with the other captions of its image. The models that attack are trained on the other
half; with ``--half all``, on images behind the first ``--images``. Edits are made by ``pairwright generate negatives``,
so any checkout can be measured: ``PYTHONPATH=OTHER/src python -m benchmarks.editing.run ...``. By type:

- *yield*: share of captions with a kept negative; *rejected*: reasons, as shares of the captions.
- attacks and naturalness proxies, see `attacks.py`, on at most `ATTACK_ROWS` rows; classifiers on fewer, too.
- *inserted*, *removed*: the most frequent ones, each with its share; *imbalance*: total variation distance, 0-1, between
  the distributions of inserted and of removed words.
- *slots*: distinct kept edits of one slot of a caption, asked for `PER_SLOT` negatives.
- *speed*: of the whole command with one and two workers: wall and CPU seconds, captions per second, peak memory.

Sections besides the default options: *both* (ADD types beside a hard positive) and *slots*.
"""

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.editing.attacks import SINGLE_WORDS, HeldOutModels, TextRow, measure_classifiers, measure_rows
from benchmarks.editing.readings import sample_items, write_readings
from benchmarks.editing.refinement import measure_refinement
from benchmarks.editing.report import render_markdown
from benchmarks.process_usage import measured

ATTACK_ROWS = 5_000
FEWER_ROWS = (1_000, 2_000)  # classifiers get better with rows, so sets of unequal size do not compare
PER_SLOT = 24
SLOT_IMAGES = 400
TOP = 8
ADD_TYPES = ("add-object", "add-attribute")
SLOT_TYPES = ("replace-object", "replace-attribute", "replace-relation")
ARTICLES = frozenset({"a", "an"})

Row = dict[str, Any]


@dataclass(frozen=True)
class Sample:
    """Images whose captions are edited, as a file, and captions of other images."""

    path: Path
    images: Sequence[Row]
    others: Sequence[str]
    pool: Path
    seed: int

    @classmethod
    def read(cls, asked: argparse.Namespace, folder: Path) -> "Sample":
        """Select the images that are asked for, and write them to a file in ``folder``."""
        half, images = asked.half, asked.images
        rows = [json.loads(line) for line in asked.captions.read_text(encoding="utf-8").splitlines()]
        rows = [row | {"captions": [text for text in row["captions"] if text.strip()]} for row in rows]
        first = {"even": 0, "odd": 1, "all": 0}[half]
        selected = rows[first :: 1 if half == "all" else 2]
        others = selected[images:] if half == "all" else rows[1 - first :: 2]
        written, pool = folder / "captions.jsonl", folder / "pool.jsonl"
        written.write_text("".join(json.dumps(row) + "\n" for row in selected[:images]), encoding="utf-8")
        pool.write_text("".join(json.dumps(row) + "\n" for row in selected), encoding="utf-8")
        captions = [text for row in others for text in row["captions"]]
        return cls(written, selected[:images], captions, pool if asked.wide_pool else written, asked.seed)


@dataclass(frozen=True)
class Generated:
    """Rows of ``generate negatives``, kept and rejected, its summary and what it used."""

    rows: Sequence[Row]
    summary: Mapping[str, Any]
    speed: Mapping[str, float]
    digest: str

    def kept(self, kind: str) -> list[Row]:
        """Return the kept rows of a type."""
        return [row for row in self.rows if row["status"] == "kept" and row_type(row) == kind]


def generate(sample: Sample, *options: str, workers: int = 0, path: Path | None = None) -> Generated:
    """Run ``pairwright generate negatives`` on the captions of the sample, or on those of ``path``."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "negatives.jsonl"
        command = [sys.executable, "-m", "pairwright", "generate", "negatives", str(path or sample.path), "--explode"]
        command += ["--out", str(out), "--seed", str(sample.seed), "--workers", str(workers), "--json", "-q", *options]
        command += ["--pool", str(sample.pool)] if sample.pool != (path or sample.path) else []
        used = measured(command)
        content = out.read_bytes()
    summary = json.loads(used.stdout)
    speed = {
        "wall": round(used.wall, 1),
        "cpu": round(used.cpu, 1),
        "captions_per_second": round(summary["captions"] / used.wall),
        "captions_per_cpu_second": round(summary["captions"] / used.cpu),
        "resident_mb": used.resident // 2**20,
        "anonymous_mb": used.anonymous // 2**20,
    }
    rows = [json.loads(line) for line in content.decode().splitlines()]
    return Generated(rows, summary, speed, sha256(content).hexdigest())


def row_type(row: Row) -> str:
    """Return the type of a row, such as "replace-object"."""
    return f"{row['form']}-{row['target']}" if row["target"] else str(row["form"])


def text_rows(rows: Iterable[Row]) -> list[TextRow]:
    """Return the texts of kept rows; a hard positive takes the place of the caption."""
    return [TextRow(row["image"], row["positive"] or row["caption"], row["negative"]) for row in rows]


def describe_type(kind: str, made: Generated, models: HeldOutModels, seed: int) -> dict[str, Any]:
    """Return the figures of a type."""
    kept, captions = made.kept(kind), made.summary["captions"]
    edited = len({(row["key"], row["caption"]) for row in kept})
    attacked = random.Random(seed).sample(kept, min(len(kept), ATTACK_ROWS))
    rejected = made.summary["types"][kind]["rejected"]
    return {
        "rows": len(kept),
        "yield": round(edited / captions, 4),
        "attacked": len(attacked),
        **measure_rows(text_rows(attacked), models),
        "by_rows": {
            str(number): measure_classifiers(text_rows(attacked[:number]), (SINGLE_WORDS, "words"))
            for number in FEWER_ROWS
            if number <= len(attacked)
        },
        **count_words(kept),
        "rejected": {reason: round(count / captions, 4) for reason, count in sorted(rejected.items())},
    }


def count_words(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the most inserted and most removed phrases with their shares, and the imbalance of their words."""
    inserted, removed = Counter[str](), Counter[str]()
    for row in rows:
        for edit in row["edit"]:
            before, after = edit["from"].lower().strip(" ,"), edit["to"].lower().strip(" ,")
            if not {before, after} <= ARTICLES:
                inserted[after] += 1
                removed[before] += 1
    del inserted[""], removed[""]
    tops = {
        name: [[phrase, round(count / max(counts.total(), 1), 4)] for phrase, count in counts.most_common(TOP)]
        for name, counts in (("inserted", inserted), ("removed", removed))
    }
    return tops | ({"imbalance": _imbalance(inserted, removed)} if removed else {})


def _imbalance(inserted: Counter[str], removed: Counter[str]) -> float:
    shares = []
    for counts in (inserted, removed):
        words = Counter[str]()
        for phrase, count in counts.items():
            for word in phrase.split():
                words[word] += count
        shares.append({word: count / words.total() for word, count in words.items()})
    one, other = shares
    return round(sum(abs(one.get(word, 0) - other.get(word, 0)) for word in one.keys() | other.keys()) / 2, 4)


def describe_slots(kind: str, rows: Sequence[Row]) -> dict[str, float]:
    """Return how many distinct kept edits the slots have that have any."""
    by_caption = defaultdict(list)
    for row in rows:
        by_caption[row["key"], row["caption"]].append(row)
    sizes = sorted(size for found in by_caption.values() for size in _slot_sizes(kind, found))
    if not sizes:
        return {"slots": 0}
    return {
        "slots": len(sizes),
        "one": round(sum(size == 1 for size in sizes) / len(sizes), 4),
        "three_or_more": round(sum(size >= 3 for size in sizes) / len(sizes), 4),
        "median": sizes[len(sizes) // 2],
        "mean": round(sum(sizes) / len(sizes), 2),
        "captions": len(by_caption),
    }


def _slot_sizes(kind: str, rows: Sequence[Row]) -> Iterator[int]:
    # Spans that overlap are one slot; of relations, also spans that touch: the verb and its preposition.
    gap = 1 if kind == "replace-relation" else -1
    spans = sorted(span for row in rows if (span := _edited_span(row)))
    end, size = -9, 0
    for start, stop in spans:
        if start > end + gap and size:
            yield size
            size = 0
        end, size = max(end, stop) if size else stop, size + 1
    if size:
        yield size


def _edited_span(row: Row) -> tuple[int, int] | None:
    edits = [edit for edit in row["edit"] if not {edit["from"].lower(), edit["to"].lower()} <= ARTICLES]
    if not edits:
        return None
    return min(edit["from_span"][0] for edit in edits), max(edit["from_span"][1] for edit in edits)


def measure(sample: Sample, types: Sequence[str], workers: Sequence[int], sections: Sequence[str]) -> dict[str, Any]:
    """Return all figures."""
    models = HeldOutModels.fit(sample.others)
    asked = ["--types", ",".join(types)] if types else []
    runs = {number: generate(sample, *asked, workers=number) for number in workers}
    made = runs[workers[-1]]
    figures: dict[str, Any] = {
        "captions": made.summary["captions"],
        "images": len(sample.images),
        "default": {kind: describe_type(kind, made, models, sample.seed) for kind in made.summary["types"]},
        "speed": {str(number): run.speed for number, run in runs.items()},
        "same_bytes": len({run.digest for run in runs.values()}) == 1,
    }
    kinds = tuple(made.summary["types"])
    if "both" in sections and (added := [kind for kind in ADD_TYPES if kind in kinds]):
        beside = generate(sample, "--both-sides", "--types", ",".join(added))
        figures["both sides"] = {kind: describe_type(kind, beside, models, sample.seed) for kind in added}
    if "slots" in sections and (kinds := tuple(kind for kind in SLOT_TYPES if kind in kinds)):
        figures["slots"] = measure_slots(sample, kinds)
    return figures


def measure_slots(sample: Sample, kinds: Sequence[str]) -> dict[str, Any]:
    """Return the candidates per slot of the first images, with the words of the whole sample."""
    first = sample.path.with_name("first.jsonl")
    with sample.path.open(encoding="utf-8") as lines:
        first.write_text("".join(islice(lines, SLOT_IMAGES)), encoding="utf-8")
    asked = ["--types", ",".join(kinds), "--per-type", str(PER_SLOT)]
    many = generate(sample, *asked, path=first)
    return {kind: describe_slots(kind, many.kept(kind)) for kind in kinds}


def main() -> None:
    """Measure, or write readings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path)
    parser.add_argument("--half", choices=["even", "odd", "all"], default="all", help="lines of the file")
    parser.add_argument("--images", type=int, default=4_000, help="images whose captions are edited")
    parser.add_argument(
        "--wide-pool", action="store_true", help="count words in the whole half, not in the images alone"
    )
    parser.add_argument("--types", type=lambda text: text.split(","), default=[], help="separated by commas")
    parser.add_argument("--workers", type=lambda text: [int(each) for each in text.split(",")], default=[1, 2])
    parser.add_argument("--sections", default="both,slots", help="besides the default options")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="file for the figures")
    parser.add_argument("--markdown", type=Path, help="file for the tables")
    parser.add_argument("--readings", type=Path, metavar="FOLDER", help="only write sheets for readers")
    parser.add_argument("--per-type", type=int, default=60, help="of --readings: edits of each type")
    parser.add_argument("--untouched", type=int, default=60, help="of --readings: captions as they are")
    parser.add_argument("--refine", action="store_true", help="only measure refined rows")
    asked = parser.parse_args()
    with TemporaryDirectory() as folder:
        sample = Sample.read(asked, Path(folder))
        if asked.readings:
            options = ["--types", ",".join(asked.types)] if asked.types else []
            rows = [row | {"type": row_type(row)} for row in generate(sample, *options).rows if row["status"] == "kept"]
            rng = random.Random(asked.seed)
            write_readings(asked.readings, sample_items(rows, sample.images, asked.per_type, asked.untouched, rng))
            return
        if asked.refine:
            figures: dict[str, Any] = measure_refinement(sample.path, sample.pool, sample.others, asked.seed)
        else:
            figures = measure(sample, asked.types, asked.workers, asked.sections.split(","))
    if asked.json:
        asked.json.write_text(json.dumps(figures, indent=1) + "\n", encoding="utf-8")
    text = render_markdown(figures)
    if asked.markdown:
        asked.markdown.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
