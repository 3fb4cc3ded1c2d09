"""Croissant export: a folder with shards (``data/``), ``samples.parquet``, and ``croissant.json``, which describes both.

The JSON-LD states contents, date and licence, lists each file with its SHA-256, and has two record sets: ``samples``, the
members of a sample's JSON (`sample_schema.py`), and ``images``, by the same key. Fields nest once: for a list of objects,
the members that are texts or numbers are fields. Deeper members (``edit``, ``scores``, ``turns``) are in the files only,
as the description says.

Texts are in a table because readers of Croissant do not parse JSON inside an archive (mlcroissant 1.1 does not).
``mlcroissant`` caches extracted files under a name made from a shard's path only: set a separate ``CROISSANT_CACHE`` for
each dataset read on one machine.
A card (``README.md``) names the shards, so that `datasets` loads the folder.

Source: MLCommons, Croissant Format Specification 1.1.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson

from pairwright.datasets.atomic_files import write_bytes, write_text
from pairwright.datasets.checksums import hash_file
from pairwright.datasets.exports import parquet
from pairwright.datasets.exports.croissant_rai import describe_responsible_ai
from pairwright.datasets.exports.webdataset import describe_export, list_shard_files, write_shard_folder
from pairwright.datasets.exports.writing import ExportOptions, ExportResult
from pairwright.datasets.reports.dataset_card import front_matter, render_card
from pairwright.datasets.shards.sample_schema import SAMPLE_SCHEMA, MemberSchema
from pairwright.datasets.shards.sample_source import SampleSource, open_sample_source

DATA = "data"
TABLE = "samples.parquet"
IMAGE_FILES = "image-files"
SAMPLES, IMAGES = "samples", "images"

_TYPES = {"string": "sc:Text", "int32": "cr:Int32", "int64": "cr:Int64", "float64": "cr:Float64"}
_MEDIA = {"jpg": "image/jpeg", "png": "image/png", "webp": "image/webp"}
_LICENSE = "https://spdx.org/licenses/{}"
_SPDX = {
    "apache-2.0": "Apache-2.0",
    "mit": "MIT",
    "odc-by": "ODC-By-1.0",
    "odbl": "ODbL-1.0",
}

# The context of the specification, which readers compare with.
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "arrayShape": "cr:arrayShape",
    "citeAs": "cr:citeAs",
    "column": "cr:column",
    "conformsTo": "dct:conformsTo",
    "containedIn": "cr:containedIn",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "description": {"@container": "@language"},
    "equivalentProperty": "cr:equivalentProperty",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract",
    "field": "cr:field",
    "fileObject": "cr:fileObject",
    "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet",
    "format": "cr:format",
    "includes": "cr:includes",
    "isArray": "cr:isArray",
    "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath",
    "key": "cr:key",
    "md5": "cr:md5",
    "name": {"@container": "@language"},
    "parentField": "cr:parentField",
    "path": "cr:path",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "recordSet": "cr:recordSet",
    "references": "cr:references",
    "regex": "cr:regex",
    "repeated": "cr:repeated",
    "replace": "cr:replace",
    "samplingRate": "cr:samplingRate",
    "sc": "https://schema.org/",
    "separator": "cr:separator",
    "source": "cr:source",
    "subField": "cr:subField",
    "transform": "cr:transform",
}


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write shards, description and card of ``source`` into the folder ``out``."""
    shards = write_shard_folder(source, out / DATA, options)
    # From the shards, which have their own image names.
    written = open_sample_source(out / DATA) if shards.count else SampleSource(lambda: iter(()))
    parquet.write(written, out / TABLE, replace(options, image_root=None))
    manifest = describe_export(source, shards, out.name)
    files = list_shard_files(shards)
    tars = [path for path in files if path.suffix == ".tar"]
    described = out / "croissant.json"
    write_bytes(described, orjson.dumps(describe_croissant(manifest, out / TABLE, tars), option=orjson.OPT_INDENT_2))
    readme = out / "README.md"
    write_text(readme, render_card(manifest))  # tells `datasets` which files are data
    return ExportResult(shards.count, (described, readme, out / TABLE, *files))


def describe_croissant(manifest: Mapping[str, Any], table: Path, tars: Iterable[Path]) -> dict[str, Any]:
    """Return the JSON-LD of a dataset.

    Args:
        manifest: of its build, with ``contents`` and ``shards``; other missing members are omitted.
        table: the samples without their images, next to the description.
        tars: the shards, in ``data/`` next to it.
    """
    ext = str(manifest["shards"].get("image_ext", ""))
    shards = [_file(tar, f"{DATA}/{tar.name}", "application/x-tar") for tar in tars]
    files = [_file(table, table.name, "application/x-parquet"), *shards]
    if ext:
        files.append(_image_files([{"@id": shard["@id"]} for shard in shards], ext))
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": ["http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"],
        "name": re.sub(r"[^A-Za-z0-9_-]+", "-", str(manifest.get("name", "dataset"))),
        "description": _describe_contents(manifest),
        **_license(manifest),
        **({"datePublished": str(manifest["created"])[:10]} if manifest.get("created") else {}),
        **({"version": f"{manifest['build']['number']}.0.0"} if manifest.get("build") else {}),
        **describe_responsible_ai(manifest),
        "distribution": files,
        "recordSet": [_samples(), *([_images(ext)] if ext else [])],
    }


def _describe_contents(manifest: Mapping[str, Any]) -> str:
    texts = manifest["contents"].get("texts", {})
    held = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in texts.items() if count)
    first = f"{manifest['contents']['samples']:,} captions{' of images' * bool(manifest['contents']['with_image'])}"
    return (
        f"{first}{f', with {held}' if held else ''}. WebDataset shards made with pairwright. "
        "Edits, scores and the turns of conversations are in the files, not among the fields."
    )


def _license(manifest: Mapping[str, Any]) -> dict[str, Any]:
    slug = str(front_matter(manifest).get("license", "unknown"))
    if slug in {"unknown", "other"}:
        return {}
    return {"license": _LICENSE.format(_SPDX.get(slug, slug.upper()))}


def _file(path: Path, url: str, media: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": path.name,
        "name": path.name,
        "contentUrl": url,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": media,
        "sha256": hash_file(path),
    }


def _image_files(inside: list[dict[str, Any]], ext: str) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": IMAGE_FILES,
        "name": IMAGE_FILES,
        "containedIn": inside,
        "encodingFormat": _MEDIA[ext],
        "includes": f"*.{ext}",
    }


def _samples() -> dict[str, Any]:
    about = "Captions with the texts that were made for them."
    return _record_set(SAMPLES, about, [_field(name, shape) for name, shape in SAMPLE_SCHEMA.items()])


def _images(ext: str) -> dict[str, Any]:
    named = {"extract": {"fileProperty": "filename"}, "transform": {"regex": rf"^(.+)\.{ext}$"}}
    fields = [
        _leaf(f"{IMAGES}/key", "key", "sc:Text", {"fileSet": {"@id": IMAGE_FILES}, **named}),
        _leaf(
            f"{IMAGES}/image",
            "image",
            "sc:ImageObject",
            {"fileSet": {"@id": IMAGE_FILES}, "extract": {"fileProperty": "content"}},
        ),
    ]
    return _record_set(IMAGES, f"The image of each sample, by the key of `{SAMPLES}`.", fields)


def _record_set(name: str, about: str, fields: list[dict[str, Any]]) -> dict[str, Any]:
    key = {"@id": f"{name}/key"}
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "description": about, "key": key, "field": fields}


def _field(name: str, shape: MemberSchema) -> dict[str, Any]:
    place = f"{SAMPLES}/{name}"
    if isinstance(shape, str):
        return _leaf(place, name, _TYPES[shape], _column(name))
    several = isinstance(shape, list)
    members = shape[0] if isinstance(shape, list) else shape
    assert isinstance(members, dict)  # `SAMPLE_SCHEMA` has no list of plain values at its top level
    # A member is read from the whole column; for a list, from each of its items.
    inner = [
        _leaf(f"{place}/{each}", each, _TYPES[kind], _column(name, each))
        for each, kind in members.items()
        if isinstance(kind, str)
    ]
    return {
        "@type": "cr:Field",
        "@id": place,
        "name": name,
        **({"repeated": True} if several else {}),
        "subField": inner,
    }


def _leaf(place: str, name: str, kind: str, source: dict[str, Any]) -> dict[str, Any]:
    return {"@type": "cr:Field", "@id": place, "name": name, "dataType": kind, "source": source}


def _column(name: str, member: str = "") -> dict[str, Any]:
    read = {"fileObject": {"@id": TABLE}, "extract": {"column": name}}
    return {**read, "transform": {"jsonPath": member}} if member else read
