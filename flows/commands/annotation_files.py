"""Writers of annotation files, which choose the layout by the extension, and balance the rows if limits are set.

``.jsonl``   one row per attempt, streamed: id, key, image, caption, the new text, edit, scores, status, reason
``.json``    SugarCrepe's layout for negatives (no SHUFFLE: a benchmark), LLaVA's for conversations: kept rows only
``.tsv``     NegCLIP's layout for negatives: kept rows only
``.parquet`` the annotation table of `datasets.record_tables`, all attempts
"""

import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import orjson

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import InputError, UsageError
from pairwright.datasets.records import TRAINING_ONLY_FORMS, Annotation, Pair, edit_to_dict
from pairwright.generators.balance import (
    BalanceLimits,
    BalanceResult,
    BalanceRow,
    balance_row,
    find_excess_rows,
    is_balanced,
    reject_excess_rows,
)

Write = Callable[[Pair, Sequence[Annotation]], None]

_LAYOUTS = {
    (".json", "negatives"): "sugarcrepe",
    (".tsv", "negatives"): "negclip",
    (".json", "conversations"): "llava",
}
_NEW_TEXT = {"hard_negative": "negative", "hard_positive": "positive"}


def require_candidate_rows(path: Path, rows: int) -> None:
    """Refuse an empty file of candidate rows, which an earlier step may have left when it failed.

    Raises:
        InputError: when there are no rows.
    """
    if not rows:
        raise InputError("there are no rows", where=str(path), fix="Give captions with negatives.")


def refuse_training_rows(out: Path, types: Sequence[str]) -> None:
    """Refuse to write types for training only in the layout of a benchmark, which would skip them.

    Raises:
        UsageError: when ``out`` ends in ``.json`` and one of ``types`` is for training only.
    """
    found = [kind for kind in types if kind in TRAINING_ONLY_FORMS]
    if found and out.suffix.lower() == ".json":
        raise UsageError(
            f"{out}: SugarCrepe's layout is for a benchmark, and {found[0]} is for training only. "
            f"Remove {found[0]} from --types, or write a .jsonl, .tsv or .parquet."
        )


@contextmanager
def open_writer(path: Path, generator: str) -> Iterator[Write]:
    """Open a file for writing pairs with their annotations; it is complete at the end of the block, or absent.

    Raises:
        UsageError: for an extension without a layout for the rows of this generator.
    """
    ending, what = path.suffix.lower(), generator.rpartition("-")[2]  # "rules-negatives", "llm-negatives"
    if what == "captions":
        from pairwright.flows.commands.caption_files import open_caption_writer  # imports pydantic

        with open_caption_writer(path) as write:
            yield write
        return
    if ending == ".jsonl":
        with replace_atomically(path) as temporary, temporary.open("wb") as out:
            yield lambda pair, rows: out.writelines(
                orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in annotation_rows(pair, rows)
            )
        return
    layout = _LAYOUTS.get((ending, what), "")
    if not layout and ending != ".parquet":
        known = [".jsonl", ".parquet", *(end for end, made in _LAYOUTS if made == what)]
        raise UsageError(f"{path}: write these rows to a file that ends in {', '.join(known)}.")
    held: list[tuple[Pair, list[Annotation]]] = []
    yield lambda pair, rows: held.append((pair, list(rows)))
    annotations = [row for _, rows in held for row in rows]
    if layout:
        from pairwright.datasets.exports.formats import export_records  # slow to import

        export_records([pair for pair, _ in held], annotations, layout, path)
    else:
        from pairwright.datasets.record_tables import ANNOTATIONS

        ANNOTATIONS.write(annotations, path)


@contextmanager
def open_balanced_writer(
    path: Path,
    generator: str,
    limits: BalanceLimits,
    add: Callable[[Sequence[Annotation]], None],
    judged: Callable[[BalanceResult], None],
) -> Iterator[Write]:
    """Open a file for writing like `open_writer`, with the rows balanced: they are spooled to disk and then judged as a set.

    Args:
        path: of the file.
        generator: of the rows.
        limits: of the set; without limits rows are written immediately.
        add: receives the rows of each pair when they are written.
        judged: receives the result of balancing, if there are limits.

    Raises:
        UsageError: for an extension without a layout for the rows of this generator.
    """
    with open_writer(path, generator) as write:

        def put(pair: Pair, rows: Sequence[Annotation]) -> None:
            add(rows)
            write(pair, rows)

        if limits == BalanceLimits():
            yield put
            return
        lines: list[BalanceRow] = []
        with tempfile.TemporaryFile(dir=path.absolute().parent) as spool:

            def store(pair: Pair, rows: Sequence[Annotation]) -> None:
                lines.extend(balance_row(row) for row in rows if is_balanced(row, generator) and row.status == "kept")
                pickle.dump((pair, list(rows)), spool)

            yield store
            result = find_excess_rows(lines, limits)
            judged(result)
            spool.seek(0)
            for pair, rows in _read_spool(spool):
                put(pair, list(reject_excess_rows(rows, result.gone)))


def _read_spool(spool: IO[bytes]) -> Iterator[tuple[Pair, list[Annotation]]]:
    while True:
        try:
            yield pickle.load(spool)  # noqa: S301 - written by this process
        except EOFError:
            return


def annotation_rows(pair: Pair, rows: Sequence[Annotation]) -> Iterator[dict[str, Any]]:
    """Yield the annotations of a pair as JSON rows; the row of a negative includes its positive."""
    positives = {row.id: row.text for row in rows if row.kind == "hard_positive"}
    named = {row.positive_id for row in rows if row.positive_id}
    for row in rows:
        if row.id not in named:
            yield annotation_row(pair, row, positives.get(row.positive_id, ""))


def annotation_row(pair: Pair, row: Annotation, positive: str = "") -> dict[str, Any]:
    """Return an annotation as a JSON row; rows of negatives are candidate rows for `refine` and `audit`.

    Args:
        pair: whose caption was edited.
        row: the annotation.
        positive: text of the hard positive that a negative is compared with; empty for the caption.
    """
    common = {"id": row.id, "key": row.key, "image": pair.image or pair.source_id, "caption": pair.caption}
    ending = {"scores": row.scores, "status": row.status, "reason": row.reason}
    if row.kind not in _NEW_TEXT:
        turns = [{"role": turn.role, "text": turn.text} for turn in row.turns]
        return {**common, "kind": row.kind, "turns": turns, **ending}
    texts = {"negative": "", "positive": positive, _NEW_TEXT[row.kind]: row.text}
    if row.kind == "hard_positive":
        del texts["negative"]
    seen = {"image_shows": row.image_shows} if row.image_shows else {}
    edits = [edit_to_dict(edit) for edit in row.edits]
    return {**common, **texts, "form": row.form, "target": row.target, "edit": edits, **seen, **ending}
