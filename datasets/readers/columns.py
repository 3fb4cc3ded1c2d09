"""Assignment of input columns to the parts of a pair.

The parts have fixed names (`COLUMN_NAMES_BY_FIELD`); the user maps columns to them (``key=image_id,captions=captions``,
where ``key`` fills `source_id`), or a published layout has its own names (`known_layouts.py`), and the rest is found by
common names, and an image by names such as ``img_url`` and ``photoPath``. Common names are ranked: a name of an earlier rank wins (``caption`` over ``text``), and two names of the same rank
in one row are ambiguous, an error that shows what to write. Columns without a part go into `meta`. A mapped column may
also be a path, a template or a pattern of numbered columns (`column_expressions.py`).

Spaces around a name are ignored (``" caption"``) unless the same name also occurs without: they are invisible, and hard
to write on the command line. In `meta` a name stays as in the file. Where no column has the exact name, one that differs in
upper and lower case is taken (``Caption``): for columns that the user maps, and for `PARTS_IN_ANY_CASE`, without which a row
would lose its text or image.

An image inside a table has precedence over a path or URL in the same row, which still determines the key.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field

from pairwright.datasets.errors import UsageError
from pairwright.datasets.option_names import COMMAND_LINE, OptionNames
from pairwright.datasets.readers.column_expressions import is_computable, numbered_columns
from pairwright.datasets.readers.known_layouts import CAPTION_PARTS, CONVERSATIONS, FIRST_ANSWER, map_columns
from pairwright.datasets.rejects import RejectError
from pairwright.datasets.suggestions import require_known

RankedNames = tuple[tuple[str, ...], ...]

COLUMN_NAMES_BY_FIELD: dict[str, RankedNames] = {
    "key": (("source_id",), ("key",), ("image_id",), ("id", "uid")),
    "image": (
        ("image",),
        ("image_path", "file_name", "filename", "filepath"),
        ("url", "URL", "image_url"),
        ("images",),
    ),
    "caption": (("caption",), ("text", "TEXT", "txt", "title", "TITLE", "sentence", "description", "alt_text", "alt")),
    "captions": (("captions",),),
    "boxes": (("boxes",), ("instances",), ("bbox", "bboxes", "objects")),
    "width": (("width",), ("WIDTH",)),
    "height": (("height",), ("HEIGHT",)),
    "license": (("license",), ("LICENSE", "licence")),
    "source": (("source",),),
    "meta": (("meta",),),
}

IMAGE_COLUMN_NAMES = ("jpg", "jpeg", "png", "webp", "image_bytes", "image_data", "img", "picture", "images")
"""Columns that are the image if they contain images and no column ``image`` exists or is mapped; best first."""


PARTS_IN_ANY_CASE = ("caption", "captions", "image")

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_IMAGE_WORDS = frozenset({"image", "img", "photo", "picture", "pic"})
# Not `name`, which is often a title, nor `link` and `src`, often a page and a site.
_PLACE_WORDS = frozenset({"url", "uri", "path", "file", "filename", "filepath"})


class AmbiguousColumnsError(Exception):
    """Several columns could be a part; the first is the suggested one."""

    def __init__(self, part: str, columns: Sequence[str]) -> None:
        super().__init__(part, columns)
        self.what = f"{' and '.join(columns)} could each be the {part}"
        self.part, self.column, self.columns = part, columns[0], tuple(columns)


@dataclass(frozen=True, slots=True)
class ColumnPlan:
    """The column of each part (None if the rows have none), and the columns without a part.

    ``picture`` is the column with the image itself, if ``image`` is missing or only states its origin; ``computed`` are
    the paths and templates among the columns, which `column_expressions.add_computed` adds to a row.
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
    computed: tuple[str, ...] = ()
    extra: tuple[str, ...] = field(default=())


def check_column_mapping(columns: Mapping[str, str], option_names: OptionNames = COMMAND_LINE) -> None:
    """Require that a mapping names parts of a pair, and each column once.

    Raises:
        UsageError: with the valid names.
    """
    option = option_names.option("columns")
    require_known(f"{option}: no such name:", columns, COLUMN_NAMES_BY_FIELD)
    if len(set(columns.values())) < len(columns):
        raise UsageError(f"{option}: one column is mapped to two names. Map each column once.")


def resolve_columns(
    names: Sequence[str], columns: Mapping[str, str], pictures: Sequence[str] = (), *, without_caption: bool = False
) -> ColumnPlan:
    """Return the assignment of a row's columns to parts.

    Args:
        names: the row's columns.
        columns: the user's mapping, part to column; it has precedence over common names.
        pictures: those of ``names`` that contain images, not texts.
        without_caption: whether rows need no caption.

    Raises:
        RejectError: missing_column, if there is no caption.
        AmbiguousColumnsError: if two columns of the same rank exist.
    """
    columns = map_columns(names, columns)
    computed = tuple(column for column in columns.values() if is_computable(column, names))
    written = _index_by_stripped_name((*names, *computed))
    found = {part: column for part, named in columns.items() if (column := _find_named(named, written))}
    taken = {*found.values(), *(column.partition(".")[0] for column in computed)}
    free = {name: column for name, column in written.items() if column not in taken}
    for part, ranks in COLUMN_NAMES_BY_FIELD.items():
        if part not in columns and (column := _find_common_name(part, ranks, free, found)):
            found[part] = column
    found |= _find_in_any_case(found, columns, free)
    # A table with images of its own needs no place of one.
    if not pictures and "image" not in {*found, *columns} and (column := _find_place_of_image(free, found)):
        found["image"] = column
    if "caption" not in found and "captions" not in found and not without_caption:
        wanted = columns.get("caption") or columns.get("captions") or "caption"
        answer = f" (the first answer is {FIRST_ANSWER})" if CONVERSATIONS in names else ""
        raise RejectError("missing_column", f"no column {wanted!r}; there are: {', '.join(names) or 'none'}{answer}")
    # Rows written by pairwright have both; their key was fixed when the row was first read.
    stored = free.get("key") if found.get("key", "").strip() == "source_id" else None
    picture = _find_image_column(found, columns, pictures)
    claimed = {*found.values(), stored, picture}
    claimed.update(name for column in computed for name in numbered_columns(column, names))
    if picture and found.get("image"):
        claimed.remove(found["image"])
    extra = tuple(name for name in names if name not in claimed)
    return ColumnPlan(**found, stored_key=stored, picture=picture, computed=computed, extra=extra)


def find_unmatched_columns(columns: Iterable[str], names: Sequence[str]) -> set[str]:
    """Return the mapped columns that a row does not have."""
    written = _index_by_stripped_name(names)
    return {column for column in columns if not _find_named(column, written) and not is_computable(column, names)}


def find_column(named: str, names: Sequence[str]) -> str:
    """Return the column of a row that a user names, in any case, or the name itself, as for a path."""
    return named if named in names else _find_named(named, _index_by_stripped_name(names)) or named


def _find_named(named: str, written: Mapping[str, str]) -> str | None:
    """Return the column that a user names: of that name, or else the only one that differs in case or spaces."""
    if column := written.get(named) or written.get(named.strip()):
        return column
    alike = {column for name, column in written.items() if name.casefold() == named.strip().casefold()}
    return alike.pop() if len(alike) == 1 else None


def _find_in_any_case(found: Mapping[str, str], columns: Mapping[str, str], free: Mapping[str, str]) -> dict[str, str]:
    """Return columns for captions and image, if there are none, whose names differ in case from the common ones.

    Several that could be the image are none: the rows were read without one before.
    """
    settled = {*found, *columns}
    parts = [part for part in PARTS_IN_ANY_CASE if part not in settled]
    if CAPTION_PARTS & settled:
        parts = [part for part in parts if part not in CAPTION_PARTS]
    folded = {name.casefold(): column for name, column in free.items() if column not in found.values()} if parts else {}
    more: dict[str, str] = {}
    for part in parts:
        ranks = tuple(tuple(dict.fromkeys(name.casefold() for name in rank)) for rank in COLUMN_NAMES_BY_FIELD[part])
        with suppress(AmbiguousColumnsError) if part == "image" else nullcontext():
            if column := _find_common_name(part, ranks, folded, {**found, **more}):
                more[part] = column
    return more


def _find_place_of_image(free: Mapping[str, str], found: Mapping[str, str]) -> str | None:
    """Return the only column whose name says image and place, such as ``img_url``; several that could be it are none."""
    words = {column: {word.lower() for word in _WORDS.findall(column)} for column in free.values()}
    named = [
        column
        for column, said in words.items()
        if said & _IMAGE_WORDS and said & _PLACE_WORDS and said <= _IMAGE_WORDS | _PLACE_WORDS
    ]
    return named[0] if len(named) == 1 and named[0] not in found.values() else None


def _index_by_stripped_name(names: Sequence[str]) -> dict[str, str]:
    """Return a mapping from each name, and from each name without surrounding spaces, to the name in the file."""
    return {**{name.strip(): name for name in names}, **{name: name for name in names}}


def _find_image_column(found: Mapping[str, str], columns: Mapping[str, str], pictures: Sequence[str]) -> str | None:
    """Return the column with the image itself, if it is not the column of its name."""
    if not pictures or "image" in columns or found.get("image", "").strip() == "image":
        return None
    written = _index_by_stripped_name(pictures)
    return next(
        (written[name] for name in IMAGE_COLUMN_NAMES if name in written and written[name] not in found.values()), None
    )


def _find_common_name(part: str, ranks: RankedNames, free: Mapping[str, str], found: Mapping[str, str]) -> str | None:
    if part == "caption" and "captions" in (*found, *free):
        ranks = ranks[:1]  # with a list of captions, `text` or `title` is something else
    for rank in ranks:
        candidates = [free[name] for name in rank if name in free]
        if len(candidates) > 1:
            raise AmbiguousColumnsError(part, candidates)
        if candidates:
            return candidates[0]
    return None
