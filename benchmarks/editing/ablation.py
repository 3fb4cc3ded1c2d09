"""What each constraint, each table of the lexicon and the floor of the rule edits pay.

    python -m benchmarks.editing.ablation CAPTIONS.jsonl [--half even] [--images 1000] [--constraints A,B] [--tables C,D]
    python -m benchmarks.editing.ablation CAPTIONS.jsonl --floors 0.001,0.003,0.01,0.03

Captions are tagged, counted and learned from once. Then the rules run without each constraint, with
``skip_constraints={id}``, on the captions of which it rejected an edit (all, if it is one of a classifier), and without
each table of the lexicon in a process of its own, with the rows of the table removed (``NAME``, or ``NAME:COLUMN=VALUE``
for a part of it), positives included. A line of the table is one type of edit that changes:

- *changed*: share of the captions whose edit differs, appears or disappears.
- *yield*, *words*, *log prob*, *unlikely*, *plausibility*: figures of `attacks.py` without the constraint, each less
  that with all of them. A constraint of plausibility pays if they get worse without it.
- *said*: the same for the share of edits whose inserted words occur in a caption of the image that was hidden from the
  rules: a proxy for edits that are true. A constraint of truth pays if it rises without it.
- *improbable*: the same for the share of replacements below `cloze.IMPROBABLE` times the probability of the words of
  the caption, under a cloze model of captions of other images.

The last caption of each image is hidden. The pool is the whole half of the file; models that judge learn the other half.
``--examples`` prints edits that change, as they are and without the constraint: read them on captions that are not
reported. The last line has the time: wall and CPU seconds of all processes.
"""

import argparse
import json
import pickle
import random
import re
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from benchmarks.editing.attacks import HeldOutModels, TextRow, measure_rows
from benchmarks.editing.cloze import EditedPair, HeldOutCloze
from benchmarks.editing.pool import learn_pool, read_pairs
from benchmarks.editing.report import percent, table
from pairwright.datasets.records import Annotation, Pair
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.content_counts import annotation_type
from pairwright.generators.edit_types import BENCHMARK_TYPES
from pairwright.generators.edits.constraints import table as constraint_table
from pairwright.generators.edits.constraints.table import CONSTRAINTS, Constraint
from pairwright.generators.edits.edit_model import EditModel
from pairwright.generators.edits.editors import CLASSIFIERS as EDIT_CLASSIFIERS
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.tokens import Token
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.lexicon.tables import DATA
from pairwright.generators.negatives import NegativeOptions, RuleNegatives
from pairwright.generators.positives import RulePositives

FIGURES = ("yield", "single_words", "words", "log_prob_change", "unlikely", "plausibility_change", "improbable", "said")
CURVE = (
    "yield",
    "single_words",
    "words",
    "trigram_total",
    "log_prob_change",
    "unlikely",
    "improbable",
    "said",
)
NATS = ("log_prob_change", "plausibility_change")
MIN_CHANGED = 0.001  # share of captions from which figures are computed
MOST_EXAMPLES = 40
POSITIVE = "positive "  # before the type of a positive
JUDGED = frozenset(name for each in EDIT_CLASSIFIERS.values() for name in each.constraints)  # of many edits at once
BATCH = 500
CLOZE_CAPTIONS = 25_000
CLASSIFIERS = ("single_words", "words")
EDITED_WORDS = ("replace", "add")
_WITHOUT_TABLE = """
import sys
import pairwright.generators.lexicon.tables as tables
name, _, part = sys.argv[1].partition(":")
column, _, value = part.partition("=")
read = tables.read_rows
def read_without(table):
    return [row for row in read(table) if table != name or (part and row[column] != value)]
tables.read_rows = read_without
from benchmarks.editing.ablation import edit_saved
edit_saved(sys.argv[2], sys.argv[3])
"""


Edits = dict[str, dict[str, Annotation]]  # type to key of the pair to its kept edit
Blocked = Mapping[str, Collection[str]]  # constraint to the keys of pairs of which it rejected an edit


@dataclass(frozen=True)
class Variant:
    """One change: constraints that are skipped, or rows of a table of the lexicon that are removed."""

    name: str
    skipped: frozenset[str] = frozenset()
    table: str = ""


@dataclass(frozen=True, eq=False)
class Materials:
    """What all variants share.

    Attributes:
        pairs: the edited captions, each with the others of its image except the hidden one.
        tokens: of each caption.
        hidden: key of a pair to the hidden caption of its image, in lower case.
        pool: word statistics of the captions.
        model: edit model of the captions; its word balance is that of the unchanged rules.
        options: of the unchanged rules.
    """

    pairs: Sequence[Pair]
    tokens: Sequence[Sequence[Token]]
    hidden: Mapping[str, str]
    pool: PoolStatistics
    model: EditModel
    options: NegativeOptions

    @classmethod
    def read(cls, rows: Sequence[dict[str, Any]], images: int, options: NegativeOptions) -> "Materials":
        """Return the materials: the pool of all rows, and pairs of the first images."""
        pairs = read_pairs([row | {"captions": row["captions"][:-1]} for row in rows[:images]])
        last = {str(row["image_id"]): row["captions"][-1].lower() for row in rows[:images]}
        hidden = {pair.key: last[pair.source_id] for pair in pairs}
        tokens = load_tagger().tag([pair.caption for pair in pairs])
        return cls(pairs, tokens, hidden, *learn_pool(read_pairs(rows)), options)

    def of(self, keys: Collection[str]) -> "Materials":
        """Return the materials with some of the pairs alone."""
        chosen = [at for at, pair in enumerate(self.pairs) if pair.key in keys]
        return replace(self, pairs=[self.pairs[at] for at in chosen], tokens=[self.tokens[at] for at in chosen])


class Judges(NamedTuple):
    """Models of captions of other images."""

    models: HeldOutModels
    cloze: HeldOutCloze

    @classmethod
    def fit(cls, captions: Sequence[str]) -> "Judges":
        """Return the models of captions."""
        return cls(HeldOutModels.fit(captions), HeldOutCloze.fit(captions[:CLOZE_CAPTIONS]))


@dataclass(frozen=True, eq=False)
class Baseline:
    """The edits of the unchanged rules with their figures by type, and what judges edits."""

    materials: Materials
    judges: Judges
    saved: Path
    edits: Edits
    blocked: Blocked
    figures: Mapping[str, Mapping[str, float]]


def make_edits(materials: Materials, options: Mapping[str, Any]) -> Edits:
    """Return the negatives by type with some options changed."""
    maker = RuleNegatives(load_wordnet(), materials.pool, replace(materials.options, **options), materials.model)
    return _annotate(maker, materials, "")


def make_positives(materials: Materials) -> Edits:
    """Return the positives by type."""
    return _annotate(RulePositives(materials.pool, model=materials.model.cloze), materials, POSITIVE)


def _annotate(maker: RuleNegatives | RulePositives, materials: Materials, prefix: str) -> Edits:
    rngs = [make_rng(0, 0, maker.name, maker.version, pair.key) for pair in materials.pairs]
    found: Edits = defaultdict(dict)
    for start in range(0, len(rngs), BATCH):
        batch = slice(start, start + BATCH)
        for rows in maker.annotate_batch(materials.pairs[batch], materials.tokens[batch], rngs[batch]):
            for row in rows:
                if row.status == "kept":
                    found[prefix + annotation_type(row)][row.key] = row
    return dict(found)


@contextmanager
def record_blocked() -> Iterator[Blocked]:
    """Record of which pairs each constraint rejects edits."""
    blocked: dict[str, set[str]] = defaultdict(set)

    def recorded(each: Constraint) -> Callable[[Any, Any], bool]:
        def violated(edit: Any, known: Any) -> bool:
            found = each.violated(edit, known)
            if found:
                blocked[each.id].add(edit.caption.pair.key)
            return found

        return violated

    constraint_table.CONSTRAINTS = tuple(replace(each, violated=recorded(each)) for each in CONSTRAINTS)  # type: ignore[misc]
    constraint_table.applicable_constraints.cache_clear()
    try:
        yield blocked
    finally:
        constraint_table.CONSTRAINTS = CONSTRAINTS  # type: ignore[misc]
        constraint_table.applicable_constraints.cache_clear()


def edit_skipping(skipped: frozenset[str], baseline: Baseline) -> Edits:
    """Return the edits without some constraints; only pairs of which they rejected an edit are edited again."""
    keys = {pair.key for pair in baseline.materials.pairs}
    if not skipped & JUDGED:
        keys = {key for name in skipped for key in baseline.blocked.get(name, ())}
    again = make_edits(baseline.materials.of(keys), {"skip_constraints": skipped})
    return {
        kind: found
        if kind.startswith(POSITIVE)
        else {key: row for key, row in found.items() if key not in keys} | again.get(kind, {})
        for kind, found in baseline.edits.items()
    }


def save_materials(materials: Materials, folder: Path) -> None:
    """Write materials for `edit_saved`, in parts whose classes are known in other processes."""
    materials.model.save(folder)
    rest = (materials.pairs, materials.tokens, materials.hidden, materials.pool, materials.options)
    (folder / "materials").write_bytes(pickle.dumps(rest))


def edit_saved(folder: str, target: str) -> None:
    """Read saved materials, and write their edits to a file; run by processes without a table."""
    rest = (Path(folder) / "materials").read_bytes()
    pairs, tokens, hidden, pool, options = pickle.loads(rest)  # noqa: S301 - written by this program
    materials = Materials(pairs, tokens, hidden, pool, EditModel.load(Path(folder)), options)
    Path(target).write_bytes(pickle.dumps(make_edits(materials, {}) | make_positives(materials)))


def edit_without(table_name: str, saved: Path) -> Edits | str:
    """Return the edits with rows of a table removed, or why the rules do not run without them."""
    with TemporaryDirectory() as folder:
        out = Path(folder) / "edits"
        command = [sys.executable, "-c", _WITHOUT_TABLE, table_name, str(saved), str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return done.stderr.strip().rpartition("\n")[2]
        edits: Edits = pickle.loads(out.read_bytes())  # noqa: S301 - written by this program
        return edits


def describe(kind: str, edits: Mapping[str, Annotation], materials: Materials, judges: Judges) -> dict[str, float]:
    """Return the figures of a type."""
    made = [
        EditedPair(pair, tokens, edits[pair.key])
        for pair, tokens in zip(materials.pairs, materials.tokens, strict=True)
        if pair.key in edits
    ]
    texts = [TextRow(edit.pair.source_id, edit.annotation.source_text, edit.annotation.text) for edit in made]
    said = [_is_said(edit.annotation, materials.hidden[edit.pair.key]) for edit in made]
    return {
        "yield": round(len(made) / len(materials.pairs), 4),
        **measure_rows(texts, judges.models, CLASSIFIERS, seeds=(1,)),
        **judges.cloze.describe(kind.removeprefix(POSITIVE), made),
        **(
            {"said": round(sum(said) / len(said), 4)}
            if said and kind.removeprefix(POSITIVE).startswith(EDITED_WORDS)
            else {}
        ),
    }


def _is_said(annotation: Annotation, caption: str) -> bool:
    inserted = {edit.after.lower().strip(" ,") for edit in annotation.edits} - {"", "a", "an"}
    return any(re.search(rf"\b{re.escape(words)}\b", caption) for words in inserted)


# Set before worker processes are forked, which share its memory.
_baselines: list[Baseline] = []


def compare(variant: Variant) -> dict[str, Any]:
    """Return for each type the edits that a variant changes, and its figures less those of the unchanged rules."""
    (baseline,) = _baselines
    edits = edit_without(variant.table, baseline.saved) if variant.table else edit_skipping(variant.skipped, baseline)
    if isinstance(edits, str):
        return {"error": edits}
    found = {}
    for kind in sorted({*edits, *baseline.edits}):
        one, other = edits.get(kind, {}), baseline.edits.get(kind, {})
        changed = sorted(key for key in {*one, *other} if one.get(key) != other.get(key))
        if changed:
            found[kind] = {
                "changed": round(len(changed) / len(baseline.materials.pairs), 5),
                "change": _compare_figures(kind, one, baseline, len(changed)),
                "examples": [
                    [
                        (one.get(key) or other[key]).source_text,
                        *(edit[key].text if key in edit else "" for edit in (other, one)),
                    ]
                    for key in random.Random(0).sample(changed, min(len(changed), MOST_EXAMPLES))
                ],
            }
    return found


def _compare_figures(kind: str, edits: Mapping[str, Annotation], baseline: Baseline, changed: int) -> dict[str, float]:
    if changed < MIN_CHANGED * len(baseline.materials.pairs):
        return {}
    figures, before = describe(kind, edits, baseline.materials, baseline.judges), baseline.figures.get(kind, {})
    return {name: round(figures[name] - before[name], 4) for name in FIGURES if name in figures and name in before}


def measure_floor(floor: float) -> dict[str, Any]:
    """Return the figures of each type at a floor."""
    (baseline,) = _baselines
    edits = make_edits(baseline.materials, {"floor": floor})
    return {kind: describe(kind, found, baseline.materials, baseline.judges) for kind, found in sorted(edits.items())}


def render_comparison(found: Mapping[str, Mapping[str, Any]], examples: int) -> str:
    """Return a table of what changes enough, the names of the others, and edits that change."""
    failed = [f"{name} ({types['error']})" for name, types in found.items() if "error" in types]
    lines = [(name, *item) for name, types in found.items() if "error" not in types for item in types.items()]
    rows = [
        [name, kind, percent(one["changed"]), *(_signed(name, one["change"].get(name)) for name in FIGURES)]
        for name, kind, one in lines
        if one["change"]
    ]
    few = ", ".join(f"{name} ({kind} {one['changed']:.2%})" for name, kind, one in lines if not one["change"])
    texts = [
        f"{name} | {kind} | {' -> '.join(each)}" for name, kind, one in lines for each in one["examples"][:examples]
    ]
    nothing = ", ".join(name for name, types in found.items() if not types)
    head = ["without", "type", "changed", *(name.replace("_", " ") for name in FIGURES)]
    notes = [f"change little: {few}", f"change nothing: {nothing}", f"do not run: {'; '.join(failed)}"]
    return "\n\n".join([table(head, rows), *notes, *texts])


def _signed(name: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:+.3f}" if name in NATS else f"{value:+.1%}"


def render_curve(found: Mapping[Any, Mapping[str, Any]]) -> str:
    """Return a table of the figures by type and floor."""
    rows = [
        [kind, floor, *(f"{one[name]:.3f}" if name in one else "" for name in CURVE)]
        for kind in sorted({kind for types in found.values() for kind in types})
        for floor, types in found.items()
        if (one := types.get(kind))
    ]
    return table(["type", "floor", *(name.replace("_", " ") for name in CURVE)], rows)


def list_variants(constraints: Sequence[str] | None, tables: Sequence[str] | None) -> list[Variant]:
    """Return the variants of constraints and tables; by default of all, and of each group of constraints."""
    if constraints is None:
        constraints = [each.id for each in CONSTRAINTS] + sorted({each.group for each in CONSTRAINTS})
    if tables is None:
        tables = sorted(path.stem for path in DATA.glob("*.tsv"))
    for each in tables:
        if not (DATA / f"{each.partition(':')[0]}.tsv").exists():
            raise SystemExit(f"--tables: {DATA} has no table {each!r}")
    members = {each: frozenset(one.id for one in CONSTRAINTS if each in (one.id, one.group)) for each in constraints}
    # Tables first, which take longest.
    return [*(Variant(f"table {each}", table=each) for each in tables), *(Variant(*each) for each in members.items())]


def _time_used(start: float) -> str:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return f"{time.monotonic() - start:.0f} s, {sum(each.ru_utime + each.ru_stime for each in used):.0f} s of CPU"


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path)
    parser.add_argument("--half", choices=["even", "odd"], default="even", help="lines of the file")
    parser.add_argument("--images", type=int, default=1_250, help="images whose captions are edited, but the last one")
    parser.add_argument("--types", type=_names, default=list(BENCHMARK_TYPES))
    parser.add_argument("--constraints", type=_names, help="ids or groups; default: all")
    parser.add_argument("--tables", type=_names, help="NAME or NAME:COLUMN=VALUE; default: all tables")
    parser.add_argument("--floors", type=lambda text: [float(each) for each in text.split(",")], default=[])
    parser.add_argument("--examples", type=int, default=0, metavar="K", help="print K edits of each line")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    start = time.monotonic()
    rows = [json.loads(line) for line in asked.captions.read_text(encoding="utf-8").splitlines()]
    rows = [row | {"captions": [text for text in row["captions"] if text.strip()]} for row in rows]
    first = int(asked.half == "odd")
    others = [text for row in rows[1 - first :: 2] for text in row["captions"]]
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as processes:
        fitting = processes.submit(Judges.fit, others)
        materials = Materials.read(rows[first::2], asked.images, NegativeOptions(types=tuple(asked.types)))
        with record_blocked() as blocked:
            edits = make_edits(materials, {}) | make_positives(materials)
        judges = fitting.result()
    figures = {kind: describe(kind, found, materials, judges) for kind, found in sorted(edits.items())}
    print(
        f"{len(materials.pairs):,} captions of {asked.images:,} images\n\n{render_curve({'default': figures})}",
        flush=True,
    )
    with TemporaryDirectory() as folder:
        saved = Path(folder)
        save_materials(materials, saved)
        _baselines.append(Baseline(materials, judges, saved, edits, blocked, figures))
        with ProcessPoolExecutor(asked.workers, mp_context=get_context("fork")) as processes:
            if asked.floors:
                found: dict[Any, Any] = dict(zip(asked.floors, processes.map(measure_floor, asked.floors), strict=True))
                print(render_curve(found))
            else:
                variants = list_variants(asked.constraints, asked.tables)
                found = dict(zip([each.name for each in variants], processes.map(compare, variants), strict=True))
                print(render_comparison(found, asked.examples))
    print(_time_used(start))
    if asked.json:
        saved_figures = {"default": figures, "variants": found}
        asked.json.write_text(json.dumps(saved_figures, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
