"""Conversations of one source of a mixture: a file, files of a brace pattern, a folder, a build, or shards.

`ConversationSource.conversations` can be called repeatedly with equal results: a `Conversation` for a usable row, a
`FilteredOut` for rows excluded by the source's filters, a `Reject` for invalid ones. Images are not checked here
(`ImageChecker` does), so that a second pass need not open them again.

Memory: a row, or a batch of a Parquet file; a build holds its kept annotations (`shards/sample_source.py`).
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from pairwright.datasets.build_manifest import is_build
from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import ImageRoot, UnusableImageError, check_image_at, is_url, split_locator
from pairwright.datasets.mixtures.conversations import (
    Conversation,
    check_conversation_columns,
    conversations_from_row,
    conversations_from_sample,
)
from pairwright.datasets.option_names import COMMAND_LINE, OptionNames
from pairwright.datasets.readers.csv_tsv import read_csv, read_tsv
from pairwright.datasets.readers.formats import guess_format, locate_input, match_suffix
from pairwright.datasets.readers.input_rows import InputRowIterator
from pairwright.datasets.readers.json_list import read_json_list
from pairwright.datasets.readers.jsonl import read_jsonl
from pairwright.datasets.readers.parquet import read_parquet
from pairwright.datasets.readers.text_files import iter_lines, strip_compression
from pairwright.datasets.records import Turn
from pairwright.datasets.rejects import Reject, RejectError, make_reject
from pairwright.datasets.shards.reading import read_shard
from pairwright.datasets.shards.sample_source import open_sample_source

SourceFormat = Literal["json", "jsonl", "csv", "tsv", "parquet", "shards", "build"]
ImageCheckMode = Literal["off", "exists", "header", "full"]

_READERS: dict[str, Callable[[Path], InputRowIterator]] = {
    "json": read_json_list,
    "jsonl": read_jsonl,
    "csv": read_csv,
    "tsv": read_tsv,
    "parquet": read_parquet,
}
_CACHED_CHECKS = 65_536  # cached checks: rows of one image are close together


@dataclass(frozen=True, slots=True)
class FilteredOut:
    """A conversation excluded by its source's filters: not_kept, other_kind or other_split."""

    reason: str
    kind: str = ""


ConversationResult: TypeAlias = Conversation | FilteredOut | Reject


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Rows of a source to use, and how to read them.

    Attributes:
        columns: part of a conversation (a key of `COLUMN_NAMES_BY_PART`) to column.
        image_root: folder of relative image paths; empty for the source's own folder.
        kinds: of rows to use; empty for all.
        split: of rows to use, if they have one; empty for all.
        prompt: appended to every question that does not end with it; empty for none.
        drop_system: whether to drop a first turn by system.
        one_image: layout of the output, if its rows hold one image: others are rejected as several_images; else empty.
        option_names: how messages name these options.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    image_root: str = ""
    kinds: tuple[str, ...] = ()
    split: str = "train"
    prompt: str = ""
    drop_system: bool = False
    one_image: str = ""
    option_names: OptionNames = COMMAND_LINE


@dataclass(frozen=True, slots=True)
class ConversationSource:
    """A located source: its files in order, and the folder of its relative image paths."""

    format: SourceFormat
    path: Path
    files: tuple[Path, ...]
    root: Path
    options: SourceOptions

    def conversations(self) -> Iterator[tuple[str, ConversationResult]]:
        """Yield place and result of each row, in order.

        Raises:
            InputError: if a file cannot be read.
            StorageError: if a shard or a part of a build is damaged.
        """
        for place, raw in self._raw():
            if isinstance(raw, Reject):
                yield place, raw
                continue
            try:
                for conversation in raw():
                    yield place, self._judged(conversation)
            except RejectError as flaw:
                yield place, make_reject(place, flaw.reason, flaw.detail)

    def _raw(self) -> Iterator[tuple[str, Reject | Callable[[], Iterator[Conversation]]]]:
        if self.format in ("shards", "build"):
            tars = self.files if self.format == "shards" else ()
            samples = (
                (sample for tar in tars for sample in read_shard(tar))
                if tars
                else open_sample_source(self.path).samples()
            )
            for sample in samples:
                yield f"{self.path}: sample {sample.pair.key}", partial(conversations_from_sample, sample)
            return
        root = ImageRoot(self.root, bool(self.options.image_root))
        parse = partial(conversations_from_row, drop_system=self.options.drop_system)
        read = (
            partial(read_jsonl, option_names=self.options.option_names)
            if self.format == "jsonl"
            else _READERS[self.format]
        )
        for file in self.files:
            for row in read(file):
                yield (
                    row.place,
                    row if isinstance(row, Reject) else partial(parse, row.fields, self.options.columns, root),
                )

    def _judged(self, conversation: Conversation) -> Conversation | FilteredOut:
        """Return the conversation, or why it is left out; raises `RejectError`."""
        options = self.options
        if conversation.status == "rejected":
            return FilteredOut("not_kept", conversation.kind)
        if options.kinds and conversation.kind not in options.kinds:
            return FilteredOut("other_kind", conversation.kind)
        if options.split and conversation.split and conversation.split != options.split:
            return FilteredOut("other_split", conversation.kind)
        if options.one_image and len(conversation.images) > 1:
            raise RejectError(
                "several_images", f"{len(conversation.images)} images, where a row of {options.one_image} has one"
            )
        return append_prompt(conversation, options.prompt) if options.prompt else conversation


def append_prompt(conversation: Conversation, prompt: str) -> Conversation:
    """Return ``conversation`` with a response-format prompt after each question that does not end with it (LLaVA-1.5)."""
    turns = tuple(
        turn
        if turn.role == "assistant" or turn.text.endswith(prompt)
        else Turn("human", "\n".join(filter(None, (turn.text, prompt))))
        for turn in conversation.turns
    )
    return replace(conversation, turns=turns)


def find_conversation_source(written: str, format_: str, options: SourceOptions) -> ConversationSource:
    """Find a source of conversations.

    Args:
        written: path of a file, folder or build, or a brace pattern.
        format_: a name of `SourceFormat`; empty to detect.
        options: of its rows.

    Raises:
        UsageError: for unknown columns.
        InputError: if files are missing, or their format has no conversations.
    """
    check_conversation_columns(options.columns)
    path = Path(written)
    found = format_ or _guess_source_format(path, written, options.option_names)
    if found == "build":
        files = tuple(sorted(file for part in ("pairs", "annotations") for file in (path / part).glob("*.parquet")))
        return ConversationSource("build", path, files, path, options)
    if found not in ("shards", *_READERS):
        raise InputError(
            f"{found} has no conversations",
            where=written,
            fix="Mix LLaVA JSON, JSON Lines, Parquet, shards, builds.",
        )
    located = locate_input(written, "webdataset" if found == "shards" else found, options.option_names)
    root = Path(options.image_root).absolute() if options.image_root else located.root
    return ConversationSource(found, path, located.files, root, options)  # type: ignore[arg-type] # checked above


def _guess_source_format(path: Path, written: str, option_names: OptionNames) -> str:
    if path.is_dir() and is_build(path):
        return "build"
    name = written.lower()
    if strip_compression(name).endswith(".json"):
        return _list_or_lines(path)
    kind = match_suffix(name)
    if kind and not path.is_dir():
        return "shards" if kind == "webdataset" else kind
    found = guess_format(path, option_names)
    return "shards" if found == "webdataset" else found


def _list_or_lines(path: Path) -> str:
    """Distinguish a JSON list from JSON Lines with the ending .json by the first character."""
    if not path.is_file():  # a pattern, or missing: `locate_input` reports it
        return "json"
    for _, line in iter_lines(path):
        if bare := line.lstrip():
            return "jsonl" if bare.startswith(b"{") else "json"
    return "json"


@dataclass
class ImageChecker:
    """Checks whether images exist; each is opened once while its rows are close together.

    Attributes:
        how: off, exists (a file of that name), header or full (`check_image_at`).
    """

    how: ImageCheckMode
    _known: dict[str, tuple[str, str]] = field(default_factory=dict)

    def flaw(self, locator: str) -> tuple[str, str]:
        """Return (reason, detail) of a problem with an image; both empty if it is fine or not checked."""
        if self.how == "off" or not locator or is_url(locator):
            return "", ""
        if locator not in self._known:
            if len(self._known) >= _CACHED_CHECKS:
                self._known.clear()
            self._known[locator] = self._found(locator)
        return self._known[locator]

    def _found(self, locator: str) -> tuple[str, str]:
        if self.how == "exists" and not split_locator(locator)[1]:
            return ("", "") if os.path.isfile(locator) else ("missing_image", f"no file {locator}")  # noqa: PTH113 - a hot path
        try:
            check_image_at(locator, "full" if self.how == "full" else "header")
        except UnusableImageError as error:
            return error.reason, f"{locator}: {error.what}"
        return "", ""
