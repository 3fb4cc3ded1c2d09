"""OpenAI chat JSONL export: one conversation per line, as for fine-tuning with the OpenAI API and compatible trainers.

A line is ``{"messages": [...]}``. The first user message has two parts, image and text; several images are parts of the
messages that show them. The API takes an image as a URL or
a data URL; so URLs are kept, and other images are embedded in base64, unless ``images`` requests files (for trainers that
open them). Text-only pairs give plain text.
"""

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pairwright.datasets.exports.chats import require_marks
from pairwright.datasets.exports.writing import (
    ExportOptions,
    ExportResult,
    ImageNames,
    list_conversations,
    load_whole_image,
    write_json_lines,
)
from pairwright.datasets.image_marks import count_marks, split_at_marks
from pairwright.datasets.records import IMAGE_TOKEN, Annotation
from pairwright.datasets.shards.sample_source import SampleSource
from pairwright.datasets.shards.samples import Sample, SampleImage

_MEDIA = {"jpg": "image/jpeg", "png": "image/png", "webp": "image/webp"}
_ROLE = {"human": "user", "assistant": "assistant"}


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write the conversations of ``source`` to the JSONL file ``out``; details: ``without_conversations``."""
    without: list[str] = []
    written = write_json_lines(_rows(source, options, without), out)
    return replace(written, details={"without_conversations": len(without)})


def _rows(source: SampleSource, options: ExportOptions, without: list[str]) -> Iterator[dict[str, Any]]:
    names = ImageNames(options)
    for sample in source.samples_with_images():
        found = list_conversations(sample)
        if not found:
            without.append(sample.pair.key)
            continue
        with options.skip_unusable_images():
            urls = _urls(sample, names)
            for annotation in found:
                yield {"messages": _messages(annotation, urls)}


def _messages(annotation: Annotation, urls: list[str]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": _ROLE[t.role], "content": t.text} for t in annotation.turns]
    if len(urls) > 1:
        _place_images(annotation, messages, urls)
    elif urls:
        messages[0]["content"] = [_image_part(urls[0]), *map(_text_part, filter(None, [annotation.turns[0].text]))]
    return messages


def _place_images(annotation: Annotation, messages: list[dict[str, Any]], urls: list[str]) -> None:
    """Replace the texts that show images by lists of parts."""
    require_marks(annotation.id, count_marks(message["content"] for message in messages), len(urls))
    left = iter(urls)
    for message in messages:
        parts = split_at_marks(message["content"])
        if IMAGE_TOKEN in parts:
            message["content"] = [
                _image_part(next(left)) if part == IMAGE_TOKEN else _text_part(part) for part in parts
            ]


def _image_part(url: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": url}}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _urls(sample: Sample, names: ImageNames) -> list[str]:
    if names.options.images or all("://" in locator for locator in sample.locators):
        return names.names(sample)
    return [image.locator if "://" in image.locator else _data_url(image, names.options) for image in sample.images]


def _data_url(image: SampleImage, options: ExportOptions) -> str:
    full = load_whole_image(image, options.recoding)
    return f"data:{_MEDIA[full.ext]};base64,{base64.b64encode(full.data or b'').decode()}"
