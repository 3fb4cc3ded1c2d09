"""Stages of an incremental build that a full one has not, or has in another way.

``freeze``   what judged the last full build is fitted and saved, once
``refine``   new negatives are judged by what is frozen
``audit``    every blind attack on all kept negatives, old and new
``sizes``    the new shards are counted with those that stand
"""

from pathlib import Path
from typing import Any

import orjson
import polars as pl

from pairwright.datasets.atomic_files import write_bytes
from pairwright.datasets.shards.webdataset import append_shards, summarize_shards
from pairwright.filters.attacks.evidence import RowTexts
from pairwright.filters.audit.hackability import run_audit
from pairwright.filters.refinement.appended_rows import (
    AppendedRefinement,
    CarriedPreferences,
    refine_appended_against_all,
    refine_appended_with_two_scorers,
)
from pairwright.filters.refinement.frozen_scorers import FrozenScorers
from pairwright.filters.refinement.two_scorers import Refinement
from pairwright.flows.config.sections import RefineSection
from pairwright.flows.stages.refine import (
    ROWS,
    added_scorers,
    corpus_of_parts,
    general_options,
    reference_options,
    refine_with,
    rows_of,
)
from pairwright.flows.state.layout import annotations_path, candidates_path
from pairwright.flows.state.receipts import Counts, JobResult
from pairwright.flows.state.versions import AUDIT

FROZEN = "frozen"
MAX_ACCURACY = 0.55


def freeze(root: Path, stages: list[str], parts: list[str], section: RefineSection) -> JobResult:
    """Fit what judges later rows, on the captions and candidates of the last full build; the unit is a caption.

    Args:
        root: the build directory.
        stages: whose candidates were refined.
        parts: of the full build.
        section: of the config; classifiers are fitted for the general method.
    """
    places = [(root, part) for part in parts]
    corpus = corpus_of_parts(places, pool=True)
    entering = None
    if section.method == "general":
        rows = pl.concat([ROWS.to_frame(), *rows_of(places, stages, candidates_path)])
        columns = (rows[name].to_list() for name in ("positive", "negative", "group", "type"))
        entering = RowTexts(*columns)
    outputs = FrozenScorers.of(corpus, entering).save(root / FROZEN)
    captions = len(corpus.captions)
    facts = {"negatives": len(entering.types) if entering else 0}
    return JobResult(outputs, Counts("caption", captions, captions), facts)


def refine_new(  # noqa: PLR0913, PLR0917 - a job's arguments
    root: Path,
    home: Path,
    stages: list[str],
    parts: list[str],
    full: list[str],
    section: RefineSection,
    seed: int,
    carried: CarriedPreferences,
) -> JobResult:
    """Refine the hard negatives of new pairs against what is frozen; as `refine.refine_negatives`.

    Args:
        root: where the new parts stand.
        home: the build directory.
        stages: whose candidates are refined.
        parts: the new ones.
        full: those of the last full build.
        section: of the config.
        seed: of the build.
        carried: what earlier increments left (`appended.Appended`); what this one leaves stands among the facts.
    """
    frozen = FrozenScorers.load(home / FROZEN)
    corpus = corpus_of_parts([(home, part) for part in full])
    left: dict[str, Any] = {"carried": carried}

    def judge(rows: pl.DataFrame) -> Refinement:
        if section.method == "reference":
            found: AppendedRefinement = refine_appended_with_two_scorers(
                rows, frozen, corpus, reference_options(section, seed)
            )
        else:
            scorers = added_scorers(section)
            options = general_options(section, seed)
            found = refine_appended_against_all(rows, frozen, corpus, options, carried, scorers=scorers)
        left["carried"] = found.carried
        return found.refinement

    outcome = refine_with(root, stages, parts, judge)
    return JobResult(outcome.outputs, outcome.counts, {**outcome.facts, **left})


def audit_all(  # noqa: PLR0913, PLR0917 - a job's arguments
    root: Path, home: Path, stages: list[str], old: list[str], new: list[str], seed: int
) -> JobResult:
    """Attack all kept hard negatives, those that stand and the new ones; the unit is a negative.

    SHUFFLE rows, which are for training, take no part.
    """
    places = [*((home, part) for part in old), *((root, part) for part in new)]
    rows = pl.concat([ROWS.to_frame(), *rows_of(places, stages, annotations_path)])
    told = (
        run_audit(rows, corpus_of_parts(places, pool=True), limit=MAX_ACCURACY, seed=seed).as_json()
        if rows.height
        else {}
    )
    write_bytes(root / AUDIT, orjson.dumps(told, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    shown = ("rows", "verdict", "max", "attacks", "by_type", "breaks", "identical", "repeated", "format_leaks")
    counts = Counts("negative", rows.height, rows.height)
    return JobResult([root / AUDIT], counts, {"audit": {name: told[name] for name in shown if name in told}})


def write_sizes(root: Path, home: Path, image_ext: str) -> JobResult:
    """Write ``sizes.json`` and the check sums over the shards that stand and the new ones; the unit is a new sample."""
    written, new = append_shards(root / "shards", home / "shards", image_ext)
    outputs = sorted(path for path in (root / "shards").iterdir() if path.suffix != ".tar" and path.name[0] != ".")
    return JobResult(outputs, Counts("sample", new, new), summarize_shards(written))
