"""Algorithm 1 over a pool of any size: captions and rows are read in chunks, and only numbers are kept of a row.

The result is that of `two_scorers.refine_rows` for the same rows with all captions as its pool. Texts are stored in a
scratch file (`out_of_core_models.py`), so memory is some 200 bytes per row, 50 per caption, and the language models:
about 60 bytes per distinct trigram.
"""

from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl

from pairwright.filters.refinement.out_of_core_models import (
    GRAMMAR,
    PLAUSIBILITY,
    Numbers,
    TextFile,
    TextModels,
    WordTable,
)
from pairwright.filters.refinement.two_scorers import Refinement, RefineOptions, check_columns, refine_scored_rows
from pairwright.filters.scorers.text_scorers import DECIMALS, assign_group_folds
from pairwright.generators.language.vocabulary import FloatArray


class OutOfCoreRefiner:
    """Reads captions and rows in chunks of any size, and refines the rows; a context manager.

    Args:
        folder: for the scratch file of the texts.
    """

    def __init__(self, folder: Path) -> None:
        self._texts, self._groups, self._types = TextFile(folder), _NameNumbers(), _NameNumbers()
        self._captions: list[_NumberedCaptions] = []
        self._rows: list[_NumberedRows] = []
        self._ids: list[pl.Series] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Remove the scratch file."""
        self._texts.close()

    def read_captions(self, captions: pl.DataFrame) -> None:
        """Add captions to train on; a caption counts once per group, however often it is added.

        Args:
            captions: string columns ``group`` and ``caption``.
        """
        named = captions.select(pl.concat_str("group", pl.lit("\0"), "caption").hash(seed=0)).to_series()
        text = self._texts.add(captions["caption"].to_list())
        self._captions.append(_NumberedCaptions(text, self._groups.add(captions["group"]), named.to_numpy()))

    def read_rows(self, rows: pl.DataFrame) -> None:
        """Add rows, with the columns of `refine_rows`.

        Raises:
            UsageError: a column is missing or not of strings.
        """
        check_columns(rows)
        positive, negative = (self._texts.add(rows[name].to_list()) for name in ("positive", "negative"))
        self._rows.append(
            _NumberedRows(positive, negative, self._groups.add(rows["group"]), self._types.add(rows["type"]))
        )
        self._ids.append(rows["id"])

    def refine(self, options: RefineOptions) -> Refinement:
        """Return the refinement of all rows, in the order in which they were added; nothing can be added afterwards.

        Raises:
            UsageError: ids repeat.
        """
        form = self._texts.seal()
        groups, group = self._groups.seal()
        types, kind = self._types.seal()
        text, whose, named = _concatenate(self._captions, 3)
        once = np.unique(named, return_index=True)[1]
        captions = _NumberedCaptions(form[text[once]], group[whose[once]], named[once])
        positive, negative, owner, type_ = _concatenate(self._rows, 4)
        rows = _NumberedRows(form[positive], form[negative], group[owner], kind[type_])
        gaps = _compute_gaps(self._texts, len(groups), captions, rows, options)
        names = types.to_list()
        ids = pl.concat([pl.Series("id", [], pl.String), *self._ids])
        each = [names[number] for number in rows.type.tolist()]
        return refine_scored_rows(ids, each, gaps, rows.positive == rows.negative, options)


class _NumberedCaptions(NamedTuple):
    """Numbers of the text, the group and both together, for each caption."""

    text: Numbers
    group: Numbers
    named: Numbers


class _NumberedRows(NamedTuple):
    """Numbers of the texts, the group and the type of each row."""

    positive: Numbers
    negative: Numbers
    group: Numbers
    type: Numbers


def _concatenate(pieces: list[Any], columns: int) -> list[Numbers]:
    empty = (np.zeros(0, np.int32),) * columns
    joined = [np.concatenate(column) for column in zip(empty, *pieces, strict=True)]
    pieces.clear()
    return joined


def _compute_gaps(
    texts: TextFile, groups: int, captions: _NumberedCaptions, rows: _NumberedRows, options: RefineOptions
) -> dict[str, FloatArray]:
    # As `CrossFittedScorer.gaps` over a pool: each fold by models trained without its groups and texts.
    distinct, member = np.unique(rows.group, return_inverse=True)
    fold = assign_group_folds(len(distinct), options.folds, options.seed)[member]
    table = WordTable.of(texts.words)
    gaps = {name: np.full(len(fold), np.nan) for name in (GRAMMAR, PLAUSIBILITY)}
    scores = {name: np.zeros(texts.forms) for name in gaps}
    for number in np.unique(fold):
        members = fold == number
        tested, held_out = np.zeros(texts.forms, np.bool_), np.zeros(groups, np.bool_)
        tested[rows.positive[members]] = tested[rows.negative[members]] = True
        held_out[rows.group[members]] = True
        left = ~tested[captions.text] & ~held_out[captions.group]
        if not left.any():
            continue
        models = TextModels.fit(texts, np.bincount(captions.text[left], minlength=texts.forms), table)
        for some in texts.read(tested):
            for name, found in models.scores(some).items():
                scores[name][some.forms] = found
        for name, gap in gaps.items():
            score = scores[name]
            gap[members] = np.round(score[rows.positive[members]] - score[rows.negative[members]], DECIMALS)
    return gaps


class _NameNumbers:
    """Numbers names in alphabetical order, added chunk by chunk."""

    def __init__(self) -> None:
        self._distinct: list[pl.Series] = [pl.Series([], dtype=pl.String)]
        self._seen = 0

    def add(self, names: pl.Series) -> Numbers:
        """Return a provisional number for each name, an index into the numbers of `seal`."""
        distinct = names.unique().sort()
        numbers = names.rank("dense").to_numpy().astype(np.int32) + np.int32(self._seen - 1)
        self._distinct.append(distinct.rename(""))
        self._seen += len(distinct)
        return numbers

    def seal(self) -> tuple[pl.Series, Numbers]:
        """Return the distinct names in order, and the final number of each provisional number."""
        every = pl.concat(self._distinct)
        self._distinct.clear()
        return every.unique().sort(), every.rank("dense").to_numpy().astype(np.int32) - np.int32(1)
