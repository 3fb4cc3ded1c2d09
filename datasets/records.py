"""The three record types of pairwright: pair, annotation, example.

- A *pair* is an image and its caption, with the other captions and the boxes of the same image.
- An *annotation* is a text made for a pair: a hard negative, a hard positive, a conversation. It records what was
  edited, the generator, prompt and seed, and whether it was kept or rejected and why.
- An *example* is a row of a text task with a rationale; it needs no image.

Records are frozen; steps return new ones. They have no nulls: unknown values are an empty string, an empty tuple or 0,
so that every row of every file has the same schema. Files: `record_tables.py`.
"""

import hashlib
import json
from dataclasses import dataclass, field, fields
from json.encoder import encode_basestring as _quoted
from operator import attrgetter
from typing import Any, Literal

Status = Literal["kept", "rejected"]
Role = Literal["human", "assistant"]

EDITED_KINDS = ("hard_negative", "hard_positive")  # kinds of annotations that are edits of a caption
TRAINING_ONLY_FORMS = frozenset({"shuffle"})  # easily detected, or possibly true: excluded from benchmarks
MAX_EDITABLE_CAPTION = 2_000
"""Default limit in characters for captions that texts are made from; CLIP reads about 300, long-text models about 1,000."""
IMAGE_TOKEN = "<image>"  # noqa: S105 - trainers put it where the image goes, so our texts must not contain it


@dataclass(frozen=True, slots=True)
class Box:
    """A labelled rectangle; corners as fractions of width and height: (x1, y1) top left, (x2, y2) bottom right."""

    label: str
    x1: float
    y1: float
    x2: float
    y2: float


@dataclass(frozen=True, slots=True)
class Pair:
    """An image-text pair.

    Attributes:
        key: 32 hex digits, see `pair_key`; fixed when the row is first read.
        source_id: the user's own id of the image or row; may be empty.
        image: a path, a URL, ``shard.tar::member``, or ``table.parquet::column/row-N`` (rows from 1); empty if text-only.
        caption: the caption; empty only in pairs that are read to be captioned (`ReadOptions.without_caption`).
        captions: the other captions of the same image, without ``caption``.
        boxes: labelled boxes of the image.
        width: of the image in pixels; 0 when unknown.
        height: of the image in pixels; 0 when unknown.
        source: name of the dataset that the row came from.
        license: of the row, as the source states it.
        meta: all other columns of the source, as a JSON object.
    """

    key: str
    caption: str
    source_id: str = ""
    image: str = ""
    captions: tuple[str, ...] = ()
    boxes: tuple[Box, ...] = ()
    width: int = 0
    height: int = 0
    source: str = ""
    license: str = ""
    meta: str = "{}"


@dataclass(frozen=True, slots=True)
class Edit:
    """One replaced span of text; spans are [start, end) in code points of source_text and of text.

    An insertion has an empty ``before`` and an empty ``before_span``. A swap has two edits.
    """

    before: str
    after: str
    before_span: tuple[int, int]
    after_span: tuple[int, int]

    # Millions of rows are pickled between processes; the default of a dataclass with slots is three times as slow.
    def __reduce__(self) -> tuple[type["Edit"], tuple[Any, ...]]:
        return Edit, (self.before, self.after, self.before_span, self.after_span)


@dataclass(frozen=True, slots=True)
class Turn:
    """One utterance of a conversation."""

    role: Role
    text: str


@dataclass(frozen=True, slots=True)
class Origin:
    """The maker of a row: generator and version; for an LLM also model, prompt (file and hash) and request."""

    generator: str
    version: int
    seed: int = 0
    model: str = ""
    prompt: str = ""
    request: str = ""


@dataclass(frozen=True, slots=True)
class Annotation:
    """A text made for a pair.

    Attributes:
        id: 32 hex digits, see `annotation_id`.
        key: key of the pair.
        kind: hard_negative, hard_positive, conversation, detail, reasoning, brief, short, choice, ...
        form: replace, swap, add or shuffle; empty without an edit.
        target: object, attribute or relation; empty without an edit.
        text: the new text; empty for conversations and for failed attempts.
        source_text: the caption that was edited.
        edits: what changed, in order of position.
        positive_id: id of the hard positive that a negative is compared with (both-sides pairs).
        turns: of a conversation, human first.
        scores: name to number.
        status: kept or rejected.
        reason: one countable word when rejected (``no_edit``, ``true_of_image``, ...), else empty.
        origin: who made it.
        image_shows: of a negative by a model that saw the image: what the image shows in place of the edit; else empty.
    """

    id: str
    key: str
    kind: str
    origin: Origin
    form: str = ""
    target: str = ""
    text: str = ""
    source_text: str = ""
    edits: tuple[Edit, ...] = ()
    positive_id: str = ""
    turns: tuple[Turn, ...] = ()
    scores: dict[str, float] = field(default_factory=dict)
    status: Status = "kept"
    reason: str = ""
    image_shows: str = ""

    def __reduce__(self) -> tuple[type["Annotation"], tuple[Any, ...]]:
        return Annotation, _values_of(self)


@dataclass(frozen=True, slots=True)
class Example:
    """A row of a text task with its rationale (Distilling step-by-step).

    Attributes:
        id: 32 hex digits.
        task: nli, mcqa, math, itm, or the user's name for it.
        input: what the student reads.
        label: the answer.
        label_source: gold or model.
        rationale: the reasoning that ends in the label.
        split: train or validation.
        key: key of the pair when the task is image-text matching, else empty.
        status: kept or rejected.
        reason: one countable word when rejected, else empty.
        origin: who made the rationale.
    """

    id: str
    task: str
    input: str
    origin: Origin
    label: str = ""
    label_source: str = ""
    rationale: str = ""
    split: str = "train"
    key: str = ""
    status: Status = "kept"
    reason: str = ""


_values_of = attrgetter(*(each.name for each in fields(Annotation)))

# json.dumps would create an encoder on each call.
_encode_sorted = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def _hash(*parts: str | int) -> str:
    # A short JSON list per row: formatting it here takes a fifth of an encoder's time.
    return _digest(f"[{','.join([_quoted(part) if isinstance(part, str) else str(part) for part in parts])}]")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def pair_key(source: str, locator: str, caption: str) -> str:
    """Return the key of a pair: 128 bits in hex over (source, source id or else image locator, caption)."""
    return _hash(source, locator, caption)


def annotation_id(key: str, kind: str, origin: Origin, ordinal: str, text: str) -> str:
    """Return the id of an annotation: stable for equal pair, maker, ordinal in the maker's output and text."""
    # `_hash` inlined: every attempt of every maker has an id.
    names = f"{_quoted(key)},{_quoted(kind)},{_quoted(origin.generator)},{origin.version},{origin.seed}"
    return _digest(f"[{names},{_quoted(ordinal)},{_quoted(text)}]")


def compact_json(value: Any) -> str:
    """Return ``value`` as JSON with sorted keys and no spaces: equal values give equal bytes."""
    return _encode_sorted(value)


def edit_to_dict(edit: Edit) -> dict[str, Any]:
    """Return the stored form of an edit: from, to, from_span, to_span."""
    return {
        "from": edit.before,
        "to": edit.after,
        "from_span": list(edit.before_span),
        "to_span": list(edit.after_span),
    }


def edit_from_dict(row: dict[str, Any]) -> Edit:
    """Return the edit that `edit_to_dict` stored."""
    (start, end), (to_start, to_end) = row["from_span"], row["to_span"]
    return Edit(row["from"], row["to"], (start, end), (to_start, to_end))
