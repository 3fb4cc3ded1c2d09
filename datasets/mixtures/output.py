"""Writing of mixtures: LLaVA JSON or JSON Lines, OpenAI chat, Parquet, shards.

LLaVA rows are written here, with the image token on its side in the source, or else on a random side (a function of seed
and row); tokens of several images stay where the texts have them. The other layouts are exports of the same rows as samples, one per row.

An image is named below one folder (`image_root`), the trainer's; a URL is kept; a member of ``shard.tar`` is named as if
unpacked into a folder ``shard`` next to it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.errors import UsageError
from pairwright.datasets.exports import openai_chat, parquet, webdataset
from pairwright.datasets.exports.writing import (
    ExportOptions,
    ExportResult,
    relative_image_name,
    write_json_lines,
    write_json_list,
)
from pairwright.datasets.image_marks import mark_beside
from pairwright.datasets.images.loading import is_url
from pairwright.datasets.mixtures.conversations import Conversation
from pairwright.datasets.records import Annotation, Origin, Pair, Turn, annotation_id
from pairwright.datasets.rng import hash_to_int
from pairwright.datasets.shards.sample_source import SampleSource
from pairwright.datasets.shards.samples import Sample, SampleImage
from pairwright.datasets.suggestions import require_known

VERSION = 1
LAYOUTS: dict[str, tuple[str, ...]] = {
    "llava": (".json", ".jsonl"),
    "openai": (".jsonl",),
    "parquet": (".parquet",),
    "webdataset": ("",),
}
"""Layout to its output endings; without `--to`, the first layout with the ending is used."""

ONE_IMAGE_LAYOUTS = frozenset({"parquet"})
"""Layouts whose rows hold one image."""

_ROLE_NAMES = {"human": "human", "assistant": "gpt"}


@dataclass(frozen=True, slots=True)
class MixtureRow:
    """A row of a mixture: its conversation, the name of its source, and a unique id (32 hex digits)."""

    id: str
    source: str
    conversation: Conversation


def mixture_row_id(source: str, conversation: Conversation) -> str:
    """Return the id of a row, independent of seed, mixture and place of the files."""
    return f"{hash_to_int('mixture row', source, conversation.name, *conversation.texts):032x}"


def encode_row(row: MixtureRow) -> bytes:
    """Return a row as one line, for `external_sort`."""
    t = row.conversation
    about = [row.id, row.source, t.images, t.side, t.kind, t.caption, t.source_id]
    return orjson.dumps([*about, t.texts])


def decode_row(line: bytes) -> MixtureRow:
    """Return the row of a line by `encode_row`."""
    id_, source, images, side, kind, caption, source_id, texts = orjson.loads(line)
    turns = tuple(Turn("assistant" if place % 2 else "human", text) for place, text in enumerate(texts))
    conversation = Conversation(turns, tuple(images), side=side, kind=kind, caption=caption, source_id=source_id)
    return MixtureRow(id_, source, conversation)


def choose_layout(out: Path, named: str = "") -> str:
    """Return the layout of an output.

    Raises:
        UsageError: for an unknown layout, or an ending that it does not have.
    """
    require_known("--to: no such layout:", [named] if named else [], LAYOUTS)
    for layout, endings in LAYOUTS.items():
        if out.suffix in endings and named in ("", layout):
            return layout
    known = LAYOUTS[named] if named else tuple(ending for endings in LAYOUTS.values() for ending in endings)
    shown = ", ".join(dict.fromkeys(ending or "nothing (a folder)" for ending in known))
    raise UsageError(f"{out}: {named or 'a mixture'} requires an output that ends in {shown}.")


def write_mixture(
    rows: Callable[[], Iterator[MixtureRow]], layout: str, out: Path, image_root: Path, options: ExportOptions
) -> ExportResult:
    """Write rows in a layout.

    Args:
        rows: starts a new pass.
        layout: a name of `LAYOUTS`.
        out: file or folder, as `choose_layout` takes it.
        image_root: absolute folder of all images.
        options: seed, and recoding of images in shards.

    Raises:
        InputError: for shards with mixed image formats or missing images; for a text that is not UTF-8.
    """
    if layout == "llava":
        lines = (format_llava_row(row, image_root, options.seed) for row in rows())
        return write_json_list(lines, out) if out.suffix == ".json" else write_json_lines(lines, out)
    write = {"openai": openai_chat.write, "parquet": parquet.write, "webdataset": webdataset.write}[layout]
    source = SampleSource(lambda: (_sample(row, options.seed) for row in rows()))
    return write(source, out, replace(options, image_root=image_root))


def format_llava_row(row: MixtureRow, image_root: Path, seed: int) -> dict[str, Any]:
    """Return a row in LLaVA's layout, with its source, kind and source id."""
    conversation, made = row.conversation, dict[str, Any](id=row.id)
    images = [each if is_url(each) else relative_image_name(each, image_root) for each in conversation.images]
    if images:
        made["image"] = images if len(images) > 1 else images[0]
    turns = [{"from": _ROLE_NAMES[turn.role], "value": turn.text} for turn in conversation.turns]
    if len(images) == 1:
        side = conversation.side or ("before" if hash_to_int(seed, 0, "mixture-mark", VERSION, row.id) & 1 else "after")
        turns[0]["value"] = mark_beside(turns[0]["value"], before=side == "before")
    return {
        **made,
        "source": row.source,
        "kind": conversation.kind,
        "source_id": conversation.source_id,
        "conversations": turns,
    }


def _sample(row: MixtureRow, seed: int) -> Sample:
    conversation, origin = row.conversation, Origin("mixture", VERSION, seed)
    kind = conversation.kind or "conversation"
    first, *further = conversation.images or ("",)
    pair = Pair(row.id, conversation.caption, source_id=conversation.source_id, image=first, source=row.source)
    made = Annotation(annotation_id(row.id, kind, origin, "", ""), row.id, kind, origin, turns=conversation.turns)
    return Sample(pair, (made,), further_images=tuple(map(SampleImage, further)))
