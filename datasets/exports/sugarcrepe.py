"""SugarCrepe JSON export: a caption and its hard negative per row, in the layout of the benchmark.

A file is one object, ``{"0": {"filename", "caption", "negative_caption"}, "1": ...}``, indented by four. If the output
ends in ``.json`` it has all rows; otherwise it is a folder with one file per type: ``replace_obj.json``, ``swap_att.json``
and so on. As this is a benchmark, training-only negatives (SHUFFLE) are omitted. Pairs without a negative are counted. ``caption`` is the text that the negative was made from. Text-only pairs use their source id as ``filename``.

The benchmark identifies the type of a row by its file name. In one file with several types, rows have it in ``form`` and
``target``, which loaders of the three fields ignore.
"""

import textwrap
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import orjson

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.exports.writing import (
    ExportOptions,
    ExportResult,
    ImageNames,
    encode_json,
    find_positive,
    list_negatives,
)
from pairwright.datasets.records import TRAINING_ONLY_FORMS, Annotation
from pairwright.datasets.shards.sample_source import SampleSource

_SHORT = {"object": "obj", "attribute": "att", "relation": "rel"}


def sugarcrepe_type(annotation: Annotation) -> str:
    """Return the benchmark's name of a type, such as ``replace_obj``; ``other`` without a form."""
    parts = (annotation.form or "other", _SHORT.get(annotation.target, annotation.target))
    return "_".join(part for part in parts if part)


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write the hard negatives of ``source`` to the file ``out`` (``.json``) or into the folder ``out``."""
    counts: dict[Path, int] = {}
    names = ImageNames(options)
    without: list[str] = []
    with ExitStack() as stack:
        handles: dict[Path, BinaryIO] = {}
        for path, row in _rows(source, out, names, without):
            if path not in handles:
                handles[path] = _open_file(path, stack)
            counts[path] = counts.get(path, -1) + 1
            body = textwrap.indent(
                encode_json(row, orjson.OPT_INDENT_2).decode().replace('\n  "', '\n    "'), "    "
            ).lstrip()
            handles[path].write(f'{"," if counts[path] else ""}\n    "{counts[path]}": {body}'.encode())
        if out.suffix == ".json" and not handles:
            _open_file(out, stack)
    files = tuple(sorted(counts)) or ((out,) if out.suffix == ".json" else ())
    details = {"without_negatives": len(without), **names.details()}
    return ExportResult(sum(counts.values()) + len(counts), files, details)


def _open_file(path: Path, stack: ExitStack) -> BinaryIO:
    temporary = stack.enter_context(replace_atomically(path))
    handle = stack.enter_context(temporary.open("wb"))
    handle.write(b"{")
    stack.callback(handle.write, b"\n}")
    return handle


def _rows(
    source: SampleSource, out: Path, names: ImageNames, without: list[str]
) -> Iterator[tuple[Path, dict[str, str]]]:
    mixed = out.suffix == ".json" and _holds_several_types(source)
    for sample in source.samples():
        found = [row for row in list_negatives(sample) if row.form not in TRAINING_ONLY_FORMS]
        if not found:
            without.append(sample.pair.key)
            continue
        filename = names.file_name(sample)
        for annotation in found:
            path = out if out.suffix == ".json" else out / f"{sugarcrepe_type(annotation)}.json"
            row = {
                "filename": filename,
                "caption": find_positive(sample, annotation),
                "negative_caption": annotation.text,
            }
            if mixed:
                row |= {"form": annotation.form, "target": annotation.target}
            yield path, row


def _holds_several_types(source: SampleSource) -> bool:
    found: set[str] = set()
    for sample in source.samples():
        found.update(sugarcrepe_type(row) for row in list_negatives(sample) if row.form not in TRAINING_ONLY_FORMS)
        if len(found) > 1:
            return True
    return False
