"""OpenAI chat JSONL export: one conversation per line, as for fine-tuning with the OpenAI API and compatible trainers.

A line is ``{"messages": [...]}``. The first user message has two parts, image and text. The API takes an image as a URL or
a data URL; so URLs are kept, and other images are embedded in base64, unless ``images`` or ``image_root`` requests names
(for trainers that open the files). Text-only pairs give plain text.
"""

import base64
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from pairwright.datasets.exports.writing import (
    ExportOptions,
    ExportResult,
    ImageNames,
    list_conversations,
    write_json_lines,
)
from pairwright.datasets.shards.sample_source import SampleSource, load_image
from pairwright.datasets.shards.samples import Sample

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
        url = _url(sample, names) if found else ""
        for annotation in found:
            messages: list[dict[str, Any]] = [{"role": _ROLE[t.role], "content": t.text} for t in annotation.turns]
            if url:
                text = {"type": "text", "text": annotation.turns[0].text}
                messages[0]["content"] = [{"type": "image_url", "image_url": {"url": url}}, text]
            yield {"messages": messages}


def _url(sample: Sample, names: ImageNames) -> str:
    if not sample.pair.image or "://" in sample.pair.image or names.options.images or names.options.image_root:
        return names.name(sample)
    full = load_image(sample, names.options.recoding)
    return f"data:{_MEDIA[full.image_ext]};base64,{base64.b64encode(full.image or b'').decode()}"
