"""LLaMA-Factory and ms-swift exports: a folder with ``sft.jsonl``, ``dpo.jsonl`` and ``images/``.

Rows have ``messages`` with roles and texts, the mark ``<image>`` before the first question (for several images in the
questions that show them), and ``images``, paths below the folder; text-only rows have neither. A preference's rejected answer is ``rejected_response`` for ms-swift; for LLaMA-Factory
``chosen`` and ``rejected`` are messages of their own. A file without rows is not written. For LLaMA-Factory
``dataset_info.json`` describes the files as datasets ``NAME`` and ``NAME_dpo``, after the folder.

Sources: LLaMA-Factory 0.9.5, data/README.md; ms-swift 4.6, Custom dataset.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import orjson

from pairwright.datasets.atomic_files import replace_atomically, write_bytes
from pairwright.datasets.exports.chats import Chat, iter_chats, iter_preferences, mark_images
from pairwright.datasets.exports.writing import ExportOptions, ExportResult, ImageNames, encode_json
from pairwright.datasets.shards.sample_source import SampleSource

Trainer = Literal["llamafactory", "ms-swift"]
_FILES = ("sft.jsonl", "dpo.jsonl")
_TAGS = {"role_tag": "role", "content_tag": "content", "user_tag": "user", "assistant_tag": "assistant"}
_COLUMNS = {"messages": "messages", "images": "images"}


def write(source: SampleSource, out: Path, options: ExportOptions, trainer: Trainer) -> ExportResult:
    """Write chats and preferences of ``source`` into the folder ``out``.

    Returns:
        The result, with details ``conversations``, ``preferences`` and ``without_rows`` (pairs that give neither).
    """
    rows = _Rows(source, replace(options, images=out / "images"), trainer)
    counts = dict.fromkeys(_FILES, 0)
    with ExitStack() as stack:
        temporary = {name: stack.enter_context(replace_atomically(out / name)) for name in _FILES}
        handles = {name: stack.enter_context(path.open("wb")) for name, path in temporary.items()}
        for name, row in rows.each():
            handles[name].write(encode_json(row) + b"\n")
            counts[name] += 1
    files = [out / name for name in _FILES if counts[name]]
    for name in set(_FILES) - {path.name for path in files}:
        (out / name).unlink()
    if trainer == "llamafactory":
        files.append(out / "dataset_info.json")
        write_bytes(files[-1], orjson.dumps(_describe(out, counts), option=orjson.OPT_INDENT_2))
    sft, dpo = counts.values()
    details = {"conversations": sft, "preferences": dpo, "without_rows": rows.without}
    return ExportResult(sft + dpo, tuple(files), details=details)


write_llamafactory = partial(write, trainer="llamafactory")
write_ms_swift = partial(write, trainer="ms-swift")


class _Rows:
    def __init__(self, source: SampleSource, options: ExportOptions, trainer: Trainer) -> None:
        self.source, self.options, self.trainer = source, options, trainer
        self.without = 0

    def each(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each row with the name of its file."""
        for sample in self.source.samples_with_images():
            chats, preferences = list(iter_chats(sample)), list(iter_preferences(sample))
            if not chats and not preferences:
                self.without += 1
                continue
            with self.options.skip_unusable_images():
                images = [f"images/{name}" for name in ImageNames(self.options).names(sample)]
                for chat in (*chats, *preferences):
                    yield _FILES[bool(chat.rejected)], self._row(chat, images)

    def _row(self, chat: Chat, images: list[str]) -> dict[str, Any]:
        messages = mark_images(chat, len(images))
        row: dict[str, Any] = {"messages": messages, "images": images}
        if chat.rejected and self.trainer == "ms-swift":
            row["rejected_response"] = chat.rejected
        elif chat.rejected:
            row["chosen"] = messages.pop()
            row["rejected"] = {"role": "assistant", "content": chat.rejected}
        return row


def _describe(out: Path, counts: dict[str, int]) -> dict[str, Any]:
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", out.name)
    shared: dict[str, Any] = {"formatting": "sharegpt", "tags": _TAGS}
    sft = {"file_name": "sft.jsonl", **shared, "columns": _COLUMNS}
    dpo = {
        "file_name": "dpo.jsonl",
        **shared,
        "ranking": True,
        "columns": {**_COLUMNS, "chosen": "chosen", "rejected": "rejected"},
    }
    named = {name: sft, f"{name}_dpo": dpo}
    return {each: info for each, info in named.items() if counts[str(info["file_name"])]}
