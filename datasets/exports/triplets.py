"""Triplets JSONL: ``image``, ``instruction``, ``output``, for embeddings that depend on an instruction (FocalLens).

Every question and answer of a conversation is one line on the same image. Lines of one image stand together, so that a
batch can be filled with several instructions on one picture and the model has to tell them apart.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pairwright.datasets.exports.source import Source
from pairwright.datasets.exports.writing import (
    Exported,
    ExportOptions,
    ImageNames,
    conversations,
    exchanges,
    write_json_lines,
)


def write(source: Source, out: Path, options: ExportOptions) -> Exported:
    """Write every exchange of ``source`` to the JSONL file ``out``."""
    return write_json_lines(_rows(source, options), out)


def _rows(source: Source, options: ExportOptions) -> Iterator[dict[str, Any]]:
    names = ImageNames(options)
    for sample in source.samples():
        found = conversations(sample)
        image = names.name(sample) if found else ""
        for annotation in found:
            for instruction, output in exchanges(annotation.turns):
                yield {"image": image, "instruction": instruction, "output": output}
