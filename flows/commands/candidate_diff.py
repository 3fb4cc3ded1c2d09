"""Differences of two files of candidate rows, such as two versions of a benchmark.

Rows are matched by image and texts; then by id, if a text or the image is the same too, as positions in a file shift; then
by image and caption. Equal rows of one file are matched one to one. Both files are in memory.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

from pairwright.filters.candidates.files import read_candidates
from pairwright.filters.candidates.rows import edit_type_name

CandidateRow = dict[str, Any]
_TEXTS = ("image", "caption", "negative", "positive")
_TYPE = ("form", "target")
_COMPARED = (*_TEXTS, *_TYPE, "status", "reason")
_CHANGES = pl.Schema({"what": pl.String, "change": pl.String, "id": pl.String, "a": pl.String, "b": pl.String})


@dataclass(frozen=True, slots=True)
class CandidateDiff:
    """Differences of the rows of two files.

    Attributes:
        a: rows of the first file.
        b: rows of the second.
        removed: rows of ``a`` only.
        added: rows of ``b`` only.
        changed: rows of both with another value in a compared column.
    """

    a: Sequence[CandidateRow]
    b: Sequence[CandidateRow]
    removed: Sequence[CandidateRow]
    added: Sequence[CandidateRow]
    changed: Sequence[tuple[CandidateRow, CandidateRow]]

    def as_json(self) -> dict[str, Any]:
        """Return ``same``, ``rows`` (a, b, added, removed, changed, and ``fields``: changes by column) and ``types``."""
        after, type_of = [row for _, row in self.changed], self._type_names()
        groups = {"a": self.a, "b": self.b, "added": self.added, "removed": self.removed, "changed": after}
        counts = {name: Counter(map(type_of, rows)) for name, rows in groups.items()}
        fields = Counter(name for pair in self.changed for name in _changed_fields(*pair))
        return {
            "same": not (self.added or self.removed or self.changed),
            "rows": {**{name: len(rows) for name, rows in groups.items()}, "fields": dict(sorted(fields.items()))},
            "types": {
                kind: {name: each[kind] for name, each in counts.items()}
                for kind in sorted({*counts["a"], *counts["b"]})
            },
        }

    def differing_rows(self) -> pl.DataFrame:
        """Return each row that differs: ``what`` (its type), ``change``, ``id``, and ``a`` and ``b``.

        These are the negative of an added or removed row, and the values of the columns that changed.
        """
        type_of = self._type_names()
        rows = [(type_of(row), "removed", row["id"], row["negative"], "") for row in self.removed]
        rows += [(type_of(row), "added", row["id"], "", row["negative"]) for row in self.added]
        for one, other in self.changed:
            names = _changed_fields(one, other)
            values = ["; ".join(f"{name}: {row[name]}" for name in names) for row in (one, other)]
            rows.append((type_of(other), "changed", other["id"], values[0], values[1]))
        return pl.DataFrame(sorted(rows), schema=_CHANGES, orient="row")

    def _type_names(self) -> Callable[[CandidateRow], str]:
        """Return what names the type of a row: ``row`` for all, if one of the files has no types."""
        if all(any(row["form"] or row["target"] for row in rows) for rows in (self.a, self.b)):
            return lambda row: edit_type_name(row["form"], row["target"])
        return lambda _: "row"


def compare_candidates(a: Path, b: Path) -> CandidateDiff:
    """Return the differences of two files, or folders of benchmark files.

    Args:
        a: a file.
        b: another one.

    Raises:
        InputError, UsageError: as of `read_candidates`.
    """
    one, other = (read_candidates(path).to_dicts() for path in (a, b))
    matching = _Matching(list(one), list(other))
    matching.match(lambda row: tuple(row[name] for name in _TEXTS))
    matching.match(lambda row: row["id"], _is_similar)
    matching.match(lambda row: (row["image"], row["caption"]))
    changed = [pair for pair in matching.matched if _changed_fields(*pair)]
    return CandidateDiff(one, other, matching.a, matching.b, changed)


@dataclass
class _Matching:
    """Rows of two files that are not matched yet, and pairs of rows that are."""

    a: list[CandidateRow]
    b: list[CandidateRow]
    matched: list[tuple[CandidateRow, CandidateRow]] = field(default_factory=list)

    def match(
        self,
        name: Callable[[CandidateRow], Hashable],
        accepts: Callable[[CandidateRow, CandidateRow], bool] = lambda _one, _other: True,
    ) -> None:
        """Match rows of one name, in their order, that ``accepts`` allows."""
        waiting = defaultdict[Hashable, list[CandidateRow]](list)
        for row in reversed(self.a):
            waiting[name(row)].append(row)
        used, rest = set[int](), list[CandidateRow]()
        for row in self.b:
            found = waiting[name(row)]
            if found and accepts(found[-1], row):
                used.add(id(found[-1]))
                self.matched.append((found.pop(), row))
            else:
                rest.append(row)
        self.a, self.b = [row for row in self.a if id(row) not in used], rest


def _is_similar(one: CandidateRow, other: CandidateRow) -> bool:
    return any(one[name] and one[name] == other[name] for name in _TEXTS)


def _changed_fields(one: CandidateRow, other: CandidateRow) -> list[str]:
    names = [name for name in _COMPARED if one[name] != other[name]]
    # SugarCrepe's types are known by the names of its files only: an unknown one is no difference.
    return [name for name in names if name not in _TYPE or (one[name] and other[name])]
