"""Paths in a build directory.

build.yaml  manifest.json  README.md  report.html
captions/   captions of images that have none
scan/       keys of the pieces of the input
pairs/      pairs, in parts                rejected/   rejected rows of each stage, in parts, with reasons
index/      FAISS index and encoder        retrieval/  hits of the queries and the selected keys
tokens/     tagged captions, in parts      statistics/ word counts of the captions
chosen/     keys of the selected pairs, in parts
downloads/  downloaded images              fetched/    table of the image of each pair, whole and in parts
answers/    keys and tokens of the answers that a stage uses, in parts
failed/     rows that the model failed on, by stage and part
drafts/     texts before balancing          balance/    counts of the texts of each part, and which exceed the limits
candidates/ texts before refinement        annotations/ kept texts, in parts
refinement/ scores and verdicts, in parts
rationales/ kept rationales, in parts
shards/     WebDataset tars and sizes.json receipts/   finished jobs (receipts.py)
remote/     copies of inputs in an object store
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pairwright.datasets.records import Annotation, Pair

ANSWERS_ADDRESS = (
    ".answers.json"  # host, port and secret of the service that sends requests (`flows/llm/answer_service.py`)
)
SHARED_MARK = ".shared"  # by which a worker on another node checks that it sees the same folder
PARTS_SETUP = ".parts"  # settings and versions of the last part (`part_setup.py`)
COPIES = "remote"
DOWNLOADS = "downloads"
CLEANED_FOLDERS = (
    "captions",
    "scan",
    "pairs",
    "index",
    "retrieval",
    "chosen",
    "fetched",
    "tokens",
    "statistics",
    "drafts",
    "balance",
    "candidates",
    "answers",
    "refinement",
    "annotations",
    "rationales",
    "rejected",
    "shards",
    "frozen",
)
"""Folders in which a build removes files that none of its jobs wrote."""
OWNED_FOLDERS = (*CLEANED_FOLDERS, "receipts", "failed", "manifests", "increments")
"""Folders whose files a build removes or overwrites; none may be a symbolic link."""


def part_name(number: int) -> str:
    """Return the name of part ``number``: five digits, as in the names of shards."""
    return f"{number:05d}"


def pairs_path(root: Path, part: str) -> Path:
    """Return the file of the pairs of a part."""
    return root / "pairs" / f"{part}.parquet"


def captions_path(root: Path, part: str = "all") -> Path:
    """Return the file of the pairs whose captions a model wrote; of a piece of the input, if one is given."""
    return root / "captions" / f"{part}.parquet"


def tokens_path(root: Path, part: str) -> Path:
    """Return the file of the tokens of a part."""
    return root / "tokens" / f"{part}.parquet"


def rejected_path(root: Path, stage: str, part: str) -> Path:
    """Return the file of the rows of a part that ``stage`` rejected."""
    return root / "rejected" / f"{stage}-{part}.parquet"


def answers_path(root: Path, stage: str, part: str) -> Path:
    """Return the file of the answers that the rows of a part use."""
    return root / "answers" / f"{stage}-{part}.parquet"


def failed_path(root: Path, stage: str, part: str = "") -> Path:
    """Return the file of the rows that the model of ``stage`` failed on; in a part, if the stage asks by part."""
    return root / "failed" / stage / f"{part}.jsonl" if part else root / "failed" / f"{stage}.jsonl"


def failed_files(root: Path, stage: str) -> list[Path]:
    """Return the files that name the failed rows of ``stage``, in the order of the parts."""
    whole = failed_path(root, stage)
    return [path for path in (whole, *sorted(whole.with_suffix("").glob("[!.]*.jsonl"))) if path.is_file()]


def annotations_path(root: Path, stage: str, part: str) -> Path:
    """Return the file of the kept annotations of a part that ``stage`` made."""
    return root / "annotations" / f"{stage}-{part}.parquet"


def drafts_path(root: Path, stage: str, part: str) -> Path:
    """Return the file of a stage's annotations of a part before balancing."""
    return root / "drafts" / f"{stage}-{part}.parquet"


def balance_path(root: Path, stage: str, what: str, part: str) -> Path:
    """Return a file of a balancing stage: the ``rows`` of a part in brief, its ``counts``, the ``cuts`` or ``limits``."""
    suffix = "parquet" if what in {"rows", "cuts"} else "json"
    return root / "balance" / f"{stage}-{what}-{part}.{suffix}"


def candidates_path(root: Path, stage: str, part: str) -> Path:
    """Return the file of a stage's annotations of a part before refinement."""
    return root / "candidates" / f"{stage}-{part}.parquet"


def rationales_path(root: Path, part: str) -> Path:
    """Return the file of the kept rationales of a part."""
    return root / "rationales" / f"{part}.parquet"


def retrieved_keys_path(root: Path) -> Path:
    """Return the file of the keys of the retrieved pairs."""
    return root / "retrieval" / "keys.parquet"


def retrieved_part_path(root: Path, part: str) -> Path:
    """Return the file of the retrieved pairs of a part: their keys, and excluded pairs with a reason."""
    return root / "chosen" / f"{part}.parquet"


def fetched_part_path(root: Path, part: str) -> Path:
    """Return the file of the fetched images of a part; columns as `fetched_images_path`."""
    return root / "fetched" / f"{part}.parquet"


def fetched_images_path(root: Path) -> Path:
    """Return the file of the table of fetched images: key, image (below ``root``), width, height."""
    return root / "fetched" / "images.parquet"


def read_pair_parts(root: Path, parts: Sequence[str]) -> Iterator[list[Pair]]:
    """Yield the pairs of each part, in order."""
    from pairwright.datasets.record_tables import PAIRS  # imports polars

    for part in parts:
        yield PAIRS.read(pairs_path(root, part))


def kept_annotations(
    root: Path, part: str, stages: Sequence[str], keys: Sequence[str] | None = None
) -> list[Annotation]:
    """Return the kept annotations of a part, stage by stage in the given order; those of some ``keys``, if given."""
    import polars as pl  # slow to import, and not needed by commands that ask a model

    from pairwright.datasets.record_tables import ANNOTATIONS

    frames = (ANNOTATIONS.read_frame(annotations_path(root, stage, part)) for stage in stages)
    wanted = pl.lit(value=True) if keys is None else pl.col("key").is_in(keys)
    return [annotation for frame in frames for annotation in ANNOTATIONS.records(frame.filter(wanted))]
