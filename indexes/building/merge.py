"""Merging of index folders with the same encoder, without rebuilding.

Parts never change, so files become hard links to those of the merged folders where the file system allows, else copies.
"""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pairwright.datasets.atomic_files import link_or_copy
from pairwright.datasets.errors import UsageError
from pairwright.indexes.building.build import open_part_keys
from pairwright.indexes.building.pair_keys import check_unique_keys
from pairwright.indexes.hnsw.index_folder import lock_index, part_name, prepare_folder
from pairwright.indexes.hnsw.metadata import (
    PAIRS_FOLDER,
    FileDigests,
    IndexInfo,
    PartInfo,
    read_metadata,
    with_seconds,
    write_metadata,
)


@lock_index
def merge_indexes(folders: Sequence[Path], directory: Path) -> IndexInfo:
    """Create an index in ``directory`` from the parts of ``folders``, in their order.

    Their options may differ; additions to the merged index use those of the first.

    Raises:
        UsageError: if the indexes differ in encoder, vector length, modalities, kept pairs, or kind (graphs and ivfpq);
            or if ``directory`` is one of them.
        InputError: if a key is in two of them.
        StorageError: if one is incomplete.
        OSError: if the files cannot be written.
    """
    started = time.perf_counter()
    infos = [read_metadata(folder) for folder in folders]
    _check_compatible(folders, infos, directory)
    for modality in infos[0].modalities:
        check_unique_keys(
            [
                keys
                for folder, info in zip(folders, infos, strict=True)
                for keys in open_part_keys(folder, info.parts_of(modality))
            ]
        )
    prepare_folder(directory)
    parts: list[PartInfo] = []
    files: FileDigests = {}
    for folder, info in zip(folders, infos, strict=True):
        names = _new_names(info, parts, files)
        parts += [replace(part, name=names[part.name]) for part in info.parts]
        for name, file in info.files.items():
            head, _, rest = name.partition("/")
            target = names.get(name) or (f"{names[head]}/{rest}" if rest else name)
            if target not in files:
                link_or_copy(folder / name, directory / target)
                files[target] = file
    merged = replace(
        infos[0],
        parts=tuple(sorted(parts, key=lambda part: (infos[0].modalities.index(part.modality), part.name))),
        pairs=sum(info.pairs for info in infos),
        rejected=dict(sorted(sum((Counter(info.rejected) for info in infos), Counter()).items())),
        why=f"parts of {len(infos)} indexes, stored as they were",
        files=files,
        versions={"faiss": ", ".join(sorted({info.versions["faiss"] for info in infos}))},
    )
    write_metadata(directory, merged)
    return with_seconds(merged, time.perf_counter() - started)


def _new_names(info: IndexInfo, parts: Sequence[PartInfo], files: FileDigests) -> dict[str, str]:
    """Return new names for the parts and pair files of an index, numbered after those merged before."""
    names: dict[str, str] = {}
    for modality in info.modalities:
        offset = sum(part.modality == modality for part in parts)
        names |= {part.name: part_name(modality, offset + n) for n, part in enumerate(info.parts_of(modality))}
    offset = sum(name.startswith(f"{PAIRS_FOLDER}/") for name in files)
    return names | {name: f"{PAIRS_FOLDER}/{offset + n:05d}.parquet" for n, name in enumerate(info.pairs_files)}


def _check_compatible(folders: Sequence[Path], infos: Sequence[IndexInfo], directory: Path) -> None:
    if not infos:
        raise UsageError("no indexes to merge.")
    if directory.resolve() in [folder.resolve() for folder in folders]:
        raise UsageError(f"{directory}: is one of the indexes to merge. Choose a new folder.")
    first = infos[0]
    for folder, info in zip(folders[1:], infos[1:], strict=True):
        for what, mine, other in (
            ("encoder", first.encoder, info.encoder),
            ("length of vectors", first.dim, info.dim),
            ("modalities", first.modalities, info.modalities),
            ("keeping of pairs", bool(first.pairs_files), bool(info.pairs_files)),
        ):
            if mine != other:
                raise UsageError(
                    f"{folder}: its {what} differs from that of {folders[0]}."
                    f" Build it with --encoder-from {folders[0]} and the same options."
                )
    kinds = {part.kind for info in infos for part in info.parts} - {"flat"}
    if len(kinds) > 1:
        raise UsageError(
            "HNSW graphs and ivfpq cannot be merged: their search efforts differ in meaning. Build with one storage."
        )
