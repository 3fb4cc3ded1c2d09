"""Where things stand in a build directory.

build.yaml  manifest.json  README.md  report.html
pairs/      the pairs, in parts            rejected/   what each stage turned away, in parts, with reasons
index/      FAISS index and encoder        retrieval/  hits of the queries, and the keys they chose
tokens/     tagged captions, in parts      statistics/ what the captions of the pool say
downloads/  images as they came             fetched/    which pair has which image
failed/     rows that a model failed at, by stage
drafts/     negatives and positives before they are balanced
candidates/ negatives before refinement    annotations/ what was kept, in parts
rationales/ why negatives do not fit their images, in parts
shards/     WebDataset tars and sizes.json receipts/   what is done (receipts.py)
remote/     copies of inputs that lie in a store
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pairwright.datasets.record_tables import ANNOTATIONS, PAIRS
from pairwright.datasets.records import Annotation, Pair

COPIES = "remote"
DOWNLOADS = "downloads"
SWEPT = (
    "pairs",
    "index",
    "retrieval",
    "fetched",
    "tokens",
    "statistics",
    "drafts",
    "candidates",
    "annotations",
    "rationales",
    "rejected",
    "shards",
    "frozen",
)
"""Folders in which a build removes files that none of its jobs wrote."""
OWNED = (*SWEPT, "receipts", "failed", "manifests", "increments")
"""Folders whose files a build removes or overwrites; none of them may be a link."""


def part_name(number: int) -> str:
    """Return the name of part ``number``: five digits, as shards have."""
    return f"{number:05d}"


def pairs_path(root: Path, part: str) -> Path:
    """Return where a part of the pairs stands."""
    return root / "pairs" / f"{part}.parquet"


def tokens_path(root: Path, part: str) -> Path:
    """Return where the tokens of a part stand."""
    return root / "tokens" / f"{part}.parquet"


def rejected_path(root: Path, stage: str, part: str) -> Path:
    """Return where the rows stand that ``stage`` turned away in a part."""
    return root / "rejected" / f"{stage}-{part}.parquet"


def failed_path(root: Path, stage: str) -> Path:
    """Return where the rows are named at which the model of ``stage`` failed."""
    return root / "failed" / f"{stage}.jsonl"


def annotations_path(root: Path, stage: str, part: str) -> Path:
    """Return where the kept annotations stand that ``stage`` made in a part."""
    return root / "annotations" / f"{stage}-{part}.parquet"


def drafts_path(root: Path, stage: str, part: str) -> Path:
    """Return where a stage's annotations stand that have yet to be balanced."""
    return root / "drafts" / f"{stage}-{part}.parquet"


def candidates_path(root: Path, stage: str, part: str) -> Path:
    """Return where a stage's annotations stand that refinement has yet to judge."""
    return root / "candidates" / f"{stage}-{part}.parquet"


def rationales_path(root: Path, part: str) -> Path:
    """Return where the kept rationales of a part stand."""
    return root / "rationales" / f"{part}.parquet"


def retrieved_keys_path(root: Path) -> Path:
    """Return where the keys of the retrieved pairs stand."""
    return root / "retrieval" / "keys.parquet"


def fetched_images_path(root: Path) -> Path:
    """Return where the table of fetched images stands: key, image (below ``root``), width, height."""
    return root / "fetched" / "images.parquet"


def read_pair_parts(root: Path, parts: Sequence[str]) -> Iterator[list[Pair]]:
    """Yield the pairs of each part, in order."""
    for part in parts:
        yield PAIRS.read(pairs_path(root, part))


def kept_annotations(root: Path, part: str, stages: Sequence[str]) -> list[Annotation]:
    """Return the kept annotations of a part, stage by stage in the given order."""
    return [annotation for stage in stages for annotation in ANNOTATIONS.read(annotations_path(root, stage, part))]
