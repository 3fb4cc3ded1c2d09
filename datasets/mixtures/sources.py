"""The conversations of one source of a mixture, in order: a file, files by a brace pattern, a folder, a build, shards.

`TalkSource.talks` may be called as often as wanted and gives the same each time: a `Talk` for what can be taken, a
`Passed` for what the source's own filters leave out, a `Reject` for what is wrong. Images are not looked at here
(`ImageChecker` does), so that a second reading need not open them again.

Memory: a row, or a batch of a Parquet file; a build holds its kept annotations (`exports.source`).
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
from pairwright.datasets.readers.formats import FORMAT_BY_SUFFIX, LINE_FORMATS, guess_format, locate_input
from pairwright.datasets.readers.input_rows import InputRowIterator
from pairwright.datasets.readers.json_stream import stream_json_items
from pairwright.datasets.readers.jsonl import read_jsonl
from pairwright.datasets.readers.parquet import read_parquet
from pairwright.datasets.readers.text_files import iter_lines
from pairwright.datasets.records import Turn
from pairwright.datasets.rejects import Reject, RejectError, make_reject
from pairwright.datasets.shards.sample_source import open_sample_source
from pairwright.datasets.shards.webdataset import read_shard

SourceFormat = Literal["json", "jsonl", "csv", "tsv", "parquet", "shards", "build"]
ImageCheckMode = Literal["off", "exists", "header", "full"]

_READERS: dict[str, Callable[[Path], InputRowIterator]] = {
    "json": stream_json_items,
    "jsonl": read_jsonl,
    "csv": read_csv,
    "tsv": read_tsv,
    "parquet": read_parquet,
}
_CACHED_CHECKS = 65_536  # images whose check is kept: rows of one image stand near each other


@dataclass(frozen=True, slots=True)
class FilteredOut:
    """A conversation that its source's filters leave out: not_kept, other_kind or other_split."""

    reason: str
    kind: str = ""


ConversationResult: TypeAlias = Conversation | FilteredOut | Reject


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What of a source is taken, and how.

    Attributes:
        columns: part of a conversation (`mixture_talks.FIELDS`) to column.
        image_root: folder of relative image paths; empty: the source's own folder.
        kinds: taken kinds; empty: all.
        split: taken of rows that say their split; empty: all.
        prompt: set below every question that does not end with it; empty: nothing.
        wording: how these options are called by whoever gives them, for messages.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    image_root: str = ""
    kinds: tuple[str, ...] = ()
    split: str = "train"
    prompt: str = ""
    wording: OptionNames = COMMAND_LINE


@dataclass(frozen=True, slots=True)
class ConversationSource:
    """A source that was found: its files in order, and the folder that its relative image paths start from."""

    format: SourceFormat
    path: Path
    files: tuple[Path, ...]
    root: Path
    options: SourceOptions

    def talks(self) -> Iterator[tuple[str, ConversationResult]]:
        """Yield place and judgement of what the source holds, in order.

        Raises:
            InputError: when a file as a whole cannot be read.
            StorageError: when a shard or a part of a build is torn.
        """
        for place, raw in self._raw():
            if isinstance(raw, Reject):
                yield place, raw
                continue
            try:
                for talk in raw():
                    yield place, self._judged(talk)
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
        read = partial(read_jsonl, wording=self.options.wording) if self.format == "jsonl" else _READERS[self.format]
        for file in self.files:
            for row in read(file):
                yield (
                    row.place,
                    row
                    if isinstance(row, Reject)
                    else partial(conversations_from_row, row.fields, self.options.columns, root),
                )

    def _judged(self, talk: Conversation) -> Conversation | FilteredOut:
        options = self.options
        if talk.status == "rejected":
            return FilteredOut("not_kept", talk.kind)
        if options.kinds and talk.kind not in options.kinds:
            return FilteredOut("other_kind", talk.kind)
        if options.split and talk.split and talk.split != options.split:
            return FilteredOut("other_split", talk.kind)
        return append_prompt(talk, options.prompt) if options.prompt else talk


def append_prompt(talk: Conversation, prompt: str) -> Conversation:
    """Return ``talk`` with a response-format prompt below each question that does not end with it (LLaVA-1.5)."""
    turns = tuple(
        turn if turn.role == "assistant" or turn.text.endswith(prompt) else Turn("human", f"{turn.text}\n{prompt}")
        for turn in talk.turns
    )
    return replace(talk, turns=turns)


def find_conversation_source(written: str, format_: str, options: SourceOptions) -> ConversationSource:
    """Find a source of conversations.

    Args:
        written: path of a file, folder or build, or a brace pattern.
        format_: a name of `SourceFormat`; empty to guess.
        options: of its rows.

    Raises:
        UsageError: for columns that there are not.
        InputError: when files are missing, or hold no conversations by their kind.
    """
    check_conversation_columns(options.columns)
    path = Path(written)
    found = format_ or _guess_source_format(path, written, options.wording)
    if found == "build":
        files = tuple(sorted(file for part in ("pairs", "annotations") for file in (path / part).glob("*.parquet")))
        return ConversationSource("build", path, files, path, options)
    if found not in ("shards", *_READERS):
        raise InputError(
            f"{found} holds no conversations",
            where=written,
            fix="Mix LLaVA JSON, JSON Lines, Parquet, shards, builds.",
        )
    located = locate_input(written, "webdataset" if found == "shards" else found, options.wording)
    root = Path(options.image_root).absolute() if options.image_root else located.root
    return ConversationSource(found, path, located.files, root, options)  # type: ignore[arg-type] # checked above


def _guess_source_format(path: Path, written: str, wording: OptionNames) -> str:
    if path.is_dir() and is_build(path):
        return "build"
    name = written.lower()
    plain = name.removesuffix(".gz")
    if plain.endswith(".json"):
        return _list_or_lines(path)
    kind = FORMAT_BY_SUFFIX.get(Path(plain).suffix, "")
    if kind and not path.is_dir() and (plain == name or kind in LINE_FORMATS):
        return "shards" if kind == "webdataset" else kind
    found = guess_format(path, wording)
    return "shards" if found == "webdataset" else found


def _list_or_lines(path: Path) -> str:
    """Tell a JSON list from JSON Lines under the name .json by the first sign."""
    if not path.is_file():  # a pattern, or missing: `locate` says so
        return "json"
    for _, line in iter_lines(path):
        if bare := line.lstrip():
            return "jsonl" if bare.startswith(b"{") else "json"
    return "json"


@dataclass
class ImageChecker:
    """Looks whether images are there; each is opened once while rows of it stand near each other.

    Attributes:
        how: off, exists (a file of that name), header or full (`images.check_locator`).
    """

    how: ImageCheckMode
    _known: dict[str, tuple[str, str]] = field(default_factory=dict)

    def flaw(self, locator: str) -> tuple[str, str]:
        """Return (reason, detail) of what is wrong with an image; both empty when it is fine or not to be looked at."""
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
