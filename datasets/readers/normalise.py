"""One raw row to one pair, or to one a caption, or to a rejection: the same rules for every format.

- A row has ``caption`` (a text, or a list) and/or ``captions`` (a list, its JSON text, or one plain text). The first
  is the pair's caption, the others its `captions`; with `explode` each caption makes a pair and has the others beside it.
  Captions are kept to the letter; a caption that the row repeats counts once. One that is empty, no text, or holds the
  mark that trainers put in an image's place is refused on its own, and the row goes on with the others; so is one that is
  longer than `Rules.max_caption`.
- ``key`` is the hash of source, source id (or else the image as written) and caption.
- A relative image path is taken from the image root, or else the file's folder, and made absolute; URLs
  stay. Where an image root is given, an image outside it is refused. The image is looked at before it is believed (`verify`), and fills in a missing width and height. A picture
  inside a table stays there, as ``table.parquet::column/row-N``.
- What no part of a pair claims goes into `meta` as JSON. NaN there is null, bytes are not kept.

Limits: a caption is at most `MAX_CAPTION` code points, whatever the rules allow.
"""

import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from pairwright.datasets.errors import InputError
from pairwright.datasets.images import ImageRoot, UnusableImage, check_image, check_locator, in_table, is_url
from pairwright.datasets.readers.boxes import BoxUnit, read_boxes
from pairwright.datasets.readers.columns import Plan, Unclear, resolve, unmet
from pairwright.datasets.readers.rows import InTable, Row
from pairwright.datasets.readers.text import parse_json, type_name
from pairwright.datasets.readers.values import identifier_of, json_of, size_of, text_of
from pairwright.datasets.records import IMAGE_MARK, Pair, compact_json, pair_key
from pairwright.datasets.rejects import Refused, Reject, reject
from pairwright.datasets.wording import Wording

Verify = Literal["off", "header", "full"]

MAX_CAPTION = 131_072
PLANS_KEPT = 1024

_HEX128 = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Rules:
    """How rows are understood; see `reading.ReadOptions`, which makes them."""

    columns: Mapping[str, str]
    explode: bool
    verify: Verify
    box_unit: BoxUnit
    source: str
    wording: Wording
    max_caption: int = MAX_CAPTION


@dataclass
class Normaliser:
    """Turns the rows of one input into pairs.

    Attributes:
        rules: the same for all inputs.
        root: where relative image paths start from.
        source: name of the dataset, where neither rules nor row name one.
        formats: of pictures inside tables that were looked at, counted, since no name tells them.
        unmet: mapped columns that no row has had yet.
    """

    rules: Rules
    root: ImageRoot
    source: str
    formats: Counter[str] = field(default_factory=Counter)
    unmet: set[str] = field(init=False)
    _plans: dict[tuple[str, ...], Plan] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.unmet = set(self.rules.columns.values())

    def candidates(self, row: Row) -> list[Pair | Reject]:
        """Return the pairs of a row and what was refused of it; never empty.

        Raises:
            InputError: when it is unclear which column is meant.
        """
        try:
            return self._candidates(row)
        except Refused as flaw:
            return [reject(row.place, flaw.reason, flaw.detail, row.fields)]
        except UnusableImage as flaw:
            return [reject(row.place, flaw.reason, f"{flaw.where}: {flaw.what}", row.fields)]

    def _candidates(self, row: Row) -> list[Pair | Reject]:
        plan = self._plan(row)
        fields = row.fields
        get = _getter(fields)
        captions, refused = _captions(plan, row, self.rules)
        if not captions:
            return refused
        source_id = identifier_of(get(plan.key), "key")
        written, image = self._image(get(plan.image), get(plan.picture), found=row.load is not None)
        width, height = size_of(get(plan.width), "width"), size_of(get(plan.height), "height")
        if self.rules.verify != "off" and image and not is_url(image):
            seen = _look(row, image, self.rules.verify)
            width, height = width or seen[0], height or seen[1]
            self.formats[seen[2]] += in_table(image)
        source = self.rules.source or text_of(get(plan.source), "source") or self.source
        first = Pair(
            key=_stored_key(fields, plan, self.rules.wording) or pair_key(source, source_id or written, captions[0]),
            caption=captions[0],
            source_id=source_id,
            image=image,
            captions=tuple(captions[1:]),
            boxes=read_boxes(get(plan.boxes), width, height, self.rules.box_unit),
            width=width,
            height=height,
            source=source,
            license=identifier_of(get(plan.license), "license"),
            meta=_meta(plan, fields),
        )
        if not self.rules.explode or len(captions) == 1:
            return [first, *refused]
        return [*_exploded(first, captions, source_id or written), *refused]

    def _plan(self, row: Row) -> Plan:
        names = (*row.fields, *row.pictures)
        plan = self._plans.get(names)
        if plan is None:
            try:
                plan = resolve(tuple(row.fields), self.rules.columns, row.pictures)
            except Unclear as unclear:
                wording = self.rules.wording
                choice = wording.column(unclear.part, unclear.column)
                mend = "Leave one of them." if wording.bare else f"Choose one: {choice}."
                raise InputError(unclear.what, where=row.place, mend=mend) from None
            self.unmet = unmet(self.unmet, names)
            if self.rules.source and plan.source:  # settled by hand; what the row says is kept beside
                plan = replace(plan, source=None, extra=(*plan.extra, plan.source))
            if len(self._plans) >= PLANS_KEPT:  # rows without any fixed shape must not fill the memory
                self._plans.clear()
            self._plans[names] = plan
        return plan

    def _image(self, value: Any, picture: Any, *, found: bool) -> tuple[str, str]:
        """Return what is written of an image, which its key is made of, and its locator.

        ``found``: the reader itself found the image, which may lie anywhere.
        """
        if isinstance(value, bytes) or (isinstance(value, InTable) and not value.locator):
            if self.rules.verify != "off":
                raise Refused("image_in_table", "the image is bytes, not a text: the pictures stand inside the table")
            value = value.name if isinstance(value, InTable) else ""
        if isinstance(value, InTable):
            return value.name, value.locator
        written = text_of(value, "image")
        if isinstance(picture, InTable) and picture.locator:
            return written, picture.locator
        return written, (ImageRoot(self.root.folder) if found else self.root).locate(written)


def _getter(fields: dict[str, Any]) -> Callable[[str | None], Any]:
    # A plan says None for a part that the rows lack, and no row has a column None.
    return cast("Callable[[str | None], Any]", fields.get)


def _look(row: Row, image: str, how: Literal["header", "full"]) -> tuple[int, int, str]:
    if row.load is not None:
        return check_image(row.load(), how, image)
    return check_locator(image, how)


def _captions(plan: Plan, row: Row, rules: Rules) -> tuple[list[str], list[Pair | Reject]]:
    """Return the row's captions without repetitions, and a rejection for each that is none."""
    values = [*_listed(row.fields, plan.caption), *_unpacked(row.fields, plan.captions, rules.wording)]
    good: dict[str, None] = {}
    refused: list[Pair | Reject] = []
    for number, value in enumerate(values, 1):
        try:
            good[_caption(value, rules.max_caption)] = None
        except Refused as flaw:
            several = len(values) > 1
            place = f"{row.place}, caption {number}" if several else row.place
            refused.append(reject(place, flaw.reason, flaw.detail, row.fields, of_caption=several))
    if not values:
        raise Refused("empty_caption", "there is no caption")
    return list(good), refused


def _listed(fields: Mapping[str, Any], column: str | None) -> list[Any]:
    if column is None:
        return []
    value = fields[column]
    return value if isinstance(value, list) else [value]


def _unpacked(fields: Mapping[str, Any], column: str | None, wording: Wording) -> list[Any]:
    """Return a list of captions that may be JSON text, or one plain text."""
    if column is None or (value := fields[column]) is None or value == "":
        return []
    if isinstance(value, str):
        return _list_in(value, column, wording) if value.lstrip().startswith("[") else [value]
    if not isinstance(value, list):
        raise Refused("wrong_type", f"{column} is {type_name(value)}, not a list of texts")
    return value


def _list_in(text: str, column: str, wording: Wording) -> list[Any]:
    try:
        return cast("list[Any]", parse_json(text))  # JSON that begins with [ is a list
    except Refused as flaw:
        one = f"for one caption a row: {'name it caption' if wording.bare else wording.column('caption', column)}"
        raise Refused(flaw.reason, f"{column} begins with [ and is no JSON list ({flaw.detail}); {one}") from None


def _caption(value: Any, most: int) -> str:
    if value is None:
        raise Refused("empty_caption", "the caption is null")
    text = text_of(value, "caption")
    if not text or text.isspace():
        raise Refused("empty_caption", "the caption is empty")
    if IMAGE_MARK in text:
        raise Refused("image_mark", f"the caption holds {IMAGE_MARK}")
    if len(text) > most and most < MAX_CAPTION:
        raise Refused("caption_too_long", f"the caption has {len(text):,} characters, more than {most:,}")
    if len(text) > MAX_CAPTION:
        raise Refused("huge_field", f"the caption is longer than {MAX_CAPTION} characters")
    return text


def _stored_key(fields: Mapping[str, Any], plan: Plan, wording: Wording) -> str:
    if plan.stored_key is None:
        return ""
    key = fields[plan.stored_key]
    if not isinstance(key, str) or not _HEX128.fullmatch(key):
        other = "rename it" if wording.bare else f"map it: {wording.column('key', 'NAME')}"
        raise Refused("wrong_type", f"beside source_id, key must be 32 hex digits (or {other})")
    return key


def _exploded(first: Pair, captions: list[str], locator: str) -> list[Pair | Reject]:
    return [
        Pair(
            key=first.key if caption == first.caption else pair_key(first.source, locator, caption),
            caption=caption,
            source_id=first.source_id,
            image=first.image,
            captions=tuple(other for other in captions if other != caption),
            boxes=first.boxes,
            width=first.width,
            height=first.height,
            source=first.source,
            license=first.license,
            meta=first.meta,
        )
        for caption in captions
    ]


def _meta(plan: Plan, fields: Mapping[str, Any]) -> str:
    stored = None if plan.meta is None else fields[plan.meta]
    if not plan.extra and not stored:
        return "{}"
    values: dict[str, Any] = {}
    if isinstance(stored, str) and stored:
        with suppress(Refused):  # else a text of the user's own under that name; it is kept as one
            stored = parse_json(stored)
    if isinstance(stored, dict):
        values.update(stored)
    elif stored is not None:
        values["meta"] = stored
    for name in plan.extra:
        values[name] = fields[name]
    try:
        text = compact_json({name: json_of(value) for name, value in values.items()})
    except RecursionError:
        raise Refused("wrong_type", "a field is nested too deeply") from None
    return text_of(text, "row")
