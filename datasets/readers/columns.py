"""Which column means what.

A pair's parts have names of their own (`FIELDS`); the user maps them (``key=image_id,captions=captions``,
where ``key`` fills `source_id`), and what is not mapped is found by the names in common use. Those stand
in ranks: a name of an earlier rank wins (``caption`` over ``text``), two names of the same rank in one row are
unclear and an error that shows what to write. What no part claims goes into `meta`.

Blanks around a name do not count (``" caption"``), unless the same name stands there without: nobody sees them, and
the command line could not name them. In `meta` a name stays as the file has it.

A picture inside a table goes before a path or URL that stands beside it, which still gives the key.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pairwright.datasets.errors import UsageError
from pairwright.datasets.option_names import COMMAND_LINE, OptionNames
from pairwright.datasets.rejects import RejectError
from pairwright.datasets.suggestions import require_known

RankedNames = tuple[tuple[str, ...], ...]

COLUMN_NAMES_BY_FIELD: dict[str, RankedNames] = {
    "key": (("source_id",), ("key",), ("image_id",), ("id", "uid")),
    "image": (("image",), ("image_path", "file_name", "filename", "filepath"), ("url", "URL", "image_url")),
    "caption": (("caption",), ("text", "TEXT", "txt", "title", "TITLE", "sentence", "description")),
    "captions": (("captions",),),
    "boxes": (("boxes",), ("instances",), ("bbox", "bboxes", "objects")),
    "width": (("width",), ("WIDTH",)),
    "height": (("height",), ("HEIGHT",)),
    "license": (("license",), ("LICENSE", "licence")),
    "source": (("source",),),
    "meta": (("meta",),),
}

IMAGE_COLUMN_NAMES = ("jpg", "jpeg", "png", "webp", "image_bytes", "image_data", "img", "picture")
"""Columns that are the image where they hold pictures and no column ``image`` is there or named; best first."""


class AmbiguousColumnsError(Exception):
    """Several columns could be meant by a part; the first is as good as any."""

    def __init__(self, part: str, columns: Sequence[str]) -> None:
        super().__init__(part, columns)
        self.what = f"{' and '.join(columns)} could each be the {part}"
        self.part, self.column, self.columns = part, columns[0], tuple(columns)


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """The column of each part (None where the rows have none), and the columns that no part claims.

    ``picture`` is the column of the image itself, where ``image`` is none or tells no more than where that came from.
    """

    key: str | None = None
    image: str | None = None
    caption: str | None = None
    captions: str | None = None
    boxes: str | None = None
    width: str | None = None
    height: str | None = None
    license: str | None = None
    source: str | None = None
    meta: str | None = None
    stored_key: str | None = None
    picture: str | None = None
    extra: tuple[str, ...] = field(default=())


def check_column_mapping(columns: Mapping[str, str], wording: OptionNames = COMMAND_LINE) -> None:
    """Refuse a mapping that names no part of a pair, or one column twice.

    Raises:
        UsageError: with the names that there are.
    """
    option = wording.option("columns")
    require_known(f"{option}: no such name:", columns, COLUMN_NAMES_BY_FIELD)
    if len(set(columns.values())) < len(columns):
        raise UsageError(f"{option}: one column is mapped to two names. Map each column once.")


def resolve_columns(names: Sequence[str], columns: Mapping[str, str], pictures: Sequence[str] = ()) -> ColumnPlan:
    """Return which of a row's columns is which part of a pair.

    Args:
        names: the row's columns.
        columns: the user's mapping, part to column; it goes before the common names.
        pictures: those of ``names`` that hold pictures and not texts.

    Raises:
        Refused: missing_column, when there is no caption.
        Unclear: when two columns of the same rank are there.
    """
    written = _index_by_stripped_name(names)
    found = {
        part: column for part, named in columns.items() if (column := written.get(named) or written.get(named.strip()))
    }
    taken = set(found.values())
    free = {name: column for name, column in written.items() if column not in taken}
    for part, ranks in COLUMN_NAMES_BY_FIELD.items():
        if part not in columns and (column := _find_common_name(part, ranks, free, found)):
            found[part] = column
    if "caption" not in found and "captions" not in found:
        wanted = columns.get("caption") or columns.get("captions") or "caption"
        raise RejectError("missing_column", f"no column {wanted!r}; there are: {', '.join(names) or 'none'}")
    # A row that pairwright wrote has both; its key was fixed when the row was first read.
    stored = free.get("key") if found.get("key", "").strip() == "source_id" else None
    picture = _find_image_column(found, columns, pictures)
    claimed = {*found.values(), stored, picture}
    if picture and found.get("image"):
        claimed.remove(found["image"])
    extra = tuple(name for name in names if name not in claimed)
    return ColumnPlan(**found, stored_key=stored, picture=picture, extra=extra)


def find_unmatched_columns(columns: Iterable[str], names: Sequence[str]) -> set[str]:
    """Return those of the mapped columns that are not among a row's."""
    written = _index_by_stripped_name(names)
    return {column for column in columns if column not in written and column.strip() not in written}


def _index_by_stripped_name(names: Sequence[str]) -> dict[str, str]:
    """Return each name as it stands there, and by itself without the blanks around it."""
    return {**{name.strip(): name for name in names}, **{name: name for name in names}}


def _find_image_column(found: Mapping[str, str], columns: Mapping[str, str], pictures: Sequence[str]) -> str | None:
    """Return the column of the image itself, if it is another than that of its name."""
    if not pictures or "image" in columns or found.get("image", "").strip() == "image":
        return None
    written = _index_by_stripped_name(pictures)
    return next(
        (written[name] for name in IMAGE_COLUMN_NAMES if name in written and written[name] not in found.values()), None
    )


def _find_common_name(part: str, ranks: RankedNames, free: Mapping[str, str], found: Mapping[str, str]) -> str | None:
    if part == "caption" and "captions" in (*found, *free):
        ranks = ranks[:1]  # beside a list of captions, `text` or `title` is something else
    for rank in ranks:
        candidates = [free[name] for name in rank if name in free]
        if len(candidates) > 1:
            raise AmbiguousColumnsError(part, candidates)
        if candidates:
            return candidates[0]
    return None
