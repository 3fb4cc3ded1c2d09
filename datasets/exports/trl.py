"""TRL export: folders that ``datasets.load_dataset`` opens and TRL's ``SFTTrainer`` and ``DPOTrainer`` train on.

Both have a column ``images``, a list of embedded images, empty for text-only rows. ``trl`` has ``messages``; ``trl-dpo`` has
``prompt`` (messages up to the question), ``chosen`` and ``rejected`` (one message each). A message's content is a list of
parts, ``{"type": "image"}`` or ``{"type": "text", "text"}``: TRL puts the images in place of the first kind. One image is
before the first question, several are where the questions show them.

Source: TRL 1.16, Dataset formats and types; ``trl.data_utils.prepare_multimodal_messages``.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pairwright.datasets.exports.chats import Chat, iter_chats, iter_preferences, require_marks
from pairwright.datasets.exports.embedded_tables import IMAGE, Schema, embed_images, write_table_folder
from pairwright.datasets.exports.writing import ExportOptions, ExportResult
from pairwright.datasets.image_marks import split_at_marks
from pairwright.datasets.records import IMAGE_TOKEN
from pairwright.datasets.shards.sample_schema import MemberSchema
from pairwright.datasets.shards.sample_source import SampleSource

_MESSAGES: MemberSchema = [{"role": "string", "content": [{"type": "string", "text": "string"}]}]
_SFT: Schema = {"id": "string", "images": [IMAGE], "messages": _MESSAGES}
_DPO: Schema = {"id": "string", "images": [IMAGE], "prompt": _MESSAGES, "chosen": _MESSAGES, "rejected": _MESSAGES}

_Message = dict[str, Any]


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write the conversations of ``source`` into the folder ``out``; details: ``without_conversations``."""
    without: list[str] = []

    def rows() -> Iterator[dict[str, Any]]:
        for sample in source.samples_with_images():
            chats = list(iter_chats(sample))
            if not chats:
                without.append(sample.pair.key)
                continue
            with options.skip_unusable_images():
                images = embed_images(sample, options)
                for chat in chats:
                    yield {"id": chat.id, "images": images, "messages": _messages(chat, len(images))}

    written = write_table_folder(rows(), _SFT, source, out, options)
    return replace(written, details={"without_conversations": len(without)})


def write_preferences(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write the preferences of ``source`` into the folder ``out``.

    Details: ``without_preferences`` (pairs), ``answers_without_counterpart`` (no false answer to their question is known).
    """
    without: list[str] = []
    alone = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal alone
        for sample in source.samples_with_images():
            preferences = list(iter_preferences(sample))
            compared = {each.exchanges[-1] for each in preferences}
            alone += sum(answer not in compared for chat in iter_chats(sample) for answer in chat.exchanges)
            if not preferences:
                without.append(sample.pair.key)
                continue
            with options.skip_unusable_images():
                images = embed_images(sample, options)
                for each in preferences:
                    *prompt, chosen = _messages(each, len(images))
                    rejected = [_message("assistant", each.rejected)]
                    yield {"id": each.id, "images": images, "prompt": prompt, "chosen": [chosen], "rejected": rejected}

    written = write_table_folder(rows(), _DPO, source, out, options)
    return replace(written, details={"without_preferences": len(without), "answers_without_counterpart": alone})


def _messages(chat: Chat, images: int) -> list[_Message]:
    messages = [
        _message(role, *(split_at_marks(text) if images > 1 else filter(None, [text])))
        for exchange in chat.exchanges
        for role, text in zip(("user", "assistant"), exchange, strict=True)
    ]
    if images == 1:
        messages[0]["content"].insert(0, _part(IMAGE_TOKEN))
    require_marks(chat.id, sum(part["type"] == "image" for each in messages for part in each["content"]), images)
    return messages


def _message(role: str, *parts: str) -> _Message:
    return {"role": role, "content": list(map(_part, parts))}


def _part(part: str) -> dict[str, str | None]:
    return {"type": "image", "text": None} if part == IMAGE_TOKEN else {"type": "text", "text": part}
