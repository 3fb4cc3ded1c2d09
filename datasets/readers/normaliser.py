"""Conversion of raw rows to pairs and rejects, with the same rules for every format.

- A row has ``caption`` (a text, a list, or a list of texts as JSON or Python text) and/or ``captions`` (a list, its JSON or Python text, or one plain text). The first is
  the pair's caption, the rest its `captions`; with `explode` each caption makes a pair, with the others in `captions`.
  Captions are unchanged, or with `clean_captions` without what is no part of the sentence (`captions/cleaning.py`), which
  rejects those of which nothing is left; a repeated caption counts once. A caption that is empty, not a text, longer than
  `NormaliserOptions.max_caption`, or contains the image token of trainers or a control character other than tabs and line
  breaks (NUL ends a text in C and is refused by databases) is rejected alone, and the row is kept; a row of which all are,
  is one rejected row. With `explode` each caption counts as a row.
- In formats with a row per caption, the rows of an image next to each other are pairs of their own, each with the captions
  of the others in its `captions` (`join_captions`).
- ``key`` is the hash of source, source id (or else the image as written) and caption.
- A number in a column that is the image by its name only (``image: 17``) identifies the image of the row and is no place of
  it: it is the source id, unless a column is. In a column that the user maps to the image, a text of digits is a file name.
- An image may be a list of one. A row with several is rejected: which of them a caption describes is unknown.
- A relative image path is resolved against the image root, or else the file's folder; URLs are unchanged. With an image
  root, images outside it are rejected. The image is checked (`verify`) and provides a missing width and height. An image
  inside a table is ``table.parquet::column/row-N``.
- A row with a bad box is a pair without boxes, and its boxes are rejected: texts about what is absent or how many there
  are rely on boxes being complete.
- With `without_caption` a row may have an image and no caption; its pair has an empty one.
- Columns without a part go into `meta` as JSON, with NaN as null and without bytes.

Limits: a caption has at most `MAX_CAPTION_LENGTH` code points.
"""

import ast
import io
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from tokenize import STRING, TokenError, generate_tokens
from typing import Any, Literal, TypeVar, cast

from pairwright.datasets.captions.cleaning import clean_web_caption, has_content
from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import (
    ImageRoot,
    UnusableImageError,
    check_image,
    check_image_at,
    is_stored_file,
    is_url,
)
from pairwright.datasets.option_names import OptionNames
from pairwright.datasets.readers.boxes import CROWD, BoxUnit, read_boxes
from pairwright.datasets.readers.column_expressions import add_computed, compute
from pairwright.datasets.readers.columns import (
    AmbiguousColumnsError,
    ColumnPlan,
    find_column,
    find_unmatched_columns,
    resolve_columns,
)
from pairwright.datasets.readers.field_values import (
    is_image_in_base64,
    is_missing,
    parse_identifier,
    parse_image_number,
    parse_pixel_size,
    parse_text_field,
    to_json_value,
)
from pairwright.datasets.readers.input_rows import InputRow, InputRowIterator, TableImage
from pairwright.datasets.readers.known_layouts import CAPTION_PARTS
from pairwright.datasets.readers.text_files import json_type_name, parse_json
from pairwright.datasets.records import IMAGE_TOKEN, Box, Pair, compact_json, pair_key
from pairwright.datasets.rejects import (
    BAD_BOX,
    NEVER_FATAL_REASONS,
    NO_CONTENT,
    NOT_SELECTED,
    Reject,
    RejectError,
    make_reject,
)
from pairwright.datasets.remote.object_store import is_remote

VerifyImages = Literal["off", "header", "full"]

MAX_CAPTION_LENGTH = 131_072
CACHED_PLANS = 1024
_CHECKED_AHEAD = 32  # images of a store at a time
MAX_JOINED = 64  # rows with one image, above which the image is a placeholder

_CONTROL = re.compile("[\0-\x08\x0e-\x1f\x7f]")
_T = TypeVar("_T")
_HEX128 = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class NormaliserOptions:
    """Options of the conversion; see `pairs.ReadOptions`."""

    columns: Mapping[str, str]
    where: Mapping[str, Collection[str]]
    explode: bool
    verify: VerifyImages
    box_unit: BoxUnit
    source: str
    option_names: OptionNames
    max_caption: int = MAX_CAPTION_LENGTH
    without_caption: bool = False
    clean_captions: bool = False


@dataclass
class Normaliser:
    """Turns the rows of one input into pairs.

    Attributes:
        rules: the same for all inputs.
        root: start of relative image paths.
        source: name of the dataset, if neither rules nor row name one.
        formats: locator to format of the images that were opened, until the reader clears them.
        unmatched_columns: columns that are mapped or selected by and that no row has had so far.
    """

    rules: NormaliserOptions
    root: ImageRoot
    source: str
    formats: dict[str, str] = field(default_factory=dict)
    unmatched_columns: set[str] = field(init=False)
    _checks: dict[str, Future[tuple[int, int, str]]] = field(init=False, default_factory=dict)  # by image
    _plans: dict[tuple[str, ...], ColumnPlan] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.unmatched_columns = {*self.rules.columns.values(), *self.rules.where}

    def check_ahead(self, rows: InputRowIterator) -> InputRowIterator:
        """Yield the rows; if their images are files of a store, check those of the next rows meanwhile."""
        if self.rules.verify == "off" or not is_remote(self.root.folder):
            yield from rows
            return
        waiting: list[InputRow | Reject] = []
        with ThreadPoolExecutor(_CHECKED_AHEAD) as pool:
            for row in rows:
                waiting.append(row)
                in_open_tar = isinstance(row, InputRow) and row.load is not None  # read before the next row
                if isinstance(row, InputRow) and not in_open_tar and is_stored_file(image := self._locate(row)):
                    self._checks[image] = pool.submit(check_image_at, image, self.rules.verify)
                if in_open_tar or len(waiting) == _CHECKED_AHEAD:
                    yield from waiting
                    waiting.clear()
                    self._checks.clear()
            yield from waiting
            self._checks.clear()

    def select(self, rows: InputRowIterator) -> InputRowIterator:
        """Return the rows, those that the options do not select as rejects."""
        if not self.rules.where:
            return rows
        return (row if isinstance(row, Reject) else self._selected(row) for row in rows)

    def _selected(self, row: InputRow) -> InputRow | Reject:
        self.unmatched_columns = find_unmatched_columns(self.unmatched_columns, (*row.fields, *row.pictures))
        for column, wanted in self.rules.where.items():
            value = compute(row.fields, find_column(column, tuple(row.fields)))
            if not _written_values(value) & set(wanted):
                return make_reject(row.place, NOT_SELECTED, f"{column} is {value!r:.100}", row.fields)
        return row

    def join_captions(
        self, rows: InputRowIterator, before: InputRowIterator | None = None, after: InputRowIterator | None = None
    ) -> InputRowIterator:
        """Yield the rows; those next to each other that have one caption each of the same image know each other's.

        Args:
            rows: of a file, or of a part of it.
            before: up to `MAX_JOINED` rows before the part, which are not yielded.
            after: likewise the rows after the part.
        """
        last = ""

        def image_of(placed: tuple[bool, InputRow | Reject]) -> str:
            nonlocal last
            if isinstance(placed[1], InputRow):  # a row that is not selected stays with the rows around it
                last = self._image_of_caption(placed[1])
            return last

        parts = ((False, before or ()), (True, rows), (False, after or ()))
        placed = ((inside, row) for inside, part in parts for row in part)
        for image, group in groupby(placed, key=image_of):
            some = list(islice(group, MAX_JOINED + 1)) if image else []
            joined = self._joined([row for _, row in some]) if 1 < len(some) <= MAX_JOINED else (row for _, row in some)
            yield from (row for (inside, _), row in zip(some, joined, strict=True) if inside)
            yield from (row for inside, row in group if inside)  # noqa: B031 - the rest of it

    def _joined(self, rows: Sequence[InputRow | Reject]) -> InputRowIterator:
        texts = [self._caption_text(row) if isinstance(row, InputRow) else "" for row in rows]
        for at, row in enumerate(rows):
            others = dict.fromkeys(text for text in (*texts[:at], *texts[at + 1 :]) if text)
            yield replace(row, other_captions=tuple(others)) if others and isinstance(row, InputRow) else row

    def _image_of_caption(self, row: InputRow) -> str:
        """Return the image of a row with one caption, as written; empty for other rows."""
        try:
            plan = self._plan(row)
            if plan.image is None or plan.caption is None or plan.captions is not None:
                return ""
            image = _only_image(compute(row.fields, plan.image) if plan.computed else row.fields[plan.image])
        except (RejectError, InputError):  # reported when the row is read
            return ""
        return image if isinstance(image, str) else parse_image_number(image)

    def _caption_text(self, row: InputRow) -> str:
        """Return the caption of a row; empty if it will be rejected, or is several."""
        try:
            return _check_caption(_listed(compute(row.fields, self._plan(row).caption or "")), self.rules)
        except RejectError:
            return ""

    def _locate(self, row: InputRow) -> str:
        """Return the locator of the image of a row; empty if there is none, or the row is invalid."""
        try:
            plan = self._plan(row)
            get = _getter(add_computed(row.fields, plan.computed) if plan.computed else row.fields)
            return self._image(row, get(plan.image), get(plan.picture))[1]
        except (RejectError, InputError):
            return ""

    def candidates(self, row: InputRow) -> list[Pair | Reject]:
        """Return the pairs and rejects of a row; never empty.

        Raises:
            InputError: if columns are ambiguous.
        """
        try:
            return self._candidates(row)
        except (RejectError, UnusableImageError) as flaw:
            return [make_reject(row.place, flaw.reason, _describe_flaw(flaw, row), row.fields)]

    def _candidates(self, row: InputRow) -> list[Pair | Reject]:
        plan = self._plan(row)
        if plan.computed:
            row = replace(row, fields=add_computed(row.fields, plan.computed))
        fields = row.fields
        get = _getter(fields)
        captions, refused = _captions(plan, row, self.rules)
        if refused and not captions:
            return [*refused] if self.rules.explode else [_reject_row(row, refused)]
        source_id = parse_identifier(get(plan.key), "key") or self._image_number(row, get(plan.image))
        try:
            written, image, size, image_format = self._verified_image(row, get(plan.image), get(plan.picture))
        except (RejectError, UnusableImageError) as flaw:
            if not self.rules.explode or len(captions) <= 1:
                raise
            # Each caption is a row of its own, and is counted as one.
            detail = _describe_flaw(flaw, row)
            return [*(make_reject(row.place, flaw.reason, detail, caption) for caption in captions), *refused]
        if not captions and not image:
            raise RejectError("missing_image", "there is neither a caption nor an image")
        caption = captions[0] if captions else ""
        if row.other_captions and len(captions) == 1:
            captions += [other for other in row.other_captions if other != caption]
        optional = _OptionalFields(row)
        width = optional.read(get(plan.width), "width", parse_pixel_size, 0) or size[0]
        height = optional.read(get(plan.height), "height", parse_pixel_size, 0) or size[1]
        license_ = optional.read(get(plan.license), "license", parse_identifier, "")
        boxes, rejected_boxes = self._boxes(row, get(plan.boxes), (width, height))
        parts = [*refused, *rejected_boxes, *optional.rejects]
        source = self.rules.source or parse_identifier(get(plan.source), "source") or self.source
        first = Pair(
            key=_stored_key(fields, plan, self.rules.option_names) or pair_key(source, source_id or written, caption),
            caption=caption,
            source_id=source_id,
            image=image,
            captions=tuple(captions[1:]),
            boxes=boxes,
            width=width,
            height=height,
            source=source,
            license=license_,
            meta=_meta(plan, fields, with_crowd=not rejected_boxes),
        )
        if image_format:
            self.formats[image] = image_format
        if not self.rules.explode or len(captions) <= 1 or row.other_captions:
            return [first, *parts]
        return [*_explode_captions(first, captions, source_id or written), *parts]

    def _boxes(self, row: InputRow, value: Any, size: tuple[int, int]) -> tuple[tuple[Box, ...], list[Reject]]:
        """Return the boxes of a row; if one is bad, none and a reject for all of them."""
        flaw = row.bad_box
        if not flaw:
            try:
                return read_boxes(value, *size, self.rules.box_unit), []
            except RejectError as bad:
                flaw = bad.detail
        return (), [make_reject(f"{row.place}, boxes", BAD_BOX, flaw, row.fields, part="boxes")]

    def _plan(self, row: InputRow) -> ColumnPlan:
        names = (*row.fields, *row.pictures)
        plan = self._plans.get(names)
        if plan is None:
            try:
                plan = resolve_columns(
                    tuple(row.fields), self.rules.columns, row.pictures, without_caption=self.rules.without_caption
                )
            except RejectError:
                if row.missing_caption and not CAPTION_PARTS & self.rules.columns.keys():
                    raise RejectError("missing_caption", row.missing_caption) from None
                raise
            except AmbiguousColumnsError as unclear:
                option_names = self.rules.option_names
                choice = option_names.column(unclear.part, unclear.column)
                fix = "Remove one of them." if option_names.no_options else f"Choose one: {choice}."
                raise InputError(unclear.what, where=row.place, fix=fix) from None
            self.unmatched_columns = find_unmatched_columns(self.unmatched_columns, names)
            if self.rules.source and plan.source:  # set by the user; the row's value goes to `meta`
                plan = replace(plan, source=None, extra=(*plan.extra, plan.source))
            if len(self._plans) >= CACHED_PLANS:  # rows with ever-changing columns must not fill memory
                self._plans.clear()
            self._plans[names] = plan
        return plan

    def _verified_image(self, row: InputRow, value: Any, picture: Any) -> tuple[str, str, tuple[int, int], str]:
        """Return an image as `_image` does, with its size in pixels and format; 0 and empty where it is not opened.

        Of a row of a table without bytes, among others that have them, it is the file that the row names.
        """
        written, image = self._image(row, value, picture)
        if self.rules.verify == "off" or not image or is_url(image):
            return written, image, (0, 0), ""
        check = self._checks.get(image)
        try:
            width, height, image_format = check.result() if check else _verify_image(row, image, self.rules.verify)
        except UnusableImageError as flaw:
            named = _only_image(value)
            if flaw.reason == "missing_image" and isinstance(named, TableImage) and named.name:
                with suppress(RejectError, UnusableImageError):
                    return self._verified_image(row, named.name, None)
            raise
        return written, image, (width, height), image_format

    def _image_number(self, row: InputRow, value: Any) -> str:
        """Return the number in a column that is the image by its name only; empty for a place of an image."""
        return "" if "image" in self.rules.columns or row.load else parse_image_number(value)

    def _image(self, row: InputRow, value: Any, picture: Any) -> tuple[str, str]:
        """Return an image as written, which determines the key, and its locator.

        An image that the reader found itself (`InputRow.load`) may be outside the root.
        """
        value, picture = _only_image(value), _only_image(picture)
        in_base64 = isinstance(value, str) and is_image_in_base64(value)
        if in_base64 or isinstance(value, bytes) or (isinstance(value, TableImage) and not value.locator):
            if self.rules.verify != "off":
                kind = "in base64" if in_base64 else "bytes"
                raise RejectError("image_in_table", f"the image is {kind} inside the row, not a path")
            value = value.name if isinstance(value, TableImage) else ""
        if isinstance(value, TableImage):
            return value.name, value.locator
        number = self._image_number(row, value)
        written = number or parse_text_field(value, "image")
        if isinstance(picture, TableImage) and picture.locator:
            return written, picture.locator
        if number:
            return written, ""
        return written, (ImageRoot(self.root.folder) if row.load else self.root).locate(written)


@dataclass
class _OptionalFields:
    """Fields that a pair can do without: a row with a bad one is read without it, and its ``rejects`` say so."""

    row: InputRow
    rejects: list[Reject] = field(default_factory=list)

    def read(self, value: Any, what: str, parse: Callable[[Any, str], _T], unknown: _T) -> _T:
        """Return a parsed value; ``unknown`` if it is not usable."""
        try:
            return parse(value, what)
        except RejectError as flaw:
            place = f"{self.row.place}, {what}"
            self.rejects.append(make_reject(place, flaw.reason, flaw.detail, self.row.fields, part="field"))
            return unknown


def _only_image(value: Any) -> Any:
    """Return the image of a list of at most one, None for an empty list, the path of ``{bytes, path}`` in JSON.

    Another value is returned unchanged.
    """
    if isinstance(value, list):
        if len(value) > 1:
            raise RejectError("several_images", f"{len(value)} images, where a pair has one")
        value = value[0] if value else None
    if isinstance(value, dict) and isinstance(value.get("path"), str) and value.keys() <= {"bytes", "path"}:
        return value["path"]
    return value


def _written_values(value: Any) -> set[str]:
    """Return a value, or those of a list, as a user writes them: ``true``, and ``3`` for 3.0; null is none of them."""
    values = [item for item in (value if isinstance(value, list) else [value]) if item is not None]
    whole = {str(int(item)) for item in values if isinstance(item, float) and item.is_integer()}
    return whole | {str(item).lower() if isinstance(item, bool) else str(item) for item in values}


def _getter(fields: dict[str, Any]) -> Callable[[str | None], Any]:
    # A plan has None for a missing part, and no row has a column None.
    return cast("Callable[[str | None], Any]", fields.get)


def _verify_image(row: InputRow, image: str, how: Literal["header", "full"]) -> tuple[int, int, str]:
    if row.load is not None:
        return check_image(row.load(), how, image)
    return check_image_at(image, how)


def _reject_row(row: InputRow, captions: Sequence[Reject]) -> Reject:
    """Return the reject of a row of which all captions are rejected; the reason is of one that stops a run, if any."""
    flaw = next((each for each in captions if each.reason not in NEVER_FATAL_REASONS), captions[0])
    detail = f"all {len(captions):,} captions are rejected; {flaw.detail}" if len(captions) > 1 else flaw.detail
    return make_reject(row.place, flaw.reason, detail, row.fields)


def _captions(plan: ColumnPlan, row: InputRow, rules: NormaliserOptions) -> tuple[list[str], list[Reject]]:
    """Return the row's distinct captions, and a reject for each invalid one."""
    values = _listed_captions(row.fields, plan.caption, allow_empty=rules.without_caption)
    single = len(values)
    values += _parse_captions(row.fields, plan.captions, rules.option_names)
    good: dict[str, None] = {}
    refused: list[Reject] = []
    for number, value in enumerate(values, 1):
        try:
            good[_check_caption(value, rules, plan.caption if number <= single else plan.captions)] = None
        except RejectError as flaw:
            several = len(values) > 1
            place = f"{row.place}, caption {number}" if several else row.place
            refused.append(
                make_reject(
                    place,
                    flaw.reason,
                    flaw.detail,
                    row.fields,
                    part="caption" if several and not rules.explode else "row",
                )
            )
    if not values and not rules.without_caption:
        raise RejectError("empty_caption", "there is no caption")
    return list(good), refused


def _listed_captions(fields: Mapping[str, Any], column: str | None, *, allow_empty: bool) -> list[Any]:
    if column is None or (allow_empty and _is_empty(fields[column])):
        return []
    value = _listed(fields[column])
    return value if isinstance(value, list) else [value]


def _listed(value: Any) -> Any:
    """Return the list of a text that is one of texts in JSON or Python (``["a dog", "one dog"]``); else the value."""
    if not (isinstance(value, str) and value.lstrip().startswith("[")):
        return value
    try:
        found = parse_json(value)
    except RejectError:
        found = _parse_list_literal(value)
    is_list = isinstance(found, list) and bool(found) and all(isinstance(item, str) for item in found)
    return found if is_list else value


def _is_empty(value: Any) -> bool:
    return is_missing(value) or (isinstance(value, str) and not value.strip())


def _parse_captions(fields: Mapping[str, Any], column: str | None, option_names: OptionNames) -> list[Any]:
    """Return a list of captions that may be JSON text, or one plain text."""
    if column is None or is_missing(value := fields[column]) or value == "":
        return []
    if isinstance(value, str):
        return _parse_caption_list(value, column, option_names) if value.lstrip().startswith("[") else [value]
    if not isinstance(value, list):
        raise RejectError("wrong_type", f"{column} is {json_type_name(value)}, not a list of texts")
    return value


def _parse_caption_list(text: str, column: str, option_names: OptionNames) -> list[Any]:
    try:
        return cast("list[Any]", parse_json(text))  # JSON that begins with [ is a list
    except RejectError as flaw:
        if (texts := _parse_list_literal(text)) is not None:
            return texts
        one = f"for one caption a row: {'name it caption' if option_names.no_options else option_names.column('caption', column)}"
        raise RejectError(flaw.reason, f"{column} begins with [ and is no JSON list ({flaw.detail}); {one}") from None


def _parse_list_literal(text: str) -> list[Any] | None:
    """Return a Python list literal, as NegBench and pandas write lists, never evaluating it; None if it is none.

    In NumPy's form (``['a dog' 'a cat']``), which Python would read as one text, each text is an item.
    """
    try:
        found = ast.literal_eval(text.strip())
        if not (isinstance(found, list) and all(isinstance(item, str) for item in found)):
            return found if isinstance(found, list) else None
        tokens = list(generate_tokens(io.StringIO(text.strip()).readline))
    except (ValueError, SyntaxError, MemoryError, RecursionError, TokenError):  # the third and fourth: deep nesting
        return None
    strings = [token.string for token in tokens if token.type == STRING]
    if len(strings) == len(found):
        return found
    is_of_numpy = not any(token.string == "," for token in tokens)
    return list(map(ast.literal_eval, strings)) if is_of_numpy else None


def _check_caption(value: Any, rules: NormaliserOptions, column: str | None = None) -> str:
    """Return a caption of a column as the pair has it; raise `RejectError` if it is invalid."""
    most = rules.max_caption
    if is_missing(value):
        raise RejectError("empty_caption", f"the caption is {'null' if value is None else value}")
    if parts := _parts_of_object(value):
        how = f"; to read one of them: {rules.option_names.column('caption', f'{column}.{parts[0]}')}"
        what = f"the caption is an object with {', '.join(parts)[:100]}, not a text"
        raise RejectError("wrong_type", what if rules.option_names.no_options else what + how)
    text = parse_text_field(value, "caption")
    if not text or text.isspace():
        raise RejectError("empty_caption", "the caption is empty")
    if rules.clean_captions:
        cleaned = clean_web_caption(text)
        if not has_content(cleaned):
            raise RejectError(NO_CONTENT, "the caption is a file name, an address or a placeholder")
        text = cleaned
    if IMAGE_TOKEN in text:
        raise RejectError("image_token", f"the caption holds {IMAGE_TOKEN}")
    if not text.isprintable() and (control := _CONTROL.search(text)):  # the first is faster
        raise RejectError("control_character", f"the caption holds the control character U+{ord(control[0]):04X}")
    if len(text) > most and most < MAX_CAPTION_LENGTH:
        raise RejectError("caption_too_long", f"the caption has {len(text):,} characters, more than {most:,}")
    if len(text) > MAX_CAPTION_LENGTH:
        raise RejectError("field_too_long", f"the caption is longer than {MAX_CAPTION_LENGTH} characters")
    return text


def _parts_of_object(value: Any) -> list[str]:
    """Return the names in an object, which may be written as JSON; none for a text or another value."""
    if isinstance(value, str) and value.startswith('{"'):
        with suppress(RejectError):
            value = parse_json(value)
    return [str(name) for name in value] if isinstance(value, dict) else []


def _stored_key(fields: Mapping[str, Any], plan: ColumnPlan, option_names: OptionNames) -> str:
    if plan.stored_key is None:
        return ""
    key = fields[plan.stored_key]
    if not isinstance(key, str) or not _HEX128.fullmatch(key):
        other = "rename it" if option_names.no_options else f"map it: {option_names.column('key', 'NAME')}"
        raise RejectError("wrong_type", f"in rows with source_id, key must be 32 hex digits (or {other})")
    return key


def _describe_flaw(flaw: RejectError | UnusableImageError, row: InputRow) -> str:
    if isinstance(flaw, RejectError):
        return flaw.detail
    return flaw.what if flaw.where == row.place else f"{flaw.where}: {flaw.what}"


def _explode_captions(first: Pair, captions: list[str], locator: str) -> list[Pair | Reject]:
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


def _meta(plan: ColumnPlan, fields: Mapping[str, Any], *, with_crowd: bool) -> str:
    stored = None if plan.meta is None else fields[plan.meta]
    if not plan.extra and not stored:
        return "{}"
    values: dict[str, Any] = {}
    if isinstance(stored, str) and stored:
        with suppress(RejectError):  # another JSON text of the user's under that name is kept as text
            stored = parse_json(stored)
    if isinstance(stored, dict):
        values.update(stored)
    elif stored is not None:
        values["meta"] = stored
    for name in plan.extra:
        values[name] = fields[name]
    if not with_crowd:
        values.pop(CROWD, None)
    try:
        text = compact_json({name: to_json_value(value) for name, value in values.items()})
    except RecursionError:
        raise RejectError("wrong_type", "a field is nested too deeply") from None
    return parse_text_field(text, "row")
