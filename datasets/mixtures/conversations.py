"""Conversations of mixtures, parsed from any layout.

Layouts, recognised by the columns of a row:
- LLaVA and ShareGPT: ``conversations`` of ``{"from", "value"}``, ``image``, a list for several images;
- The Cauldron and FineVision: ``texts`` of ``{"user", "assistant"}``, a list of ``images``;
- Mantis: ``conversation`` of ``{"role", "content"}``, a list of ``images``;
- chat messages of OpenAI, TRL, LLaMA-Factory, ms-swift: ``messages`` of ``{"role", "content"}``, images by name or URL
  in parts of messages, or in ``images``, a list;
- our annotations: ``turns`` of ``{"role", "text"}``, ``kind``, ``status``;
- our Parquet export: ``conversations`` of ``{"type", "turns"}``, each a separate conversation;
- ``conversations`` of Qwen-VL, whose questions have ``<img>1.jpg</img>``;
- question and answer: VQA tables, triplets (``instruction``, ``output``), student rows (``input``, ``output``), Alpaca's
  (``instruction``, ``input``, ``output``), ms-swift's (``query``, ``response``); exchanges before them in ``history``, if it has such;
- our examples with rationales: ``input``, ``label``, ``rationale``, with the prefixes of `exports.rationales`.

The ``<image>`` token of a row of one image is removed and its side stored; a question that is nothing else becomes empty.
In a row of several images the tokens remain in the questions, one per image (`image_marks`); without any, all images
precede the first question. Texts are stripped.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.exports.rationales import DEFAULT_STUDENT_ROWS
from pairwright.datasets.image_marks import count_marks, join_parts, mark_before
from pairwright.datasets.images.loading import ImageRoot, publishable_image_name
from pairwright.datasets.readers.column_expressions import compute
from pairwright.datasets.readers.field_values import parse_identifier, parse_text_field
from pairwright.datasets.readers.input_rows import TableImage
from pairwright.datasets.readers.text_files import json_type_name
from pairwright.datasets.records import IMAGE_TOKEN, Annotation, Example, Origin, Role, Turn
from pairwright.datasets.rejects import RejectError
from pairwright.datasets.shards.samples import Sample
from pairwright.datasets.suggestions import require_known

ImageTokenSide = Literal["", "before", "after"]

COLUMN_NAMES_BY_PART: dict[str, tuple[str, ...]] = {
    "conversations": ("conversations", "messages", "turns", "conversation", "texts"),
    "question": ("question", "instruction", "prompt", "input", "query"),
    "answer": ("answer", "output", "response"),
    "image": ("image", "image_path", "file_name", "filename", "filepath", "url", "image_url", "images"),
    "kind": ("kind", "type", "objective"),
    "id": ("id", "source_id", "question_id", "image_id"),
    "key": ("key",),
    "caption": ("caption",),
    "split": ("split",),
    "status": ("status",),
}
"""Part of a conversation to the column names that it may have, best first."""

_ROLES: dict[str, Role] = {
    **dict.fromkeys(("human", "user"), "human"),
    **dict.fromkeys(("gpt", "assistant", "model", "chatgpt", "bard"), "assistant"),
}
# A URL or a file, on one line; HTML that a question is about has others. The time is linear, as a name has no `<`.
_NAMED_IMAGE = re.compile(r"<img>(\s*https?://[^<>\n]+|[^<>\n]+\.\w{2,5}\s*)</img>")
_LABEL = re.compile(r"\APicture 1:\s*")  # before the only image of a row (Qwen-VL)
_IMAGE_IN_ROW = "an image inside the row; mixtures take an image by its name"
_IMAGE_PARTS = ("image", "image_url")
_ANNOTATION_COLUMNS = {"key", "turns"}
_EXAMPLE_COLUMNS = {"input", "label", "rationale"}


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of a source.

    Attributes:
        turns: alternating human and assistant, none empty except a first question that is the image alone; with several
            images, the questions have a mark for each.
        images: their locators, in order; none for a text-only conversation.
        written: the images as written in the source, in the same order.
        key: of the pair of the images, if the source has it; empty without an image.
        side: side of the image token in the source; empty if it has none.
        kind: conversation, detail, short, label, ...; empty if the source has none.
        split: train or validation, if the source has it.
        status: kept or rejected, if the source has it.
        caption: of the image, if the source has it.
        source_id: the source's own id of the row or image.
    """

    turns: tuple[Turn, ...]
    images: tuple[str, ...] = ()
    written: tuple[str, ...] = ()
    key: str = ""
    side: ImageTokenSide = ""
    kind: str = ""
    split: str = ""
    status: str = ""
    caption: str = ""
    source_id: str = ""

    @property
    def name(self) -> str:
        """Name of the images, independent of the place of the source; empty without an image."""
        return self.key or "\0".join(self.written)

    @property
    def texts(self) -> list[str]:
        """The texts of the turns, in order."""
        return [turn.text for turn in self.turns]


def check_conversation_columns(columns: Mapping[str, str]) -> None:
    """Require that a mapping names parts of a conversation.

    Raises:
        UsageError: with the valid names.
    """
    require_known("columns: no such name:", columns, COLUMN_NAMES_BY_PART)


def conversations_from_row(
    fields: Mapping[str, Any], columns: Mapping[str, str], root: ImageRoot, *, drop_system: bool = False
) -> Iterator[Conversation]:
    """Yield the conversations of a raw row; one of status rejected has no turns.

    Args:
        fields: column name to value.
        columns: part (a key of `COLUMN_NAMES_BY_PART`) to column; has precedence over common names.
        root: start of relative image paths.
        drop_system: whether to drop a first turn by system.

    Raises:
        RejectError: no_conversation, bad_turns, empty_turn, misplaced_image_token, image_count_mismatch, missing_image,
            image_outside_root or wrong_type.
    """
    if not columns and fields.keys() >= _EXAMPLE_COLUMNS:
        yield from conversations_from_example(_example(fields))
        return
    row = _ConversationRow(fields, columns, root)
    about = row.about()
    if about.status == "rejected":  # our rejected rows have no turns
        yield about
        return
    if fields.keys() >= _ANNOTATION_COLUMNS and "image" not in fields:
        raise RejectError(
            "missing_image", "an annotation without its image; mix the build instead, or its rows as .jsonl"
        )
    listed = row.turns()
    if listed == [] and "provenance" in fields:  # our Parquet export: a pair without conversations
        return
    if isinstance(listed, list) and listed and isinstance(listed[0], dict) and "turns" in listed[0]:
        for each in listed:
            kind = parse_text_field(each.get("type"), "type")
            yield _parse_conversation(each["turns"], replace(about, kind=kind), root, stored=True)
    else:
        found = _parse_conversation(_without_system(listed) if drop_system else listed, about, root)
        if not found.images and fields.get("image_id") not in (None, "") and not row.has_column("image"):
            how = "`columns: {image: '{image_id}.jpg'}` of the source, or a template like it, names the file"
            raise RejectError("missing_image", f"an image_id and no image ({how})")
        yield found


def conversations_from_sample(sample: Sample) -> Iterator[Conversation]:
    """Yield the conversations of a sample, then its rationales as student rows."""
    pair = sample.pair
    key = pair.key if pair.image else ""
    about = Conversation((), sample.locators, key=key, caption=pair.caption, source_id=pair.source_id)
    for annotation in sample.annotations:
        if _is_conversation(annotation):
            yield _check_turns(annotation.turns, replace(about, kind=annotation.kind), shows_image=True)
    for example in sample.examples:
        for conversation in conversations_from_example(replace(example, key="")):
            yield replace(conversation, images=about.images, key=about.key, caption=about.caption)


def conversations_from_example(example: Example) -> Iterator[Conversation]:
    """Yield the student rows of an example as conversations of one exchange; kind is label or rationale.

    Raises:
        RejectError: missing_image, if it is about an image, as examples do not name images.
    """
    if example.key:
        raise RejectError("missing_image", "a rationale about an image; mix the shards that hold both instead")
    for row in DEFAULT_STUDENT_ROWS.make_rows(replace(example, status="kept")):
        turns = (Turn("human", row["input"].strip()), Turn("assistant", row["output"].strip()))
        about = Conversation(
            (), kind=row["objective"], split=example.split, status=example.status, source_id=example.id
        )
        yield _check_turns(turns, about)


def _is_conversation(annotation: Annotation) -> bool:
    return bool(annotation.turns)


def _example(fields: Mapping[str, Any]) -> Example:
    names = ("id", "task", "input", "label", "rationale", "split", "key", "status")
    texts = {name: parse_text_field(fields.get(name), name) for name in names}
    texts["split"], status = texts["split"] or "train", texts.pop("status")
    return Example(origin=Origin("mixture", 1), status="rejected" if status == "rejected" else "kept", **texts)


def _with_input(fields: Mapping[str, Any], question: Any) -> Any:
    """Return an instruction with the input that it is about, if the row has one (Alpaca)."""
    more = fields.get("input")
    is_about = isinstance(more, str) and more.strip() and question == fields.get("instruction")
    if not (is_about and isinstance(question, str)):
        return question
    before, mark, after = question.strip().partition(IMAGE_TOKEN)
    if before and mark and not after:  # the image stays after the text
        return "\n".join([before.rstrip(), str(more), IMAGE_TOKEN])
    return f"{question}\n{more}"


def _earlier_exchanges(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the exchanges before a question: ``history``, a list of question and answer each (ms-swift, LLaMA-Factory).

    A column of that name with anything else is another tool's, and says nothing about the conversation.
    """
    history = fields.get("history")
    if not (isinstance(history, list) and all(map(_is_exchange, history))):
        return []
    return [{"user": question, "assistant": answer} for question, answer in history]


def _is_exchange(one: Any) -> bool:
    return isinstance(one, list) and len(one) == 2 and all(isinstance(said, str) and said.strip() for said in one)


@dataclass(frozen=True, slots=True)
class _ConversationRow:
    fields: Mapping[str, Any]
    columns: Mapping[str, str]
    root: ImageRoot

    def value(self, part: str) -> Any:
        """Return the value of a part; None if the row has none."""
        if part in self.columns:
            return compute(self.fields, self.columns[part])
        return next((found for name in self._names(part) if (found := self.fields.get(name)) is not None), None)

    def turns(self) -> Any:
        """Return the raw turns: those of the row, or its question and answer with the exchanges before them."""
        if (listed := self.value("conversations")) is not None:
            return listed
        question, answer = self.value("question"), self.value("answer")
        if absent := [part for part, text in (("question", question), ("answer", answer)) if text is None]:
            if all(map(self.has_column, absent)):
                raise RejectError("empty_turn", f"the {' and the '.join(absent)} is null")
            names = ", ".join(self.fields)
            raise RejectError("no_conversation", f"neither turns nor question and answer among {names}")
        asked = _with_input(self.fields, question)
        return [*_earlier_exchanges(self.fields), {"user": asked, "assistant": answer}]

    def has_column(self, part: str) -> bool:
        """Return whether the row has a column of a part, even if its value is null."""
        return any(name in self.fields for name in self._names(part))

    def about(self) -> Conversation:
        """Return a conversation without turns: the other parts of the row."""
        images, written = self._images()
        return Conversation(
            turns=(),
            images=images,
            written=written,
            key=self._text("key") if images else "",
            kind=self._text("kind"),
            split=self._text("split"),
            status=self._text("status"),
            caption=self._text("caption"),
            source_id=parse_identifier(self.value("id"), "id"),
        )

    def _images(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return locators and written places of the images; for an unnamed image inside a table, its row."""
        value = self.value("image")
        if not isinstance(value, list):
            locator, written = self._image(value, in_list=False)
            return ((locator,), (written,)) if written else ((), ())
        found = [self._image(item, in_list=True) for item in value]
        if len(found) > 1 and (absent := [number for number, (_, written) in enumerate(found, 1) if not written]):
            raise RejectError("missing_image", f"image {absent[0]} of {len(found)} is empty or null")
        present = [each for each in found if each[1]]
        return tuple(locator for locator, _ in present), tuple(written for _, written in present)

    def _image(self, value: Any, *, in_list: bool) -> tuple[str, str]:
        if isinstance(value, TableImage) and value.locator:
            return value.locator, value.name or publishable_image_name(value.locator)
        written = _image_name(value) if in_list else parse_text_field(value, "image")
        return self.root.locate(written), written

    def _names(self, part: str) -> Sequence[str]:
        return (self.columns[part],) if part in self.columns else COLUMN_NAMES_BY_PART[part]

    def _text(self, part: str) -> str:
        return parse_text_field(self.value(part), part)


def _stringify_number(answer: Any) -> Any:
    """Return a number as text; VQA tables have numbers as answers."""
    return str(answer) if isinstance(answer, int | float) and not isinstance(answer, bool) else answer


def _parse_conversation(listed: Any, about: Conversation, root: ImageRoot, *, stored: bool = False) -> Conversation:
    """Return the conversation of raw turns; ``stored``: they are ours, without the token of a single image."""
    if not isinstance(listed, list):
        raise RejectError("wrong_type", f"the conversation is {json_type_name(listed)}, not a list")
    turns: list[Turn] = []
    in_parts: dict[int, list[str | _ImagePart]] = {}
    for number, item in enumerate(_single_turns(listed), 1):
        if not isinstance(item, dict):
            raise RejectError("wrong_type", f"turn {number} is {json_type_name(item)}, not an object")
        speaker = _speaker(item)
        if speaker not in _ROLES:
            raise _unknown_speaker(speaker, number)
        said = item.get("value") or item.get("content") or item.get("text") or ""
        if not isinstance(said, str):
            in_parts[number - 1], said = _split_message_parts(said, number), ""
        elif not about.written and _ROLES[speaker] == "human" and _NAMED_IMAGE.search(said):
            in_parts[number - 1], said = _split_named_images(said, number), ""
        turns.append(Turn(_ROLES[speaker], parse_text_field(said, f"turn {number}").strip()))
    if shown := [part for parts in in_parts.values() for part in parts if isinstance(part, _ImagePart)]:
        about = _with_images(about, shown, root)
    for place, parts in in_parts.items():
        said = _join_said(parts, several=len(about.images) > 1).strip()
        if len(about.images) == 1 and any(isinstance(part, _ImagePart) for part in parts):
            said = _LABEL.sub("", said)
        turns[place] = Turn(turns[place].role, said)
    in_first = any(isinstance(part, _ImagePart) for part in in_parts.get(0, ()))
    return _check_turns(tuple(turns), about, shows_image=stored or in_first)


def _unknown_speaker(speaker: str, number: int) -> RejectError:
    if speaker == "system" and number == 1:
        return RejectError("bad_turns", "turn 1 is by 'system' (`drop_system: true` of the source drops it)")
    return RejectError("bad_turns", f"turn {number} is by {speaker!r}")


def _join_said(parts: "Sequence[str | _ImagePart]", *, several: bool) -> str:
    """Return what a turn says; images of several are marked at their places."""
    if several:
        return join_parts([IMAGE_TOKEN if isinstance(part, _ImagePart) else part for part in parts])
    return "\n".join(part for part in parts if isinstance(part, str))


def _with_images(about: Conversation, shown: "Sequence[_ImagePart]", root: ImageRoot) -> Conversation:
    """Return the conversation with the images that parts of its messages name, or mark the places of."""
    named = [part.name for part in shown if part.name]
    if len(named) < len(shown):  # some only mark the place of an image of the row
        if not about.written:
            turn = next(part.turn for part in shown if not part.name)
            raise RejectError("missing_image", f"turn {turn} has an image part, and the row names no image")
        if named and len(about.written) == 1:
            named = [part.name or about.written[0] for part in shown]
        elif named or len(shown) != len(about.written):
            what = f"{count_phrase(len(shown), 'image part')} in the turns"
            raise RejectError("image_count_mismatch", f"{what}, for {count_phrase(len(about.written), 'image')}")
        else:
            return about
    if tuple(named) == about.written:
        return about
    return replace(about, images=tuple(map(root.locate, named)), written=tuple(named))


def _single_turns(listed: Sequence[Any]) -> Iterator[Any]:
    """Yield raw turns, two for each exchange ``{"user", "assistant"}``."""
    for item in listed:
        if isinstance(item, dict) and item.keys() >= {"user", "assistant"}:
            yield from ({"role": role, "content": _stringify_number(item[role])} for role in ("user", "assistant"))
        else:
            yield item


def _without_system(listed: Any) -> Any:
    """Return raw turns without a first one by system."""
    return listed[1:] if isinstance(listed, list) and listed and _speaker(listed[0]) == "system" else listed


def _speaker(turn: Any) -> str:
    """Return who speaks in a raw turn; empty if it does not say."""
    return parse_text_field(turn.get("from") or turn.get("role"), "speaker") if isinstance(turn, Mapping) else ""


@dataclass(frozen=True, slots=True)
class _ImagePart:
    """An image in a chat message: its name, empty where it only marks the place of an image of the row, and its turn."""

    name: str
    turn: int


def _split_message_parts(said: Any, number: int) -> list[str | _ImagePart]:
    """Return texts and images of turn ``number``, a chat message in parts."""
    if not isinstance(said, list) or not all(isinstance(part, dict) for part in said):
        raise RejectError("wrong_type", f"turn {number} is {json_type_name(said)}, not a text")
    unknown = {str(part.get("type")) for part in said} - {"text", *_IMAGE_PARTS}
    if unknown:
        raise RejectError("wrong_type", f"turn {number} has a part of type {min(unknown)!r}, not text or image")
    return [
        parse_text_field(part.get("text"), "text")
        if part["type"] == "text"
        else _ImagePart(_part_image_name(part), number)
        for part in said
    ]


def _split_named_images(said: str, number: int) -> "list[str | _ImagePart]":
    """Return texts and images of turn ``number``, a text in which ``<img>1.jpg</img>`` is an image (Qwen-VL)."""
    pieces = _NAMED_IMAGE.split(said)
    return [
        _ImagePart(_image_name(piece.strip()), number) if at % 2 else piece
        for at, piece in enumerate(pieces)
        if piece.strip()
    ]


def _part_image_name(part: Mapping[str, Any]) -> str:
    """Return the image that a part of a message names; empty where it only marks the place of the row's image."""
    names = ("image_url", "image", "url", "path")
    return _image_name(next((value for name in names if (value := part.get(name))), None))


def _image_name(value: Any) -> str:
    """Return path or URL of an image, written as text or as an object."""
    if isinstance(value, Mapping):
        if value.get("bytes"):
            raise RejectError("wrong_type", _IMAGE_IN_ROW)
        value = value.get("url") or value.get("path")
    name = parse_text_field(value, "image")
    if name.startswith("data:"):
        raise RejectError("wrong_type", _IMAGE_IN_ROW)
    return name.removeprefix("file://")


def _check_turns(turns: tuple[Turn, ...], about: Conversation, *, shows_image: bool = False) -> Conversation:
    """Return the conversation with checked turns; ``shows_image``: the first shows a single image without a token."""
    side: ImageTokenSide = ""
    several = len(about.images) > 1
    if several:
        turns = _place_images(turns, len(about.images))
    else:
        turns, side = _strip_image_token(turns, has_image=bool(about.images))
    roles = [turn.role for turn in turns]
    if not turns or roles != ["human", "assistant"] * (len(roles) // 2):
        raise RejectError("bad_turns", f"turns by {', '.join(roles[:6])}" if turns else "a conversation of no turns")
    bare = bool(side) or (shows_image and len(about.images) == 1)
    for number, turn in enumerate(turns, 1):
        if not turn.text and not (number == 1 and bare):
            raise RejectError("empty_turn", f"turn {number} of {len(turns)} says nothing")
    # A third of the time of `replace`; this runs twice for every row.
    return Conversation(
        turns=turns,
        images=about.images,
        written=about.written,
        key=about.key,
        side=side,
        kind=about.kind,
        split=about.split,
        status=about.status,
        caption=about.caption,
        source_id=about.source_id,
    )


def _place_images(turns: tuple[Turn, ...], images: int) -> tuple[Turn, ...]:
    """Return turns whose questions have a mark for each of several images, before the first one if there was no mark."""
    marks = count_marks(turn.text for turn in turns)
    if not marks:
        return tuple(
            replace(turn, text=mark_before(turn.text, images)) if turn.text and not number else turn
            for number, turn in enumerate(turns)
        )
    if marks != images:
        raise RejectError(
            "image_count_mismatch", f"{IMAGE_TOKEN} occurs {count_phrase(marks, 'time')}, for {images} images"
        )
    for number, turn in enumerate(turns, 1):
        if turn.role != "human" and IMAGE_TOKEN in turn.text:
            raise RejectError("misplaced_image_token", f"{IMAGE_TOKEN} in the answer of turn {number}")
    return turns


def _strip_image_token(turns: tuple[Turn, ...], *, has_image: bool) -> tuple[tuple[Turn, ...], ImageTokenSide]:
    marks = [turn.text.count(IMAGE_TOKEN) for turn in turns if IMAGE_TOKEN in turn.text]
    if not marks:
        return turns, ""
    first = turns[0].text
    at_start, at_end = first.startswith(IMAGE_TOKEN), first.endswith(IMAGE_TOKEN)
    if not has_image:
        raise RejectError("misplaced_image_token", f"{IMAGE_TOKEN} in a row without an image")
    if sum(marks) > 1 or not (at_start or at_end):
        raise RejectError("misplaced_image_token", f"{IMAGE_TOKEN} occurs {sum(marks)} times, or inside a text")
    bare = first.removeprefix(IMAGE_TOKEN) if at_start else first.removesuffix(IMAGE_TOKEN)
    return (Turn(turns[0].role, bare.strip()), *turns[1:]), "before" if at_start else "after"
