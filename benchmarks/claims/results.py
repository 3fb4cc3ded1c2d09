"""Results of the claims: rows of a JSONL file, paired differences over seeds, and the table of the documentation.

A row is ``claim, seed, arm, config, figures``. ``config`` is the digest of the claim's design: rows of other designs are
not compared. A claim is *shown* where the 95% interval of the difference (Student's t over pairs of runs of one seed)
lies above 0, *refuted* where it lies below, else *open*.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from scipy.stats import t as student

from benchmarks.claims.pictures import small_clip
from benchmarks.claims.trials import DESIGN_SEED, Trials, digest
from pairwright.datasets.records import compact_json

Arms = Mapping[str, Mapping[str, float]]
"""Figures by arm and measure; shares are 0-1."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """One line of the table: ``better`` is claimed to have more of ``measure`` than ``worse``."""

    measure: str
    better: str
    worse: str


@dataclass(frozen=True)
class Claim:
    """A claim of a paper, and how it is tested.

    Attributes:
        letter: short name.
        name: of its module.
        title: what is claimed.
        design: frozen dataclass of all numbers.
        run: trains and measures the arms of a seed.
        comparisons: lines of the table.
    """

    letter: str
    name: str
    title: str
    design: Any
    run: Callable[[Trials], Arms]
    comparisons: tuple[Comparison, ...]

    @property
    def config(self) -> str:
        """Digest of the design and of the sizes of the tiny CLIP."""
        return digest([self.letter, asdict(self.design), asdict(small_clip())])


@dataclass(frozen=True)
class Row:
    """What one arm of a claim reached with one seed."""

    claim: str
    seed: int
    arm: str
    config: str
    figures: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Difference:
    """Mean of paired differences with its 95% interval."""

    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """``shown``, ``refuted`` or ``open``."""
        return "shown" if self.low > 0 else "refuted" if self.high < 0 else "open"


def paired_difference(better: Sequence[float], worse: Sequence[float]) -> Difference:
    """Return the mean difference of pairs and its interval, unbounded below two pairs."""
    differences = [one - other for one, other in zip(better, worse, strict=True)]
    middle, count = mean(differences), len(differences)
    if count < 2:
        return Difference(middle, -math.inf, math.inf)
    half = float(student.ppf(0.975, count - 1)) * stdev(differences) / math.sqrt(count)
    return Difference(middle, middle - half, middle + half)


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file; none if it is missing."""
    return [Row(**json.loads(line)) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []


def write_rows(path: Path, rows: Iterable[Row]) -> None:
    """Write rows in order of claim and seed."""
    ordered = sorted(rows, key=lambda row: (row.claim, row.seed))
    path.write_text("".join(compact_json(asdict(row)) + "\n" for row in ordered), encoding="utf-8")


def rows_of(claim: Claim, seed: int, arms: Arms) -> list[Row]:
    """Return the rows of a run, figures rounded to four places."""
    return [
        Row(claim.letter, seed, arm, claim.config, {name: round(value, 4) for name, value in figures.items()})
        for arm, figures in arms.items()
    ]


def table(claims: Sequence[Claim], rows: Sequence[Row]) -> str:
    """Return the comparisons as a Markdown table; claims without rows are left out."""
    lines = [
        "| claim | measure | arm | against | difference, 95% interval | seeds | | `python -m benchmarks.claims` |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for claim in claims:
        held = [row for row in rows if row.claim == claim.letter and row.config == claim.config]
        lines += [_line(claim, one, held) for one in claim.comparisons if _pairs(one, held)]
    return "\n".join(lines)


def _line(claim: Claim, one: Comparison, rows: Sequence[Row]) -> str:
    pairs = _pairs(one, rows)
    better, worse = zip(*pairs, strict=True)
    found = paired_difference(better, worse)
    sides = [f"{name} {100 * mean(each):.1f}" for name, each in ((one.better, better), (one.worse, worse))]
    interval = f"{100 * found.mean:+.1f} ({100 * found.low:+.1f} to {100 * found.high:+.1f})"
    cells = (claim.letter, one.measure, *sides, interval, len(pairs), found.verdict, f"`--claims {claim.letter}`")
    return f"| {' | '.join(map(str, cells))} |"


def _pairs(one: Comparison, rows: Sequence[Row]) -> list[tuple[float, float]]:
    """Return the measure of both arms, by seed."""
    found = {(row.arm, row.seed): row.figures.get(one.measure) for row in rows if row.seed != DESIGN_SEED}
    seeds = sorted({seed for _, seed in found})
    pairs = [(found.get((one.better, seed)), found.get((one.worse, seed))) for seed in seeds]
    return [(better, worse) for better, worse in pairs if better is not None and worse is not None]
