"""Report of a mixture: its sources in numbers, its settings, and the SHA-256 of every input and output file.

The same files and settings give the same mixture. Paths are relative to the folder of the report.
"""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from pairwright import __version__
from pairwright.datasets.checksums import hash_file
from pairwright.datasets.mixtures.conversations import Conversation
from pairwright.datasets.mixtures.row_sampling import VERSION, DistinctRows
from pairwright.flows.mixtures.config import MixtureConfig
from pairwright.flows.mixtures.survey import SourceSummary

_PATHS = {"path", "image_root"}


@dataclass
class TakenRows:
    """Counts of the taken rows of a source: a turn is a question with its answer; words are those of answers."""

    rows: int = 0
    turns: int = 0
    words: int = 0
    with_image: int = 0
    several_images: int = 0
    kinds: Counter[str] = field(default_factory=Counter)

    def count(self, conversation: Conversation) -> None:
        """Count a row."""
        self.rows += 1
        self.turns += len(conversation.turns) // 2
        self.words += sum(len(turn.text.split()) for turn in conversation.turns[1::2])
        self.with_image += bool(conversation.images)
        self.several_images += len(conversation.images) > 1
        self.kinds[conversation.kind] += 1

    def numbers(self) -> dict[str, Any]:
        """Return the counts as JSON."""
        return {
            "turns": self.turns,
            "mean_answer_words": round(self.words / self.turns, 2) if self.turns else 0.0,
            "with_image": self.with_image,
            **({"with_several_images": self.several_images} if self.several_images else {}),
            "kinds": dict(sorted(self.kinds.items())),
        }


def report_file(out: Path) -> Path:
    """Return the file of the report of an output."""
    return out.with_name(f"{out.stem}.mixture.json")


@dataclass
class MixtureReport:
    """A planned or written mixture.

    Attributes:
        config: its settings.
        out: the output; None for a dry run without one.
        image_root: absolute folder that image paths are relative to; None without images.
        surveyed: the sources, in the order of the config.
        distinct: by source, the distinct rows and the number of duplicates.
        requested: by source, the number of rows requested.
        quota: by source, the number of rows to take after ``keep``.
        taken: by source, counts of the taken rows; empty for a dry run.
        files: written, without the report.
    """

    config: MixtureConfig
    out: Path | None
    image_root: Path | None
    surveyed: tuple[SourceSummary, ...]
    distinct: Mapping[str, DistinctRows]
    requested: Mapping[str, int]
    quota: Mapping[str, int]
    taken: dict[str, TakenRows] = field(default_factory=dict)
    files: tuple[Path, ...] = ()

    @property
    def rows(self) -> int:
        """Rows of the mixture."""
        return sum(self.quota.values())

    def sources(self) -> list[dict[str, Any]]:
        """Return the numbers of each source as JSON: found = refused + left_out + duplicates + distinct."""
        return [self._source(one) for one in self.surveyed]

    def _source(self, one: SourceSummary) -> dict[str, Any]:
        name, taken = one.name, self.taken.get(one.name)
        return {
            "name": name,
            "found": one.found,
            "refused": dict(sorted(one.refused.items())),
            "left_out": dict(sorted(one.left_out.items())),
            "duplicates": self.distinct[name].duplicates,
            "distinct": len(self.distinct[name].places),
            "images_in_tars": one.in_tars,
            "images_in_tables": one.in_tables,
            "asked": self.requested[name],
            "taken": self.quota[name],
            "share": round(self.quota[name] / self.rows, 6) if self.rows else 0.0,
            **(taken.numbers() if taken else {}),
        }

    def as_bytes(self, folder: Path) -> bytes:
        """Return the report as JSON, with paths relative to ``folder``."""

        def entry(path: Path) -> dict[str, Any]:
            return {"path": os.path.relpath(path, folder), "bytes": path.stat().st_size, "sha256": hash_file(path)}

        settings = self.config.model_dump(mode="json", exclude={"sources", "image_root"})
        sources = [
            {
                **numbers,
                "path": os.path.relpath(one.section.path, folder),
                "files": [entry(path) for path in one.source.files],
                "settings": one.section.model_dump(mode="json", exclude={"name", *_PATHS}),
            }
            for one, numbers in zip(self.surveyed, self.sources(), strict=True)
        ]
        report = {
            "pairwright": __version__,
            "mixture_version": VERSION,
            "rows": self.rows,
            "image_root": os.path.relpath(self.image_root, folder) if self.image_root else "",
            "settings": settings,
            "sources": sources,
            "output": [entry(path) for path in self.files],
        }
        return orjson.dumps(report, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
