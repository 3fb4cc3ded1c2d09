"""A mixture's rows written down: LLaVA JSON or JSON Lines, OpenAI chat, Parquet, shards.

LLaVA rows are written here, with the mark on the side where the source had it, else on a side at random (a function
of seed and row). The other layouts are those of the exports, over the same rows as samples: a sample a row.

An image is named below one folder (`image_root`), the trainer's; a URL stays whole; a member of ``shard.tar`` is named
as if that were unpacked into a folder ``shard`` beside it.
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
from pairwright.datasets.images.loading import is_url
from pairwright.datasets.mixtures.conversations import Conversation
from pairwright.datasets.records import IMAGE_TOKEN, Annotation, Origin, Pair, Turn, annotation_id
from pairwright.datasets.rng import hash_to_int
from pairwright.datasets.shards.sample_source import SampleSource
from pairwright.datasets.shards.samples import Sample
from pairwright.datasets.suggestions import require_known

VERSION = 1
LAYOUTS: dict[str, tuple[str, ...]] = {
    "llava": (".json", ".jsonl"),
    "openai": (".jsonl",),
    "parquet": (".parquet",),
    "webdataset": ("",),
}
"""Layout to the endings of its output; the first layout of an ending is taken when none is named."""

_ROLE_NAMES = {"human": "human", "assistant": "gpt"}


@dataclass(frozen=True, slots=True)
class MixtureRow:
    """A row of a mixture: its conversation, the name of its source, and an id of its own (32 hex digits)."""

    id: str
    source: str
    talk: Conversation


def mixture_row_id(source: str, talk: Conversation) -> str:
    """Return the id of a row: the same for any seed, mixture and place of the files."""
    return f"{hash_to_int('mixture row', source, talk.name, *talk.texts):032x}"


def encode_row(row: MixtureRow) -> bytes:
    """Return a row as one line, for `mixture_order`."""
    t = row.talk
    about = [row.id, row.source, t.image, t.side, t.kind, t.caption, t.source_id]
    return orjson.dumps([*about, t.texts])


def decode_row(line: bytes) -> MixtureRow:
    """Return the row that `pack` gave this line for."""
    id_, source, image, side, kind, caption, source_id, texts = orjson.loads(line)
    turns = tuple(Turn("assistant" if place % 2 else "human", text) for place, text in enumerate(texts))
    talk = Conversation(turns, image, side=side, kind=kind, caption=caption, source_id=source_id)
    return MixtureRow(id_, source, talk)


def choose_layout(out: Path, named: str = "") -> str:
    """Return the layout of an output.

    Raises:
        UsageError: for a layout that there is not, or an ending that it does not have.
    """
    require_known("--to: no such layout:", [named] if named else [], LAYOUTS)
    for layout, endings in LAYOUTS.items():
        if out.suffix in endings and named in ("", layout):
            return layout
    known = LAYOUTS[named] if named else tuple(ending for endings in LAYOUTS.values() for ending in endings)
    shown = ", ".join(dict.fromkeys(ending or "nothing (a folder)" for ending in known))
    raise UsageError(f"{out}: {named or 'a mixture'} is written to a name that ends in {shown}.")


def write_mixture(
    rows: Callable[[], Iterator[MixtureRow]], layout: str, out: Path, image_root: Path, options: ExportOptions
) -> ExportResult:
    """Write rows in a layout.

    Args:
        rows: called for a fresh pass.
        layout: a name of `LAYOUTS`.
        out: file or folder, as `choose_layout` takes it.
        image_root: absolute folder below which all images lie.
        options: seed, and what becomes of the image bytes in shards.

    Raises:
        InputError: for shards whose images differ in format, or that lack some; a text that is no UTF-8.
    """
    if layout == "llava":
        lines = (format_llava_row(row, image_root, options.seed) for row in rows())
        return write_json_list(lines, out) if out.suffix == ".json" else write_json_lines(lines, out)
    write = {"openai": openai_chat.write, "parquet": parquet.write, "webdataset": webdataset.write}[layout]
    source = SampleSource(lambda: (_sample(row, options.seed) for row in rows()))
    return write(source, out, replace(options, image_root=image_root))


def format_llava_row(row: MixtureRow, image_root: Path, seed: int) -> dict[str, Any]:
    """Return a row in LLaVA's layout, with its source, kind and source's id beside it."""
    talk, made = row.talk, {"id": row.id}
    if talk.image:
        made["image"] = talk.image if is_url(talk.image) else relative_image_name(talk.image, image_root)
    turns = [{"from": _ROLE_NAMES[turn.role], "value": turn.text} for turn in talk.turns]
    if talk.image:
        first = turns[0]["value"]
        side = talk.side or ("before" if hash_to_int(seed, 0, "mixture-mark", VERSION, row.id) & 1 else "after")
        turns[0]["value"] = f"{IMAGE_TOKEN}\n{first}" if side == "before" else f"{first}\n{IMAGE_TOKEN}"
    return {**made, "source": row.source, "kind": talk.kind, "source_id": talk.source_id, "conversations": turns}


def _sample(row: MixtureRow, seed: int) -> Sample:
    talk, origin = row.talk, Origin("mixture", VERSION, seed)
    kind = talk.kind or "conversation"
    pair = Pair(row.id, talk.caption, source_id=talk.source_id, image=talk.image, source=row.source)
    made = Annotation(annotation_id(row.id, kind, origin, "", ""), row.id, kind, origin, turns=talk.turns)
    return Sample(pair, (made,))
