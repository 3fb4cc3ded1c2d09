"""Readers of published benchmarks: their rows as candidate rows; `benchmark_writers.py` is the way back.

A benchmark whose score is over several texts or images gives several candidate rows with a field ``question``:

- ``{"choice": ID, "option": NUMBER, "options": COUNT}``: one image with several negatives, one row each (What'sUp,
  NegBench). NUMBER is the position of the negative among all texts, from 0.
- ``{"group": ID}``: two images with two captions, one row per image (Winoground, ColorSwap, BiVLC, MMVP-VLM): the
  caption of one is the negative of the other.
- ``pair`` and ``set``: questions that only count together (What'sUp). ``class``: classes whose accuracies are averaged
  (ARO).

Rows that the benchmark's own users skip are rejected with a reason of `REASONS`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Final

from pairwright.filters.candidates.invalid_rows import InvalidRow
from pairwright.filters.candidates.own_layouts import edit_type_of_file
from pairwright.filters.candidates.source_rows import LocatedReading, LocatedRow, Source, SourceRow, image_path

REASONS: Final[Mapping[str, str]] = {
    "identical": "negative and caption are equal",
    "repeated_caption": "the second caption equals the first (SugarCrepe++)",
    "repeated_row": "an earlier row has the same image and texts",
    "not_accepted": "fewer than two annotators chose the caption (VALSE)",
    "no_preference": "both answers have the same mean rating, or one has none (VLFeedback)",
}
VALSE_FILES: Final = frozenset(
    f"{name}.json"
    for name in (
        *("existence", "plurals", "counting-hard", "counting-small-quant", "counting-adversarial", "relations"),
        *("action-replacement", "actant-swap", "coreference-standard", "coreference-hard", "foil-it"),
    )
)
TWO_BY_TWO: Final = (
    ("image_0", "image_1", "caption_0", "caption_1"),  # Winoground
    ("image_1", "image_2", "caption_1", "caption_2"),  # ColorSwap
    ("image", "negative_image", "caption", "negative_caption"),  # BiVLC
)
_BOX = ("bbox_x", "bbox_y", "bbox_w", "bbox_h")
_ACCEPTED = 2  # of three annotators
_RELATION = re.compile(
    r"(?P<one>.+?)_(?P<relation>left_of|right_of|on|under|in-front_of|in_front_of|behind)_(?P<two>.+)"
)
_AXES = {"left_of": "side", "right_of": "side", "on": "height", "under": "height"}  # others: depth
MMVP: Final = ("Question ID", "Type", "Statement")
UNTEMPLATED: Final = "untemplated"
_FEWEST_OPTIONS = 2
_LINES = 2  # of a group


def mapping_of(row: SourceRow) -> dict[str, Any]:
    """Return the fields of a row.

    Raises:
        InvalidRow: it is no object.
    """
    if not isinstance(row.value, Mapping):
        what = f"{type(row.value).__name__} instead of an object"
        raise InvalidRow("wrong_type", what, where=row.place, fix="Each row is a JSON object.")
    return {str(name): value for name, value in row.value.items()}


def take(fields: dict[str, Any], names: Iterable[str], place: str) -> Any:
    """Remove and return the value of the first of ``names`` that ``fields`` has.

    Raises:
        InvalidRow: it has none, or an empty one.
    """
    wanted = list(names)
    for name in wanted:
        value = fields.get(name)
        if value is not None and value != "":
            return fields.pop(name)
    empty = next((f" ({name} is empty)" for name in wanted if name in fields), "")
    others = ", ".join(name for name, value in fields.items() if value is not None)[:200]
    fix = f"It has: {others}." if others else "Add it."
    raise InvalidRow("missing_column", f"no {' or '.join(wanted)}{empty}", where=place, fix=fix)


def text_of(fields: dict[str, Any], names: Iterable[str], place: str) -> str:
    """Remove and return a text; errors as of `take`, and for a value of another type."""
    wanted = list(names)
    value = take(fields, wanted, place)
    if not isinstance(value, str):
        raise _type_error(wanted[0], value, "a text", place)
    return value


def _type_error(name: str, value: Any, expected: str, place: str) -> InvalidRow:
    given = "empty" if value == "" else type(value).__name__
    what = f"{name} is {given}, not {expected}"
    return InvalidRow("wrong_type", what, where=place, fix=f"Write it as {expected}.")


def screen(rows: Iterable[LocatedReading]) -> Iterator[LocatedReading]:
    """Yield the rows, rejecting equal texts and repeated rows."""
    seen: set[tuple[str, ...]] = set()
    for place, row in rows:
        if isinstance(row, InvalidRow) or row.get("status") == "rejected":
            yield place, row
            continue
        texts = tuple(" ".join(str(row.get(name) or "").split()) for name in ("caption", "negative", "positive"))
        this = (str(row.get("image")), str(row.get("question", {})), *texts)
        reason = "repeated_row" if this in seen else _equal_texts(*texts)
        seen.add(this)
        yield place, {**row, "status": "rejected", "reason": reason} if reason else row


def _equal_texts(caption: str, negative: str, positive: str) -> str:
    if negative and negative in {caption, positive}:
        return "identical"
    return "repeated_caption" if positive and positive == caption else ""


def sugarcrepe_plus_plus(row: SourceRow) -> Iterator[LocatedRow]:
    """Yield a row of SugarCrepe++: ``caption2`` is a second true text."""
    fields = mapping_of(row)
    second = text_of(fields, ["caption2"], row.place)
    image, negative = (text_of(fields, [name], row.place) for name in ("filename", "negative_caption"))
    yield (
        row.place,
        {
            "id": row.index,
            **edit_type_of_file(row.stem),
            **fields,
            "image": image,
            "negative": negative,
            "positive": second,
        },
    )


def valse(row: SourceRow) -> Iterator[LocatedRow]:
    """Yield the rows of a VALSE entry, one per foil."""
    fields = mapping_of(row)
    fields.pop("key", None)  # repeats the index
    image = text_of(fields, ["image_file"], row.place)
    foils = take(fields, ["foil", "foils"], row.place)
    foils = foils if isinstance(foils, list) else [foils]
    votes = fields.get("mturk")
    chosen = votes.get("caption") if isinstance(votes, Mapping) else _ACCEPTED
    accepted = isinstance(chosen, int) and chosen >= _ACCEPTED
    verdict = {} if accepted else {"status": "rejected", "reason": "not_accepted"}
    form = row.stem if f"{row.stem}.json" in VALSE_FILES else fields.get("linguistic_phenomena") or "foil"
    for number, foil in enumerate(foils):
        id_ = row.index if len(foils) == 1 else f"{row.index}-{number}"
        yield row.place, {**fields, "id": id_, "image": image, "negative": foil, "form": form, **verdict}


def aro(row: SourceRow) -> Iterator[LocatedRow]:
    """Yield a row of ARO's VG-Relation or VG-Attribution; the image is cropped to its box when it is evaluated."""
    fields = mapping_of(row)
    image, caption, negative = (
        text_of(fields, [name], row.place) for name in ("image_path", "true_caption", "false_caption")
    )
    box = [fields.get(name) for name in _BOX]
    if any(side is not None for side in box) and not all(map(_is_number, box)):
        raise _type_error(", ".join(_BOX), box, "four numbers", row.place)
    pair = fields.get("attributes")
    relation = fields.get("relation_name")
    named = "_".join(map(str, pair)) if isinstance(pair, list) else str(relation or "")
    form = "attribution" if isinstance(pair, list) else "relation"
    texts = {"id": row.index, "image": image, "caption": caption, "negative": negative, "form": form}
    yield row.place, {**fields, **texts, **({"question": {"class": named}} if named else {})}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def whatsup(row: SourceRow) -> Iterator[LocatedRow]:
    """Yield the rows of a What'sUp question, one per wrong option; the first option is right."""
    fields = mapping_of(row)
    given = take(fields, ["image_path", "image_id"], row.place)
    image = f"{given:012d}.jpg" if isinstance(given, int) else given
    options = _texts(fields.pop("caption_options", None), "caption_options", row.place)
    question: dict[str, str] = {"choice": row.index}
    found = _RELATION.fullmatch(Path(str(image)).stem)
    if found is not None:
        one, relation, two = found.group("one", "relation", "two")
        question |= {"pair": f"{one}|{two}|{_AXES.get(relation, 'depth')}", "set": f"{one}|{two}", "class": relation}
    yield from _options(row, {**fields, "image": image, "form": "position", "question": question}, options, 0)


def whatsup_qa(row: SourceRow) -> Iterator[LocatedRow]:
    """Yield a row of What'sUp's COCO-QA or VG-QA: ``[image id, true caption, false caption]``."""
    value = row.value
    if not isinstance(value, list) or [isinstance(each, str) for each in value[1:]] != [True, True] or not value[0]:
        raise _type_error("the row", value, "[image id, caption, negative]", row.place)
    texts = {"image": whatsup_qa_image(value[0], row.stem), "caption": value[1], "negative": value[2]}
    yield row.place, {"id": row.index, **texts, "form": "position"}


def vl_checklist(row: SourceRow) -> Iterator[LocatedRow]:
    """Yield the rows of VL-CheckList's ``[image, {"POS": [caption], "NEG": [negative]}]``, one per caption and negative."""
    value = row.value
    if not is_vl_checklist(value):
        raise _type_error("the row", value, '[image, {"POS": [caption], "NEG": [negative]}]', row.place)
    image, texts = value
    captions, negatives = (_texts(texts[name], name, row.place) for name in ("POS", "NEG"))
    if not (captions and negatives):
        raise InvalidRow("empty_negative", "no caption or no negative", where=row.place, fix="Add them.")
    for number, (caption, negative) in enumerate(product(captions, negatives)):
        id_ = f"{row.index}-{number}" if number else row.index
        yield row.place, {"id": id_, "image": image, "caption": caption, "negative": negative, "form": row.stem}


def is_vl_checklist(value: object) -> bool:
    """Return whether a row is an image with its captions and negatives."""
    return (
        isinstance(value, list)
        and len(value) == 2
        and isinstance(value[0], str)
        and isinstance(value[1], Mapping)
        and {"POS", "NEG"} <= value[1].keys()
    )


def whatsup_qa_image(number: object, file: str) -> str:
    """Return the file name of an image by its number: as of COCO, or of Visual Genome in a file ``vg_qa_...``."""
    return f"{number}.jpg" if file.startswith("vg") else f"{str(number).zfill(12)}.jpg"


def negbench(row: SourceRow) -> Iterator[LocatedRow]:
    """Yield the rows of a NegBench question, one per wrong option."""
    fields = mapping_of(row)
    image = text_of(fields, ["image_path", "filepath"], row.place)
    given = (name for name, text in fields.items() if re.fullmatch(r"caption_\d+", name) and text)
    names = sorted(given, key=lambda name: int(name[8:]))  # without the empty cells of a shorter question
    options = [text_of(fields, [name], row.place) for name in names]
    right = str(take(fields, ["correct_answer"], row.place))
    number = right.removesuffix(".0")  # pandas writes whole numbers so where others are missing
    named = f"caption_{int(number)}" if number.isdecimal() else ""
    if named not in names:
        what = f"correct_answer is {right!r}, not an index of the {len(options)} captions"
        raise InvalidRow("wrong_type", what, where=row.place, fix="Write the index of the right caption, from 0.")
    form = fields.pop("correct_answer_template", None) or UNTEMPLATED
    fields = {name: value for name, value in fields.items() if not re.fullmatch(r"caption_\d+", name)}
    body = {**fields, "image": image, "form": form, "question": {"choice": row.index}}
    yield from _options(row, body, options, names.index(named))


def _texts(value: Any, name: str, place: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise _type_error(name, value, "a list of texts", place)
    return value


def _options(row: SourceRow, body: Mapping[str, Any], options: list[str], right: int) -> Iterator[LocatedRow]:
    if len(options) < _FEWEST_OPTIONS:
        raise InvalidRow("empty_negative", "fewer than two captions", where=row.place, fix="Add the wrong ones.")
    for number, option in enumerate(options):
        if number != right:
            question = {**body["question"], "option": number, "options": len(options)}
            texts = {"id": f"{row.index}-{number}", "caption": options[right], "negative": option}
            yield row.place, {**body, **texts, "question": question}


def two_by_two_names(fields: Iterable[str]) -> tuple[str, str, str, str] | None:
    """Return the names of the two images and the two captions; None if a row is no such group."""
    known = set(fields)
    return next((names for names in TWO_BY_TWO if known.issuperset(names)), None)


def two_by_two(row: SourceRow) -> Iterator[LocatedRow]:
    """Yield the two rows of a group of two images and two captions."""
    fields = mapping_of(row)
    names = two_by_two_names(name for name, value in fields.items() if value is not None)
    if names is None:
        fix = f"It has: {', '.join(fields)[:200]}."
        raise InvalidRow("missing_column", "not two images and two captions", where=row.place, fix=fix)
    captions = [text_of(fields, [name], row.place) for name in names[2:]]
    images = [_image(fields.pop(name), name, row) for name in names[:2]]
    id_ = str(fields.pop("id", row.index))
    form = fields.pop("type", None) or fields.pop("tag", None) or "two_by_two"
    rest = {name: value for name, value in fields.items() if not isinstance(value, bytes)}
    yield from _group(row.place, id_, images, captions, {**rest, "form": str(form)})


def _image(value: Any, name: str, row: SourceRow) -> str:
    """Return the locator of an image: a path, or the cell of a Parquet table."""
    value = image_path(value)
    if not isinstance(value, str) or not value:
        raise _type_error(name, value, "a path", row.place)
    return value


def _group(
    place: str, id_: str, images: list[str], captions: list[str], body: Mapping[str, Any]
) -> Iterator[LocatedRow]:
    for at, image in enumerate(images):
        texts = {"image": image, "caption": captions[at], "negative": captions[1 - at]}
        yield place, {**body, "id": f"{id_}-{at}", **texts, "question": {"group": id_}}


def mmvp(source: Source) -> Iterator[LocatedReading]:
    """Yield the rows of MMVP-VLM's Questions.csv: two lines in succession are a group."""
    first: tuple[str, str, str] | None = None  # id, image, statement
    position = -1
    for position, row in enumerate(source.rows()):
        place, found = _mmvp_line(row)
        is_first = position % _LINES == 0
        if isinstance(found, InvalidRow):
            yield place, found
        elif not is_first and first is not None:
            images, captions = [first[1], found[1]], [first[2], found[2]]
            form = found[1].partition("/")[0]
            yield from _group(place, f"{first[0]}+{found[0]}", images, captions, {"form": form})
        if not is_first and (isinstance(found, InvalidRow) != (first is None)):
            alone = first[0] if first is not None else found[0] if not isinstance(found, InvalidRow) else ""
            yield place, _no_partner(alone, place)
        first = None if isinstance(found, InvalidRow) else found
    if position % _LINES == 0 and first is not None:
        yield str(source.path), _no_partner(first[0], str(source.path))


def _mmvp_line(row: SourceRow | InvalidRow) -> tuple[str, tuple[str, str, str] | InvalidRow]:
    """Return place, and id, image and statement of a line or its error."""
    if isinstance(row, InvalidRow):
        return row.where, row
    fields = {name.strip(): value for name, value in mapping_of(row).items()}
    try:
        id_, kind, statement = (text_of(fields, [name], row.place) for name in MMVP)
    except InvalidRow as flaw:
        return row.place, flaw
    return row.place, (id_, f"{kind}/{id_}.jpg", statement)


def _no_partner(id_: str, place: str) -> InvalidRow:
    return InvalidRow("missing_column", f"question {id_} has no partner", where=place, fix="Add it.")
