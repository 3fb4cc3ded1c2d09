"""The dataset card: Markdown for people, with the metadata block that the Hugging Face Hub reads.

Everything in it comes from the build's manifest: what the dataset holds, where that comes from and under what
licence, how each stage made it (candidates = kept + rejected, with every reason), who wrote the texts, and what is
known not to be good about it. The metadata names the shards and the type of each member, so that
``datasets.load_dataset`` need not guess them.

Manifest members used: ``name``, ``version``, ``created``, ``stages`` (name to unit, candidates, kept, rejected,
seconds), ``contents`` (`contents.survey`), ``shards`` (`shards.shard_summary`), ``config``, ``environment``,
``oracle``, and of a dataset with increments ``build``, ``increments`` and ``audit``. Whatever is missing is left out.
"""

import re
from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import yaml

from pairwright.datasets.redaction import redact
from pairwright.datasets.reports.card_metadata import front_matter
from pairwright.datasets.reports.model_costs import COST_COLUMNS, list_cost_rows

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
    """Return text that Markdown shows as it stands, on one line."""
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
    first = _count_phrase(samples, "image-text pairs" if with_image == samples else "captions")
    if 0 < with_image < samples:
        first += f" ({with_image:,} with an image)"
    held = ", ".join(_count_phrase(count, name.replace("_", " ")) for name, count in texts.items() if count)
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


def _count_phrase(count: int, plural: str) -> str:
    return f"{count:,} {plural.removesuffix('s') if count == 1 else plural}"


def _sources(manifest: Mapping[str, Any]) -> str:
    sources = manifest.get("contents", {}).get("sources", [])
    if not sources:
        return ""
    rows = [
        (s["name"] or "(not named)", f"{s['samples']:,}", s["license"] or "not stated by the source") for s in sources
    ]
    note = "Images and captions stay under the terms of their sources; made texts are derived from the captions."
    return f"## Sources and licences\n\n{_table(('source', 'samples', 'licence'), rows)}\n\n{note}"


def _stages(manifest: Mapping[str, Any]) -> str:
    stages = manifest.get("stages", {})
    if not stages:
        return ""
    rows = [
        (name, stage["unit"], f"{stage['candidates']:,}", f"{stage['kept']:,}", _reasons(stage.get("rejected", {})))
        for name, stage in stages.items()
    ]
    table = _table(("stage", "unit", "candidates", "kept", "rejected, by reason"), rows)
    return f"## How it was made\n\nNothing is dropped without a reason: candidates = kept + rejected.\n\n{table}"


def _reasons(rejected: Mapping[str, int]) -> str:
    ordered = sorted(rejected.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason} {count:,}" for reason, count in ordered if count) or "none"


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
    note = (
        "Every answer that the texts rest on, at the prices of its time; answers taken from a cache were paid for once."
    )
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
        f"Version {manifest['build']['full']} was built whole. Later pairs were made with its word statistics and refined by "
        "its scorers; changed and removed ones stay as they were until the next whole build."
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
        f"How often a rule that sees no image picks the true text, over all {audit['rows']:,} kept hard negatives, held out. "
        f"Verdict: {audit['verdict']}, where {audit['max']:.0%} is allowed in total and in each type."
    )
    worst = [f"- {each['attack']} in {each['of']}: {each['accuracy']:.1%}" for each in audit["breaks"][:5]]
    told = "\n\nWorst:\n\n" + "\n".join(worst) if worst else ""
    return f"## Audit\n\n{note}\n\n{table}{told}"


def _loading(manifest: Mapping[str, Any]) -> str:
    shards = manifest.get("shards", {})
    if not shards.get("files"):
        return ""
    place = f"{shards.get('folder', 'shards')}/{shards.get('pattern', '*.tar')}"
    size = f"{shards['samples']:,} samples in {shards['files']:,} shard{'s' * (shards['files'] > 1)}, {shards['bytes'] / 1e6:,.1f} MB"
    code = f'import webdataset as wds\n\ndataset = wds.WebDataset("{place}", shardshuffle=False).decode()'
    members = ", ".join(f"`{ext}`" for ext in (shards.get("image_ext"), "txt", "json") if ext)
    return f"## Loading\n\n{size}; each sample holds {members}.\n\n```python\n{code}\n```"


def _limits(manifest: Mapping[str, Any]) -> str:
    contents = manifest.get("contents", {})
    limits = [
        "English only; the texts were made and checked by machine, not read by a person.",
        "Captions are taken as true of their images; what a source states wrongly is handed on.",
    ]
    if contents.get("texts", {}).get("hard_negatives"):
        limits.append(
            "A hard negative can be true of its image by something that no caption mentions. "
            "Refinement balances the scorers it was run with; another blind model may still find a cue."
        )
    if any(not source["license"] for source in contents.get("sources", [])):
        limits.append("Some sources state no licence: settle that before you publish.")
    return "## Known limits\n\n" + "\n".join(f"- {limit}" for limit in limits)


def _reproduce(manifest: Mapping[str, Any]) -> str:
    parts = []
    for name in ("config", "environment"):
        if manifest.get(name):
            dumped = yaml.safe_dump(redact(manifest[name]), sort_keys=False, allow_unicode=True)
            parts.append(f"{name.capitalize()}:\n\n```yaml\n{dumped.replace('```', '')}```")
    return "## To make it again\n\n" + "\n\n".join(parts) if parts else ""
