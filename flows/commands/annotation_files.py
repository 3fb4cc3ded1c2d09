"""Annotations written to a file by its ending, as the command line's contract says.

``.jsonl``  one row an attempt, streamed: id, key, image, caption, the new text, edit, scores, status, reason
``.json``   SugarCrepe's layout for negatives (no SHUFFLE: a benchmark), LLaVA's for conversations: kept rows only
``.tsv``    NegCLIP's layout for negatives: kept rows only
``.parquet`` the annotation table of `datasets.tables`, every attempt
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.exports.writing import TRAINING_ONLY_FORMS
from pairwright.datasets.records import Annotation, Pair, edit_to_dict

Write = Callable[[Pair, Sequence[Annotation]], None]

_LAYOUTS = {
    (".json", "negatives"): "sugarcrepe",
    (".tsv", "negatives"): "negclip",
    (".json", "conversations"): "llava",
}
_NEW_TEXT = {"hard_negative": "negative", "hard_positive": "positive"}


def require_candidate_rows(given: Path, rows: int) -> None:
    """Refuse a file of candidate rows that holds none: an empty file is the trace of a step that failed before.

    Raises:
        InputError: when there are no rows.
    """
    if not rows:
        raise InputError("there are no rows", where=str(given), fix="Give captions with negatives.")


def refuse_training_rows(out: Path, types: Sequence[str]) -> None:
    """Refuse to write types that are for training only into a benchmark's layout, which would leave them out.

    Raises:
        UsageError: when ``out`` ends in ``.json`` and one of ``types`` is for training only.
    """
    found = [kind for kind in types if kind in TRAINING_ONLY_FORMS]
    if found and out.suffix.lower() == ".json":
        raise UsageError(
            f"{out}: SugarCrepe's layout is a benchmark's, and {found[0]} is for training only. "
            f"Leave {found[0]} out of --types, or write a .jsonl, .tsv or .parquet."
        )


@contextmanager
def open_writer(path: Path, generator: str) -> Iterator[Write]:
    """Give a function that takes a pair and its annotations; the file is whole when the block ends, or absent.

    Raises:
        UsageError: when the ending names no format, or none for what this generator makes.
    """
    ending, what = path.suffix.lower(), generator.rpartition("-")[2]  # "rules-negatives", "llm-negatives"
    if ending == ".jsonl":
        with replace_atomically(path) as temporary, temporary.open("wb") as out:
            yield lambda pair, rows: out.writelines(
                orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in annotation_rows(pair, rows)
            )
        return
    layout = _LAYOUTS.get((ending, what), "")
    if not layout and ending != ".parquet":
        known = [".jsonl", ".parquet", *(end for end, made in _LAYOUTS if made == what)]
        raise UsageError(f"{path}: these rows are written to a file that ends in {', '.join(known)}.")
    held: list[tuple[Pair, list[Annotation]]] = []
    yield lambda pair, rows: held.append((pair, list(rows)))
    annotations = [row for _, rows in held for row in rows]
    if layout:
        from pairwright.datasets.exports.formats import export_records  # takes a while, and most layouts do without

        export_records([pair for pair, _ in held], annotations, layout, path)
    else:
        from pairwright.datasets.record_tables import ANNOTATIONS

        ANNOTATIONS.write(annotations, path)


def annotation_rows(pair: Pair, rows: Sequence[Annotation]) -> Iterator[dict[str, Any]]:
    """Yield the annotations of a pair as JSON rows; a positive that a negative is compared with stands in its row."""
    beside = {row.id: row.text for row in rows if row.kind == "hard_positive"}
    named = {row.positive_id for row in rows if row.positive_id}
    for row in rows:
        if row.id not in named:
            yield annotation_row(pair, row, beside.get(row.positive_id, ""))


def annotation_row(pair: Pair, row: Annotation, positive: str = "") -> dict[str, Any]:
    """Return an annotation as a JSON row; candidate rows for `refine` and `audit` are such rows of negatives.

    Args:
        pair: whose caption was edited.
        row: the annotation.
        positive: text of the hard positive that a negative is compared with; empty: the caption.
    """
    common = {"id": row.id, "key": row.key, "image": pair.image or pair.source_id, "caption": pair.caption}
    ending = {"scores": row.scores, "status": row.status, "reason": row.reason}
    if row.kind not in _NEW_TEXT:
        turns = [{"role": turn.role, "text": turn.text} for turn in row.turns]
        return {**common, "kind": row.kind, "turns": turns, **ending}
    texts = {"negative": "", "positive": positive, _NEW_TEXT[row.kind]: row.text}
    if row.kind == "hard_positive":
        del texts["negative"]
    edits = [edit_to_dict(edit) for edit in row.edits]
    return {**common, **texts, "form": row.form, "target": row.target, "edit": edits, **ending}
