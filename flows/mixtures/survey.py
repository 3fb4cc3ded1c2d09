"""The first reading of a mixture's sources: what each holds, as numbers, and what of it cannot be taken.

Broken rows stop the run, or are written to a file of their own and counted, as their source says.
"""

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson

from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import is_table_cell, is_url, split_locator
from pairwright.datasets.mixtures.conversations import Conversation
from pairwright.datasets.mixtures.row_sampling import RowHashes
from pairwright.datasets.mixtures.sources import (
    ConversationSource,
    FilteredOut,
    ImageChecker,
    SourceOptions,
    find_conversation_source,
)
from pairwright.datasets.option_names import OptionNames
from pairwright.datasets.rejects import Reject, make_reject
from pairwright.flows.mixtures.config import SourceSection

Watch = Callable[[str, int], None]
"""Called now and then with what is going on and how many rows are done."""

EVERY = 1_000
OF_SOURCE = OptionNames("of the source")
_BESIDE_TEXT = 250  # bytes of a packed row besides its texts


@dataclass
class CommonFolder:
    """The nearest folder above everything that was added."""

    folder: str = ""

    def add(self, folder: str) -> None:
        """Take a folder in."""
        if not self.folder:
            self.folder = folder
        elif folder != self.folder and not folder.startswith(self.folder.rstrip("/") + "/"):
            self.folder = os.path.commonpath([self.folder, folder])


@dataclass
class SourceSummary:
    """What the first reading of a source found.

    Attributes:
        section: its settings.
        source: where it lies.
        identities: its conversations as numbers.
        found: how many conversations and broken rows it holds.
        refused: broken ones by reason.
        left_out: those that its own filters leave out, by reason.
        kinds: of the conversations that the filters leave out.
        in_tars: conversations whose images lie in tars.
        in_tables: conversations whose images lie in Parquet tables.
        size: bytes of the rows that can be taken, about.
    """

    section: SourceSection
    source: ConversationSource
    identities: RowHashes = field(default_factory=RowHashes)
    found: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    in_tars: int = 0
    in_tables: int = 0
    size: int = 0

    @property
    def name(self) -> str:
        """The source's name."""
        return self.section.name


@dataclass
class SourceSurvey:
    """Reads sources once.

    Attributes:
        seed: of the mixture.
        rejects: file of broken rows; None writes none.
        folder: above all images.
        rejected: how many broken rows were written.
    """

    seed: int
    rejects: Callable[[bytes], object] | None
    watch: Watch
    folder: CommonFolder = field(default_factory=CommonFolder)
    rejected: int = 0

    def read(self, section: SourceSection) -> SourceSummary:
        """Read a source to its end.

        Raises:
            InputError: a file that cannot be read, a broken row where they stop the run, or no row that can be taken.
        """
        source = find_conversation_source(section.path, section.format, source_read_options(section))
        done = SourceSummary(section, source)
        # What stands in shards of ours was looked at when they were written; `verify` looks again.
        check = ImageChecker("off" if source.format == "shards" else section.verify_images)
        for place, judged in source.conversations():
            done.found += 1
            if done.found % EVERY == 0:
                self.watch(f"reading {section.name}", done.found)
            if isinstance(judged, FilteredOut):
                done.left_out[judged.reason] += 1
                done.kinds[judged.kind] += 1
            elif isinstance(judged, Reject):
                self._refuse(done, judged)
            else:
                self._take(done, place, judged, check)
        if not any(done.identities.usable) and section.count != 0:
            raise _nothing_in(done)
        return done

    def _take(self, done: SourceSummary, place: str, conversation: Conversation, check: ImageChecker) -> None:
        reason, detail = check.flaw(conversation.image)
        if reason:
            self._refuse(done, make_reject(place, reason, detail))
        elif conversation.image and not is_url(conversation.image):
            path, member = split_locator(conversation.image)
            done.in_tables += is_table_cell(conversation.image)
            done.in_tars += bool(member) and not is_table_cell(conversation.image)
            folder = str(done.source.root)
            inside = not member and done.source.format != "build" and path.startswith(folder + os.sep)
            self.folder.add(folder if inside else os.path.dirname(os.path.abspath(path)))  # noqa: PTH100, PTH120 - a hot path
        done.identities.add(conversation, self.seed, usable=not reason)
        done.size += sum(map(len, conversation.texts)) + _BESIDE_TEXT

    def _refuse(self, done: SourceSummary, flaw: Reject) -> None:
        if done.section.on_error == "stop":
            raise flaw.error(OF_SOURCE)
        done.refused[flaw.reason] += 1
        self.rejected += 1
        if self.rejects:
            row = {**asdict(flaw), "source": done.name}
            self.rejects(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


def source_read_options(section: SourceSection) -> SourceOptions:
    """Return how a source is read."""
    return SourceOptions(
        section.columns, section.image_root, section.kinds, section.split, section.prompt_text, OF_SOURCE
    )


def _nothing_in(done: SourceSummary) -> InputError:
    why = ", ".join(f"{reason} {number:,}" for reason, number in (done.refused + done.left_out).most_common())
    fix = "Correct its rows, or leave the source out."
    if done.left_out["other_kind"]:
        kinds = ", ".join(repr(kind) for kind, _ in done.kinds.most_common(8))
        fix = f"Its rows are of kind {kinds}: correct `kinds`."
    what = f"none of {done.found:,} rows can be taken ({why})" if done.found else "there are no rows"
    return InputError(f"{what}", where=f"source {done.name} ({Path(done.section.path).name})", fix=fix)
