"""What came of a mixture: the table of its sources, and the report that stands beside the output.

The report holds the settings, the seed and a SHA-256 of every input and output file: with the same files and settings
the mixture comes out the same. It names no place on this machine but by its way from the report's own folder.
"""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from pairwright import __version__
from pairwright.datasets.mixtures.conversations import Conversation
from pairwright.datasets.mixtures.row_sampling import VERSION, DistinctRows
from pairwright.datasets.shards.webdataset import hash_file
from pairwright.flows.mixtures.config import MixtureConfig
from pairwright.flows.mixtures.survey import SourceSummary

_PLACES = {"path", "image_root"}


@dataclass
class TakenRows:
    """What the taken rows of a source hold: a turn is a question with its answer; words are those of the answers."""

    rows: int = 0
    turns: int = 0
    words: int = 0
    with_image: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def count(self, conversation: Conversation) -> None:
        """Count a row."""
        self.rows += 1
        self.turns += len(conversation.turns) // 2
        self.words += sum(len(turn.text.split()) for turn in conversation.turns[1::2])
        self.with_image += bool(conversation.image)
        self.kinds[conversation.kind] += 1

    def numbers(self) -> dict[str, Any]:
        """Return it JSON-ready."""
        return {
            "turns": self.turns,
            "mean_answer_words": round(self.words / self.turns, 2) if self.turns else 0.0,
            "with_image": self.with_image,
            "kinds": dict(sorted(self.kinds.items())),
        }


def report_file(out: Path) -> Path:
    """Return where the report of OUT stands."""
    return out.with_name(f"{out.stem}.mixture.json")


@dataclass
class MixtureReport:
    """A mixture, planned or written.

    Attributes:
        config: its settings.
        out: what was written, or would be; None in a dry run that names nothing.
        image_root: absolute folder below which images are named; None when there are none.
        surveyed: the sources, as listed.
        distinct: of each source, its distinct rows and its duplicates.
        asked: of each source, rows asked.
        take: of each source, rows taken after ``keep``.
        given: of each source, what its taken rows hold; empty while nothing was written.
        files: written, without the report.
    """

    config: MixtureConfig
    out: Path | None
    image_root: Path | None
    surveyed: tuple[SourceSummary, ...]
    distinct: Mapping[str, DistinctRows]
    asked: Mapping[str, int]
    take: Mapping[str, int]
    given: dict[str, TakenRows] = field(default_factory=dict)
    files: tuple[Path, ...] = ()

    @property
    def rows(self) -> int:
        """Rows of the mixture."""
        return sum(self.take.values())

    def sources(self) -> list[dict[str, Any]]:
        """Return each source in numbers, JSON-ready: found = refused + left out + duplicates + distinct."""
        return [self._source(one) for one in self.surveyed]

    def _source(self, one: SourceSummary) -> dict[str, Any]:
        name, given = one.name, self.given.get(one.name)
        return {
            "name": name,
            "found": one.found,
            "refused": dict(sorted(one.refused.items())),
            "left_out": dict(sorted(one.left_out.items())),
            "duplicates": self.distinct[name].duplicates,
            "distinct": len(self.distinct[name].places),
            "images_in_tars": one.in_tars,
            "images_in_tables": one.in_tables,
            "asked": self.asked[name],
            "taken": self.take[name],
            "share": round(self.take[name] / self.rows, 6) if self.rows else 0.0,
            **(given.numbers() if given else {}),
        }

    def as_bytes(self, folder: Path) -> bytes:
        """Return the report as it is saved in ``folder``, to which its paths are relative."""

        def told(path: Path) -> dict[str, Any]:
            return {"path": os.path.relpath(path, folder), "bytes": path.stat().st_size, "sha256": hash_file(path)}

        settings = self.config.model_dump(mode="json", exclude={"sources", "image_root"})
        sources = [
            {
                **numbers,
                "path": os.path.relpath(one.section.path, folder),
                "files": [told(path) for path in one.source.files],
                "settings": one.section.model_dump(mode="json", exclude={"name", *_PLACES}),
            }
            for one, numbers in zip(self.surveyed, self.sources(), strict=True)
        ]
        made = {
            "pairwright": __version__,
            "mixture_version": VERSION,
            "rows": self.rows,
            "image_root": os.path.relpath(self.image_root, folder) if self.image_root else "",
            "settings": settings,
            "sources": sources,
            "output": [told(path) for path in self.files],
        }
        return orjson.dumps(made, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
