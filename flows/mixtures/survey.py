"""First pass over the sources of a mixture: row hashes and counts, and rejected rows.

Broken rows stop the run, or are written to a file and counted, as ``on_error`` of their source says.
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import orjson

from pairwright.datasets.count_phrases import count_phrase
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
"""Called regularly with the current step and the number of rows done."""

EVERY = 1_000
OF_SOURCE = OptionNames("of the source")
_ROW_BYTES = 250  # of a packed row without its texts


@dataclass
class CommonFolder:
    """The nearest common parent of the added folders."""

    folder: str = ""

    def add(self, folder: str) -> None:
        """Add a folder."""
        if not self.folder:
            self.folder = folder
        elif folder != self.folder and not folder.startswith(self.folder.rstrip("/") + "/"):
            self.folder = os.path.commonpath([self.folder, folder])


@dataclass
class SourceSummary:
    """Result of the first pass over a source.

    Attributes:
        section: its settings.
        source: its files.
        identities: hashes of its conversations.
        found: number of conversations and broken rows.
        refused: number of broken rows by reason.
        first_refused: the first of them.
        left_out: number of rows excluded by the filters of the source, by reason.
        kinds: of the excluded conversations.
        in_tars: number of conversations with images in tars.
        in_tables: number of conversations with images in Parquet tables.
        size: bytes of the usable rows, about.
    """

    section: SourceSection
    source: ConversationSource
    identities: RowHashes = field(default_factory=RowHashes)
    found: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    first_refused: Reject | None = None
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
    """Makes the first pass over sources.

    Attributes:
        seed: of the mixture.
        rejects: writes a broken row; None to write none.
        watch: receives the progress.
        one_image: layout of the mixture, if its rows hold one image; else empty.
        folder: common parent of all images.
        rejected: number of broken rows written.
    """

    seed: int
    rejects: Callable[[bytes], object] | None
    watch: Watch
    one_image: str = ""
    folder: CommonFolder = field(default_factory=CommonFolder)
    rejected: int = 0

    def read(self, section: SourceSection) -> SourceSummary:
        """Read a whole source.

        Raises:
            InputError: for an unreadable file, a broken row that stops the run, or no usable row.
        """
        source = find_conversation_source(section.path, section.format, source_read_options(section, self.one_image))
        done = SourceSummary(section, source)
        # Images in shards were checked when they were written, and by `pairwright verify`.
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
            raise _no_usable_row(done)
        return done

    def _take(self, done: SourceSummary, place: str, conversation: Conversation, check: ImageChecker) -> None:
        flaws = (check.flaw(image) for image in conversation.images)
        reason, detail = next((flaw for flaw in flaws if flaw[0]), ("", ""))
        if reason:
            self._refuse(done, make_reject(place, reason, detail))
        else:
            self._place_images([image for image in conversation.images if not is_url(image)], done)
        done.identities.add(conversation, self.seed, usable=not reason)
        done.size += sum(map(len, conversation.texts)) + _ROW_BYTES

    def _place_images(self, images: Sequence[str], done: SourceSummary) -> None:
        """Count where the images of a conversation are, and add their folders."""
        done.in_tables += any(map(is_table_cell, images))
        done.in_tars += any(split_locator(image)[1] and not is_table_cell(image) for image in images)
        folder = str(done.source.root)
        for image in images:
            path, member = split_locator(image)
            inside = not member and done.source.format != "build" and path.startswith(folder + os.sep)
            self.folder.add(folder if inside else os.path.dirname(os.path.abspath(path)))  # noqa: PTH100, PTH120 - a hot path

    def _refuse(self, done: SourceSummary, flaw: Reject) -> None:
        if done.section.on_error == "stop":
            raise flaw.error(OF_SOURCE)
        done.refused[flaw.reason] += 1
        done.first_refused = done.first_refused or flaw
        self.rejected += 1
        if self.rejects:
            row = {**asdict(flaw), "source": done.name}
            self.rejects(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


def source_read_options(section: SourceSection, one_image: str = "") -> SourceOptions:
    """Return the options of the reader of a source; ``one_image`` as in `SourceOptions`."""
    return SourceOptions(
        section.columns,
        section.image_root,
        section.kinds,
        section.split,
        section.prompt_text,
        drop_system=section.drop_system,
        one_image=one_image,
        option_names=OF_SOURCE,
    )


def _no_usable_row(done: SourceSummary) -> InputError:
    reasons = ", ".join(f"{reason} {number:,}" for reason, number in (done.refused + done.left_out).most_common())
    fix = "Correct its rows, or remove the source."
    if done.left_out["other_kind"]:
        kinds = ", ".join(repr(kind) for kind, _ in done.kinds.most_common(8))
        fix = f"Its rows are of kind {kinds}: correct `kinds`."
    what = f"none of {count_phrase(done.found, 'row')} is usable ({reasons})" if done.found else "no rows"
    if first := done.first_refused:
        what += f"; the first, {first.place}: {first.reason}: {first.detail}"
    return InputError(f"{what}", where=f"source {done.name} ({Path(done.section.path).name})", fix=fix)
