"""Detection of the format of a folder by its files.

In this order: tars, an embedding folder of clip-retrieval, Parquet, JSON Lines, a table of captions that Hugging Face's
``imagefolder`` reads (``metadata.csv``), images, CSV, TSV, two text files line by line. Folders that other tools write and that have to be converted,
or whose subfolders have the data, are refused with what to give or to run instead.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pairwright.datasets.build_manifest import is_build
from pairwright.datasets.directories import walk_files
from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import IMAGE_SUFFIXES, PILLOW_FORMATS
from pairwright.datasets.images.loading import UNSUPPORTED_SUFFIXES as UNREAD
from pairwright.datasets.option_names import OptionNames
from pairwright.datasets.readers.image_folder import SIDECAR_SUFFIXES
from pairwright.datasets.readers.parallel_lines import find_parallel_files, unequal_files_error
from pairwright.datasets.readers.unread_files import arrow_conversion, find_unread_kind, python_conversion

SAVED_SPLITS = "dataset_dict.json"  # of Hugging Face's `DatasetDict.save_to_disk`
_METADATA = ("metadata.csv", "metadata.jsonl", "metadata.parquet")
_SHOWN_FOLDERS = 10


def guess_folder(folder: Path, option_names: OptionNames, match_suffix: Callable[[str], str]) -> str:
    """Return the format of a folder.

    Args:
        folder: an existing one.
        option_names: how messages name options.
        match_suffix: returns the format of a file name in lower case, empty for an unknown ending.

    Raises:
        InputError: the format cannot be detected, or is not read.
    """
    entries = _list_entries(folder)
    formats = {match_suffix(entry.name.lower()) for entry in entries if not entry.is_dir()}
    if "webdataset" in formats:
        if _has_captioned_image(entries):  # one of both would be ignored
            fix = f"Move the tars to a folder of their own, or give {option_names.setting('format', 'images')}."
            raise InputError("both tars and images with captions in the folder", where=str(folder), fix=fix)
        return "webdataset"
    if (folder / "metadata").is_dir() and any((folder / kind).is_dir() for kind in ("img_emb", "text_emb")):
        return "clip-retrieval"
    # img2dataset's plain files: each folder of images has a table of the same name.
    tables = [entry for entry in entries if entry.suffix == ".parquet" and not entry.with_suffix("").is_dir()]
    ranked = (
        (bool(tables), "parquet"),
        ("jsonl" in formats, "jsonl"),
        (any(entry.name == "metadata.csv" for entry in entries), "csv"),
        (_has_image(folder), "images"),
        ("csv" in formats, "csv"),
        ("tsv" in formats, "tsv"),
    )
    found = next((format_ for is_there, format_ in ranked if is_there), "")
    if not found and find_parallel_files(folder):
        return "parallel-lines"
    if found == "images":
        _refuse_captions_in_subfolders(folder, entries)
    if not found:
        raise _unknown_folder(folder, entries, match_suffix)
    return found


def _list_entries(folder: Path) -> list[Path]:
    try:
        return sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    except OSError as error:
        raise InputError(
            f"cannot be listed ({error.strerror})", where=str(folder), fix="Check its permissions."
        ) from None


def _refuse_captions_in_subfolders(folder: Path, entries: Sequence[Path]) -> None:
    """Refuse an ``imagefolder`` with a table of captions per split: its images would seem to have no captions."""
    for name in _METADATA:
        splits = [entry.name for entry in entries if (entry / name).is_file()]
        if splits:
            what = f"the captions are in {name} of its folders {', '.join(splits[:_SHOWN_FOLDERS])}"
            choice = f"{{{','.join(splits)}}}" if len(splits) > 1 else splits[0]
            raise InputError(what, where=str(folder), fix=f"Give these files: {folder / choice / name}.")


def _unknown_folder(folder: Path, entries: Sequence[Path], match_suffix: Callable[[str], str]) -> InputError:
    arrow = [entry for entry in entries if entry.suffix == ".arrow"]
    if arrow or (folder / SAVED_SPLITS).is_file():
        return _arrow_error(folder, arrow)
    fix = f"Give the folder with the data. Images that are read: {', '.join(PILLOW_FORMATS)}."
    if is_build(folder) and (folder / "shards").is_dir():
        fix = f"It is a build: give its shards, {folder / 'shards'}, or its config's input."
        return InputError("a build, not a dataset to read", where=str(folder), fix=fix)
    if unequal := unequal_files_error(folder):
        return unequal
    inner = [entry for entry in entries if entry.is_dir() and any(match_suffix(path.name) for path in entry.iterdir())]
    if inner:
        fix = f"Give the folder with the data: {' or '.join(map(str, inner[:_SHOWN_FOLDERS]))}."
        if len(inner) > 1:
            fix += f" All: {folder}/{{{','.join(entry.name for entry in inner)}}}"
    elif files := _list_json_files(entries):
        fix = f"Rows in files of their own are joined by: jq -c . {files[0].parent}/*.json > rows.jsonl"
        if len(files) <= _SHOWN_FOLDERS:  # annotations of a whole dataset
            fix = f"Give the file that has the captions: {' or '.join(map(str, files))}. {fix}"
    unread = {kind.about: (entry, kind) for entry in reversed(entries) if (kind := find_unread_kind(entry))}
    fix = " ".join([fix, *(f"{entry.name} is {kind.about}: {kind.convert(entry)}" for entry, kind in unread.values())])
    what = f"no tars, Parquet or JSON Lines files, embeddings or images in the folder ({_list_endings(entries)})"
    return InputError(what, where=str(folder), fix=fix)


def _list_json_files(entries: Sequence[Path]) -> list[Path]:
    """Return the JSON files among the entries of a folder, else those of the first subfolder with any (``annotations``)."""
    folders = [_list_entries(entry) for entry in entries if entry.is_dir()]
    found = ([entry for entry in group if entry.suffix == ".json"] for group in (entries, *folders))
    return next((files for files in found if files), [])


def _arrow_error(folder: Path, arrow: Sequence[Path]) -> InputError:
    """Return the error for what `save_to_disk`, or the cache of `load_dataset`, has written."""
    call = f"load_from_disk('{folder}')"
    if splits := _saved_splits(folder):
        name = splits[0]
        conversion = python_conversion("load_from_disk", f"{call}['{name}']", f"{name}.parquet")
        what = f"Arrow files of Hugging Face's datasets, with {_list_splits(splits)}"
        fix = f"Convert {'it' if len(splits) == 1 else 'each'}: {conversion}."
        return InputError(what, where=str(folder), fix=fix)
    if (folder / "state.json").is_file():
        conversion = python_conversion("load_from_disk", call)
    else:
        conversion = arrow_conversion(arrow[0])
    return InputError("Arrow files of Hugging Face's datasets", where=str(folder), fix=f"Convert them: {conversion}.")


def _saved_splits(folder: Path) -> list[str]:
    """Return the splits of a saved `DatasetDict`, train first; empty for another folder.

    They are those that its file lists, or else its subfolders.
    """
    if not (folder / SAVED_SPLITS).is_file():
        return []
    listed: object = None
    with suppress(OSError, ValueError, AttributeError):
        listed = json.loads((folder / SAVED_SPLITS).read_bytes()).get("splits")
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    names = names or [entry.name for entry in _list_entries(folder) if entry.is_dir()] or ["train"]
    return sorted(names, key=lambda name: name != "train")


def _list_splits(splits: Sequence[str]) -> str:
    return f"the split{'s' if len(splits) > 1 else ''} {', '.join(splits)}"


def _list_endings(entries: Sequence[Path]) -> str:
    kinds = Counter("folders" if entry.is_dir() else entry.suffix.lower() or "others" for entry in entries)
    most = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))[:3]
    return ", ".join(f"{kind} {count:,}" for kind, count in most) or "it is empty"


def _has_captioned_image(entries: Sequence[Path]) -> bool:
    captioned = {entry.stem for entry in entries if entry.suffix.lower() in SIDECAR_SUFFIXES}
    return any(entry.suffix.lower() in IMAGE_SUFFIXES and entry.stem in captioned for entry in entries)


def _has_image(folder: Path) -> bool:
    return any(path.suffix.lower() in IMAGE_SUFFIXES | UNREAD for path in walk_files(folder) if path.name[0] != ".")
