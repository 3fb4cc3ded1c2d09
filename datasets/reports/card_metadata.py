"""The metadata block of a dataset card, in the names and values that the Hugging Face Hub reads.

It says what the dataset is called, under what licence, how large, for what tasks, where its shards are and of what
type each member of a sample is, so that ``datasets.load_dataset`` on the card's folder need not guess. A licence is
named only when every source states the same one.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from pairwright.datasets.shards.sample_schema import SAMPLE_SCHEMA, MemberSchema

_SIZES = (
    (1_000, "n<1K"),
    (10_000, "1K<n<10K"),
    (100_000, "10K<n<100K"),
    (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"),
    (100_000_000, "10M<n<100M"),
    (1_000_000_000, "100M<n<1B"),
)
_LICENSES = frozenset(
    [
        "apache-2.0",
        "mit",
        "cc0-1.0",
        "cc-by-2.0",
        "cc-by-3.0",
        "cc-by-4.0",
        "cc-by-sa-3.0",
        "cc-by-sa-4.0",
        "cc-by-nc-4.0",
        "cc-by-nc-sa-4.0",
        "odc-by",
        "odbl",
    ]
)


def front_matter(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of the card, as the Hub names it."""
    contents, shards = manifest.get("contents", {}), manifest.get("shards", {})
    samples = shards.get("samples", contents.get("samples", 0))
    front: dict[str, Any] = {
        "pretty_name": str(manifest.get("name", "dataset")),
        "language": ["en"],
        **_license(contents.get("sources", [])),
        "annotations_creators": ["machine-generated"],
        "size_categories": [next((name for bound, name in _SIZES if samples < bound), "n>1B")],
        "task_categories": _tasks(contents),
        "tags": [
            "webdataset",
            *(name.replace("_", "-") for name, count in contents.get("texts", {}).items() if count and name != "turns"),
        ],
    }
    if shards.get("files"):
        path = f"{shards.get('folder', 'shards')}/*.tar"
        front["configs"] = [{"config_name": "default", "data_files": [{"split": "train", "path": path}]}]
        front["dataset_info"] = {"features": hub_features(str(shards.get("image_ext", "")))}
    return front


def hub_features(image_ext: str) -> list[dict[str, Any]]:
    """Return the members of a sample in the Hub's notation of types; ``image_ext`` is empty for text-only shards."""
    image = [{"name": image_ext, "dtype": "image"}] if image_ext else []
    texts = [{"name": name, "dtype": "string"} for name in ("__key__", "__url__")]
    return [*image, {"name": "txt", "dtype": "string"}, {"name": "json", "struct": _fields(SAMPLE_SCHEMA)}, *texts]


def _fields(shape: Mapping[str, MemberSchema]) -> list[dict[str, Any]]:
    return [{"name": name, **_feature(inner)} for name, inner in shape.items()]


def _feature(shape: MemberSchema) -> dict[str, Any]:
    if isinstance(shape, str):
        return {"dtype": shape}
    if isinstance(shape, dict):
        return {"struct": _fields(shape)}
    inner = shape[0]
    return {"list": _fields(inner) if isinstance(inner, dict) else inner}


def _license(sources: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    slugs = {re.sub(r"\s+", "-", str(source["license"]).strip().lower()) for source in sources} or {""}
    if len(slugs) > 1:
        return {"license": "other", "license_name": "mixed"}
    slug = slugs.pop()
    if not slug or slug in _LICENSES:
        return {"license": slug or "unknown"}
    return {"license": "other", "license_name": "as-stated-by-the-source"}


def _tasks(contents: Mapping[str, Any]) -> list[str]:
    tasks = ["image-text-to-text"] if contents.get("texts", {}).get("conversations") else []
    return tasks + (["zero-shot-image-classification"] if contents.get("with_image") else ["feature-extraction"])
