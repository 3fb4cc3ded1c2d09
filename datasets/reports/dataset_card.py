"""Dataset card: Markdown, with the metadata block that the Hugging Face Hub reads.

It is made from the build's manifest only: contents, sources and licences, the result of each stage (candidates = kept +
rejected, with every reason), makers of the texts, and known limits. The metadata has the paths of the shards and the type
of each member, so that ``datasets.load_dataset`` infers nothing. A licence is named only if every source states the same.

Manifest members used: ``name``, ``version``, ``created``, ``stages`` (name to unit, candidates, kept, rejected,
seconds), ``contents`` (`count_contents`), ``shards`` (`summarize_shards`), ``config``, ``environment``, ``oracle``, and
for a dataset with increments ``build``, ``increments`` and ``audit``; ``tables`` (rows) for one in Parquet files. Missing
members are omitted.

huggingface_hub's card classes are not used: they would replace the one call of yaml.safe_dump and no other line here,
reorder the keys, and add a base dependency of 20 MB on disk (with hf-xet) and 60 ms of import time.
"""

import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import yaml

from pairwright.datasets.count_phrases import count_phrase, format_size
from pairwright.datasets.readers.skip_counts import describe_rejected_parts
from pairwright.datasets.redaction import redact
from pairwright.datasets.rejects import list_reasons
from pairwright.datasets.reports.model_costs import COST_COLUMNS, list_cost_rows
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

_MARKDOWN_SIGNS = re.compile(r"([\\`*_\[\]|#])")


_CONTENT_PHRASES = {
    "hard_negatives": "at least one hard negative",
    "hard_positives": "a hard positive",
    "conversations": "a conversation",
    "rationales": "a rationale",
}


def render_card(manifest: Mapping[str, Any]) -> str:
    """Return the card of a dataset, from its manifest."""
    sections = (
        _summary(manifest),
        _sources(manifest),
        _stages(manifest),
        _makers(manifest),
        _costs(manifest),
        _versions(manifest),
        _audit(manifest),
        _oracle(manifest),
        _loading(manifest),
        _limits(manifest),
        _reproduce(manifest),
    )
    front = yaml.safe_dump(front_matter(manifest), sort_keys=False, allow_unicode=True, width=100)
    body = "\n\n".join(section for section in sections if section)
    return f"---\n{front}---\n\n# {escape_markdown(manifest.get('name', 'dataset'))}\n\n{body}\n"


def escape_markdown(value: object) -> str:
    """Return text escaped for Markdown, on one line."""
    return escape(_MARKDOWN_SIGNS.sub(r"\\\1", " ".join(str(value).split())), quote=False)


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    names = list(head)
    lines = [names, ["---"] * len(names), *([escape_markdown(cell) for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _summary(manifest: Mapping[str, Any]) -> str:
    contents = manifest.get("contents", {})
    texts = contents.get("texts", {})
    if not contents:
        return "Image-text training data made with pairwright."
    samples, with_image = contents["samples"], contents["with_image"]
    first = count_phrase(samples, "image-text pair" if with_image == samples else "caption")
    if 0 < with_image < samples:
        first += f" ({with_image:,} with an image)"
    held = ", ".join(
        count_phrase(count, name.replace("_", " ").removesuffix("s")) for name, count in texts.items() if count
    )
    lines = [
        first
        + (f", with {held}" if held else "")
        + f". Made with pairwright {escape_markdown(manifest.get('version', ''))}".rstrip()
        + "."
    ]
    having = [
        f"{count:,} ({count / samples:.1%}) have {_CONTENT_PHRASES[name]}"
        for name, count in contents.get("samples_with", {}).items()
        if count
    ]
    lines += [f"Of {samples:,} samples {', '.join(having)}."] if having else []
    rows = [
        (group.replace("_", " "), name, f"{count:,}")
        for group, types in contents.get("types", {}).items()
        for name, count in types.items()
    ]
    return "\n\n".join([*lines, _table(("texts", "type", "count"), rows)] if rows else lines)


def _sources(manifest: Mapping[str, Any]) -> str:
    sources = manifest.get("contents", {}).get("sources", [])
    if not sources:
        return ""
    rows = [
        (s["name"] or "(not named)", f"{s['samples']:,}", s["license"] or "not stated by the source") for s in sources
    ]
    note = "Images and captions remain under the terms of their sources; generated texts are derived from the captions."
    return f"## Sources and licences\n\n{_table(('source', 'samples', 'licence'), rows)}\n\n{note}"


def _stages(manifest: Mapping[str, Any]) -> str:
    stages = manifest.get("stages", {})
    if not stages:
        return ""
    rows = [
        (
            name,
            stage["unit"],
            f"{stage['candidates']:,}",
            f"{stage['kept']:,}",
            _rejected(stage),
        )
        for name, stage in stages.items()
    ]
    table = _table(("stage", "unit", "candidates", "kept", "rejected, by reason"), rows)
    return f"## How it was made\n\nNothing is dropped without a reason: candidates = kept + rejected.\n\n{table}"


def _rejected(stage: Mapping[str, Any]) -> str:
    """Return the reasons of rejected candidates, and what was rejected of kept rows."""
    reasons, parts = list_reasons(stage.get("rejected", {})), describe_rejected_parts(stage.get("facts", {}))
    return "; ".join(filter(None, (reasons or "none", parts and f"of kept rows: {parts}")))


def _makers(manifest: Mapping[str, Any]) -> str:
    makers = manifest.get("contents", {}).get("makers", [])
    if not makers:
        return ""
    names = ("generator", "version", "seed", "model", "prompt")
    rows = [
        (*(maker[name] if maker[name] != "" else "none" for name in names), f"{maker['samples']:,}") for maker in makers
    ]
    return f"## Who wrote the texts\n\n{_table((*names, 'samples'), rows)}"


def _costs(manifest: Mapping[str, Any]) -> str:
    rows = list_cost_rows(manifest)
    note = "All model answers used by the texts, at the prices at that time; answers from the cache were billed once."
    return f"## What models cost\n\n{note}\n\n{_table(COST_COLUMNS, rows)}" if rows else ""


def _oracle(manifest: Mapping[str, Any]) -> str:
    oracle = manifest.get("oracle") or {}
    if not oracle:
        return ""
    rows = [
        (name, f"{row['kept']:,}", f"{row['true_share']:.2%}", f"{row['outside']:,}") for name, row in oracle.items()
    ]
    table = _table(("kept", "judged", "right", "outside the grammar"), rows)
    note = "Judged against the scenes that the images were drawn from: a negative is right when it is false."
    return f"## Checked against the truth\n\n{note} A text outside the grammar counts as wrong.\n\n{table}"


def _versions(manifest: Mapping[str, Any]) -> str:
    increments = manifest.get("increments", [])
    if not increments:
        return ""
    names = ("new", "known", "changed", "removed")
    rows = [
        (each["number"], each["created"], *(f"{each['pairs'][name]:,}" for name in names), f"{len(each['shards']):,}")
        for each in increments
    ]
    table = _table(("version", "made", *(f"{name} pairs" for name in names), "new shards"), rows)
    note = (
        f"Version {manifest['build']['full']} was a full build. Later pairs use its word statistics and "
        "scorers; changed and removed ones stay unchanged until the next full build."
    )
    return f"## Versions\n\n{note}\n\n{table}"


def _audit(manifest: Mapping[str, Any]) -> str:
    audit = manifest.get("audit") or {}
    if not audit:
        return ""
    rows = [
        (name, f"{each['accuracy']:.1%}", f"{each['low']:.1%} to {each['high']:.1%}")
        for name, each in audit["attacks"].items()
    ]
    table = _table(("blind attack", "accuracy", "95% interval"), rows)
    note = (
        f"Accuracy of text-only attacks on the true text, over all {audit['rows']:,} kept hard negatives, held out. "
        f"Verdict: {audit['verdict']}, where {audit['max']:.0%} is allowed in total and in each type."
    )
    worst = [f"- {each['attack']} in {each['of']}: {each['accuracy']:.1%}" for each in audit["breaks"][:5]]
    worst_lines = "\n\nWorst:\n\n" + "\n".join(worst) if worst else ""
    return f"## Audit\n\n{note}\n\n{table}{worst_lines}"


def _loading(manifest: Mapping[str, Any]) -> str:
    shards = manifest.get("shards", {})
    if tables := manifest.get("tables"):
        code = 'from datasets import load_dataset\n\nrows = load_dataset("parquet", data_files="data/train-*.parquet", split="train")'
        return f"## Loading\n\n{count_phrase(tables['rows'], 'row')} in Parquet files.\n\n```python\n{code}\n```"
    if not shards.get("files"):
        return ""
    place = f"{_shard_folder(shards)}/{shards.get('pattern', '*.tar')}"
    if place.startswith("s3://"):  # which webdataset does not open by itself
        place = f"pipe:aws s3 cp '{place}' -"
    size = f"{count_phrase(shards['samples'], 'sample')} in {count_phrase(shards['files'], 'shard')}, {format_size(shards['bytes'])}"
    code = f'import webdataset as wds\n\ndataset = wds.WebDataset("{place}", shardshuffle=False).decode()'
    members = ", ".join(f"`{ext}`" for ext in (shards.get("image_ext"), "txt", "json") if ext)
    return f"## Loading\n\n{size}; each sample holds {members}.\n\n```python\n{code}\n```"


def _shard_folder(shards: Mapping[str, Any]) -> str:
    return str(shards.get("url") or shards.get("folder", "shards"))


def _limits(manifest: Mapping[str, Any]) -> str:
    return "## Known limits\n\n" + "\n".join(f"- {limit}" for limit in list_limits(manifest))


def list_limits(manifest: Mapping[str, Any]) -> list[str]:
    """Return what is known to be wrong or unknown about a dataset, as sentences."""
    contents = manifest.get("contents", {})
    limits = [
        "English only; the texts were generated and checked automatically, not by a person.",
        "Captions are assumed to be true of their images; errors of a source are passed on.",
    ]
    if contents.get("texts", {}).get("hard_negatives"):
        limits.append(
            "A hard negative can be true of its image because of something that no caption mentions. "
            "Refinement balances the scorers it ran with; another text-only model may still find a cue."
        )
    if any(not source["license"] for source in contents.get("sources", [])):
        limits.append("Some sources state no licence: clarify that before you publish.")
    return limits


def _reproduce(manifest: Mapping[str, Any]) -> str:
    parts = []
    for name in ("config", "environment"):
        if manifest.get(name):
            dumped = yaml.safe_dump(redact(manifest[name]), sort_keys=False, allow_unicode=True)
            parts.append(f"{name.capitalize()}:\n\n```yaml\n{dumped.replace('```', '')}```")
    return "## To make it again\n\n" + "\n\n".join(parts) if parts else ""


def front_matter(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of the card with the Hub's keys."""
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
            *([] if manifest.get("tables") else ["webdataset"]),
            *(name.replace("_", "-") for name, count in contents.get("texts", {}).items() if count and name != "turns"),
        ],
    }
    if shards.get("files"):
        path = f"{_shard_folder(shards)}/*.tar"
        front["configs"] = [{"config_name": "default", "data_files": [{"split": "train", "path": path}]}]
        front["dataset_info"] = {"features": hub_features(str(shards.get("image_ext", "")))}
    elif manifest.get("tables"):  # whose Parquet schema declares the features
        path = "data/train-*.parquet"
        front["configs"] = [{"config_name": "default", "data_files": [{"split": "train", "path": path}]}]
    return front


def hub_features(image_ext: str) -> list[dict[str, Any]]:
    """Return the members of a sample in the Hub's type notation; ``image_ext`` is empty for text-only shards."""
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
