"""Counts of a dataset's contents in one pass over its samples: for the manifest, the card, the report and `inspect`.

The counts are a plain JSON object with the members that `count_contents` returns. Types are named as on the command
line: ``replace-object``, ``swap-attribute``. Memory does not grow with the number of samples.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, field
from functools import lru_cache
from typing import Any

from pairwright.datasets.progress import track
from pairwright.datasets.records import Annotation, Origin
from pairwright.datasets.shards.samples import Sample, list_makers

_GROUPS = {"hard_negative": "hard_negatives", "hard_positive": "hard_positives"}


def annotation_type(annotation: Annotation) -> str:
    """Return ``form-target`` of an edited text (``replace-object``), or the kind of a conversation."""
    return _format_type(annotation.form, annotation.target) if annotation.kind in _GROUPS else annotation.kind


@lru_cache(maxsize=64)
def _format_type(form: str, target: str) -> str:
    return "-".join(part for part in (form, target) if part) or "other"


def count_exchanges(annotation: Annotation) -> int:
    """Return the number of exchanges: a question with its answer counts once."""
    return sum(turn.role == "human" for turn in annotation.turns)


@dataclass
class ContentCounts:
    """Counts of samples as they are added."""

    samples: int = 0
    with_image: int = 0
    turns: int = 0
    rationales: int = 0
    image_exts: Counter[str] = field(default_factory=Counter)
    sources: Counter[tuple[str, str]] = field(default_factory=Counter)
    types: dict[str, Counter[str]] = field(
        default_factory=lambda: {name: Counter() for name in ("hard_negatives", "hard_positives", "conversations")}
    )
    having: Counter[str] = field(default_factory=Counter)
    makers: Counter[Origin] = field(default_factory=Counter)

    def add(self, sample: Sample) -> None:
        """Count a sample."""
        self.samples += 1
        self.with_image += bool(sample.pair.image)
        self.image_exts[sample.image_ext] += 1
        self.sources[sample.pair.source, sample.pair.license] += 1
        self.rationales += len(sample.examples)
        groups = {_GROUPS.get(annotation.kind, "conversations") for annotation in sample.annotations}
        self.having.update(groups | ({"rationales"} if sample.examples else set()))
        for annotation in sample.annotations:
            self.types[_GROUPS.get(annotation.kind, "conversations")][annotation_type(annotation)] += 1
            self.turns += count_exchanges(annotation)
        self.makers.update(list_makers(sample))

    def as_dict(self) -> dict[str, Any]:
        """Return the counts, as `count_contents`."""
        return {
            "samples": self.samples,
            "with_image": self.with_image,
            "image_exts": {ext: count for ext, count in sorted(self.image_exts.items()) if ext},
            "texts": {name: types.total() for name, types in self.types.items()}
            | {"turns": self.turns, "rationales": self.rationales},
            "samples_with": {name: self.having[name] for name in (*self.types, "rationales")},
            "types": {name: dict(sorted(types.items())) for name, types in self.types.items()},
            "sources": [
                {"name": name, "license": license_, "samples": count}
                for (name, license_), count in sorted(self.sources.items())
            ],
            "makers": [
                {"generator": o.generator, "version": o.version, "seed": o.seed, "model": o.model, "prompt": o.prompt}
                | {"samples": count}
                for o, count in sorted(self.makers.items(), key=lambda item: astuple(item[0]))
            ],
        }


def count_contents(samples: Iterable[Sample]) -> dict[str, Any]:
    """Return the counts of ``samples``.

    Returns:
        ``samples``, ``with_image``, ``image_exts`` (extension to count), ``texts`` (hard_negatives, hard_positives,
        conversations, turns, rationales), ``samples_with`` (the same without turns: samples with at least one), ``types``
        (for each of the first three, type to count), ``sources`` (list of name, license, samples) and ``makers`` (list of
        generator, version, seed, model, prompt, samples), each sorted by name.
    """
    counts = ContentCounts()
    for sample in track(samples, "counting texts", unit="samples"):
        counts.add(sample)
    return counts.as_dict()


def add_counts(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sum of two results of `count_contents`."""
    return {name: _sum(one[name], other[name]) for name in one if name in other}  # older versions may lack some


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, list):
        rows: dict[tuple[tuple[str, Any], ...], int] = {}
        for row in (*one, *other):
            name = tuple((key, value) for key, value in row.items() if key != "samples")
            rows[name] = rows.get(name, 0) + row["samples"]
        ordered = sorted(rows.items(), key=lambda item: [value for _, value in item[0]])
        return [{**dict(name), "samples": count} for name, count in ordered]
    if isinstance(one, Mapping):
        names = [*one, *sorted(set(other) - set(one))]
        merged = {name: _sum(one.get(name, 0), other.get(name, 0)) for name in names}
        return merged if set(one) == set(other) else dict(sorted(merged.items()))
    return one + other
