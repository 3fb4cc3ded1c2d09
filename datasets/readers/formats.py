"""Which format an input is in, and which files it means.

An input is a file, a folder, or a brace pattern (``shards/{00000..00009}.tar``, ``{train,val}.jsonl``). A file
tells its format by its ending, ``.json`` by what is in it (JSON Lines go by that name too), a folder by what it holds: tars, then
an embedding folder, Parquet, JSON Lines, images. Files of our own other formats (LLaVA, SugarCrepe, COCO
instances) are recognised and refused: they are not sources of pairs.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from pairwright.datasets.directories import walk_files
from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import IMAGE_SUFFIXES, is_url
from pairwright.datasets.images.unsupported_formats import UNSUPPORTED_SUFFIXES as UNREAD
from pairwright.datasets.option_names import COMMAND_LINE, OptionNames
from pairwright.datasets.readers.clip_retrieval import read_clip_retrieval
from pairwright.datasets.readers.coco import read_coco
from pairwright.datasets.readers.columns import COLUMN_NAMES_BY_FIELD
from pairwright.datasets.readers.csv_tsv import read_csv, read_tsv
from pairwright.datasets.readers.image_folder import read_image_folder
from pairwright.datasets.readers.input_rows import InputRowIterator
from pairwright.datasets.readers.json_list import read_json_list
from pairwright.datasets.readers.jsonl import read_jsonl
from pairwright.datasets.readers.parquet import read_parquet
from pairwright.datasets.readers.text_files import iter_lines, parse_json, read_text_bytes
from pairwright.datasets.readers.webdataset import read_webdataset
from pairwright.datasets.rejects import RejectError
from pairwright.datasets.remote.local_copies import fetch_local_copy
from pairwright.datasets.suggestions import require_known

FORMAT_READERS: Mapping[str, Callable[[Path], InputRowIterator]] = {
    "coco": read_coco,
    "json": read_json_list,
    "jsonl": read_jsonl,
    "csv": read_csv,
    "tsv": read_tsv,
    "parquet": read_parquet,
    "images": read_image_folder,
    "webdataset": read_webdataset,
    "clip-retrieval": read_clip_retrieval,
}
FORMAT_DESCRIPTIONS: Mapping[str, str] = {
    "coco": "COCO captions JSON, with COCO instances for boxes",
    "json": "a JSON list of rows",
    "jsonl": "one JSON object a line",
    "csv": "comma-separated columns",
    "tsv": "tab-separated columns",
    "parquet": "Parquet files, LAION's and Hugging Face's among them",
    "images": "a folder of images with .txt beside them",
    "webdataset": "tars of jpg, txt and json, as img2dataset writes them",
    "clip-retrieval": "a folder of embeddings and metadata",
}
FIXED_COLUMN_FORMATS = frozenset({"csv", "tsv", "parquet", "clip-retrieval"})
FOLDER_FORMATS = frozenset({"images", "clip-retrieval"})
NON_PAIR_FORMATS: Mapping[str, tuple[str, str]] = {
    "llava": ("LLaVA conversations", "`pairwright mix`, `export` and `verify` take them; here, give captions."),
    "sugarcrepe": (
        "SugarCrepe candidates (captions with negatives)",
        "`pairwright refine`, `audit` and `validate` take them; here, give captions.",
    ),
    "coco-instances": ("COCO instances (boxes)", "Give the captions file, and this one as instances."),
}
"""Formats that are recognised and hold no pairs: what they are, and what to do."""
FORMAT_BY_SUFFIX = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".tar": "webdataset",
}
ARCHIVE_SUFFIXES = frozenset({".gz", ".bz2", ".xz", ".zst", ".zip", ".7z"})
LINE_FORMATS = frozenset({"jsonl", "csv", "tsv"})  # and .json, which is looked into; these may be gzipped
MAX_PATTERN_NAMES = 1_000_000
_PREVIEW_BYTES = 200


@dataclass(frozen=True, slots=True)
class LocatedInput:
    """An input found: its format, its files in order, the folder of its relative paths, its default name."""

    format: str
    files: tuple[Path, ...]
    root: Path
    name: str


def guess_format(path: str | Path, wording: OptionNames = COMMAND_LINE) -> str:
    """Return the format of a file or folder: a name of `FORMAT_READERS` or of `NON_PAIR_FORMATS`.

    Raises:
        InputError: when there is no such file, or its format cannot be told.
    """
    path = Path(path)
    if path.is_dir():
        return _guess_folder(path)
    if not path.exists():
        raise _missing_path_error(path)
    name = path.name.lower()
    plain = name.removesuffix(".gz")
    if plain.endswith(".json"):
        return _guess_json(path)
    format_ = FORMAT_BY_SUFFIX.get(Path(plain).suffix, "")
    if format_ and (plain == name or format_ in LINE_FORMATS):
        return format_
    if path.suffix.lower() in ARCHIVE_SUFFIXES:
        raise InputError(
            "a packed file",
            where=str(path),
            fix="Unpack it first. As they are, gzipped .json, .jsonl, .csv and .tsv files are read.",
        )
    if path.suffix.lower() == ".txt":
        raise _describe_text_file(path, wording)
    raise InputError(
        "the format cannot be told from the name",
        where=str(path),
        fix="Name it .jsonl, .csv, .tsv or .parquet."
        if wording.bare
        else f"Name it: {wording.choice('format', FORMAT_READERS)}.",
    )


def _describe_text_file(path: Path, wording: OptionNames) -> InputError:
    """Return what is said of a .txt: it may be a table under another name (Flickr8k's), or lines without a header."""
    _, line = next(iter_lines(path), (0, b""))
    words = line.decode("utf-8", "replace").strip()
    format_ = "csv" if "," in words else "tsv"
    names = [name.strip(' "') for name in words.split("," if format_ == "csv" else "\t")]
    if any(name in rank for rank in COLUMN_NAMES_BY_FIELD["caption"] for name in names):
        told = f"a table under the name .txt ({', '.join(names)})"
        return InputError(told, where=str(path), fix=wording.named(format_))
    header = "image, a tab, and caption" if "\t" in words else "caption"
    fix = f"Put a header above them, the line: {header}; and name the file .tsv."
    return InputError("lines of text, without names of columns", where=str(path), fix=fix)


def _missing_path_error(path: Path) -> InputError:
    starred = any(sign in path.name for sign in "*?")
    fix = "Patterns are written {00000..00009} or {a,b}, not with * or ?; or name the folder." if starred else ""
    return InputError("no such file or folder", where=str(path), fix=fix or "Check the path.")


def _guess_folder(folder: Path) -> str:
    try:
        entries = [entry for entry in folder.iterdir() if not entry.name.startswith(".")]
    except OSError as error:
        raise InputError(f"cannot be listed ({error.strerror})", where=str(folder), fix="Check the rights.") from None
    endings = {entry.suffix.lower() for entry in entries}
    if ".tar" in endings:
        return "webdataset"
    if (folder / "metadata").is_dir() and any((folder / kind).is_dir() for kind in ("img_emb", "text_emb")):
        return "clip-retrieval"
    # img2dataset's plain files: each folder of images has a table of the same name beside it.
    tables = [entry for entry in entries if entry.suffix == ".parquet" and not entry.with_suffix("").is_dir()]
    for found, format_ in ((bool(tables), "parquet"), (".jsonl" in endings, "jsonl"), (_has_image(folder), "images")):
        if found:
            return format_
    raise InputError(
        "the folder holds no tars, Parquet or JSON Lines files, embeddings or images",
        where=str(folder),
        fix="Name the folder that does.",
    )


def _has_image(folder: Path) -> bool:
    return any(path.suffix.lower() in IMAGE_SUFFIXES | UNREAD for path in walk_files(folder) if path.name[0] != ".")


def _guess_json(path: Path) -> str:
    try:
        data = parse_json(read_text_bytes(path))
    except RejectError as flaw:
        if _begins_with_row(path):
            return "jsonl"
        raise InputError(f"{flaw.reason}: {flaw.detail}", where=str(path), fix="Correct the file.") from None
    if isinstance(data, dict) and isinstance(data.get("images"), list) and isinstance(data.get("annotations"), list):
        return "coco" if not data["annotations"] or _has(data["annotations"], "caption") else "coco-instances"
    if isinstance(data, list):
        return "llava" if _has(data, "conversations") else "json"
    if isinstance(data, dict) and _has(list(data.values()), "negative_caption"):
        return "sugarcrepe"
    fix = "COCO has `images` and `annotations`, a list each; else give a list of rows."
    raise InputError(f"JSON of no known kind: {_describe_json(data)}", where=str(path), fix=fix)


def _describe_json(data: Any) -> str:
    """Return what stands in a JSON file, in a few words."""
    if not isinstance(data, dict):
        return "no list and no object"
    if not data:
        return "an empty object"
    of_coco = [name for name in ("images", "annotations") if name in data]
    lacks = [name for name in ("images", "annotations") if not isinstance(data.get(name), list)]
    if of_coco:
        return f"it has {' and '.join(of_coco)}, but no list {' and no list '.join(lacks)}"
    return f"an object with {', '.join(list(data)[:5])[:100]}"


def _begins_with_row(path: Path) -> bool:
    """Say whether the first line is an object of its own: JSON Lines under the name .json."""
    _, line = next(iter_lines(path), (0, b""))
    try:
        return isinstance(parse_json(line), dict)
    except RejectError:
        return False


def _has(items: list[Any], name: str) -> bool:
    return any(isinstance(item, dict) and name in item for item in items[:100])


def locate_input(written: str, format_: str = "", wording: OptionNames = COMMAND_LINE) -> LocatedInput:
    """Find the files of an input.

    Args:
        written: path or brace pattern, or a URL of one in a store (`remote.py`), which is copied here first.
        format_: a name of `FORMAT_READERS`; empty to guess.
        wording: of whoever asks.

    Raises:
        UsageError: for a format that does not exist.
        InputError: when files are missing, or the format holds no pairs.
    """
    if format_ and format_ not in NON_PAIR_FORMATS:
        require_known(f"{wording.option('format')}: no such format:", [format_], FORMAT_READERS)
    written = fetch_local_copy(written)
    if is_url(written) or written.startswith("pipe:"):
        raise InputError("not a local path", where=written, fix="Download it first.")
    if "{" in written and not Path(written).exists():
        files = tuple(map(Path, expand_braces(written)))
        missing = [file for file in files if not file.exists()]
        if missing:
            what = f"{len(missing)} of {len(files)} files of the pattern are missing"
            raise InputError(what, where=str(missing[0]), fix="Correct the pattern.")
        name = files[0].absolute().parent.name
    else:
        files, name = (Path(written),), _stem(Path(written).absolute())
    _reject_placeholder_file(files[0])
    format_ = format_ or guess_format(files[0], wording)
    if format_ in NON_PAIR_FORMATS:
        what, fix = NON_PAIR_FORMATS[format_]
        raise InputError(f"not a source of pairs: {what}", where=written, fix=fix)
    root = files[0].absolute() if files[0].is_dir() else files[0].absolute().parent
    return LocatedInput(format_, tuple(_expand_folders(files, format_)), root, name)


def _reject_placeholder_file(path: Path) -> None:
    """Refuse what a download leaves in a file's place: a pointer to it, or the page that says why it did not come."""
    if not path.is_file():
        return
    try:
        with path.open("rb") as handle:
            head = handle.read(_PREVIEW_BYTES).lstrip().lower()
    except OSError:  # its reader tells
        return
    if head.startswith(b"version https://git-lfs"):
        raise InputError("a pointer of Git LFS, not the file itself", where=str(path), fix="Fetch it: git lfs pull.")
    if head.startswith((b"<!doctype html", b"<html")):
        raise InputError("a web page, not data", where=str(path), fix="Look at it, and download the file again.")


def _stem(path: Path) -> str:
    return path.name.removesuffix(".gz").rpartition(".")[0] or path.name if path.is_file() else path.name


def _expand_folders(files: tuple[Path, ...], format_: str) -> Iterator[Path]:
    """Yield files, folders replaced by the files of the format that they hold."""
    for file in files:
        if not file.exists():
            raise _missing_path_error(file)
        if not os.access(file, os.R_OK):
            raise InputError("may not be read", where=str(file), fix="Check its rights: ls -l tells them.")
        if file.is_dir() == (format_ in FOLDER_FORMATS):
            yield file
        elif file.is_dir():
            endings = tuple(ending for ending, name in FORMAT_BY_SUFFIX.items() if name == format_)
            endings += tuple(f"{ending}.gz" for ending in endings if format_ in LINE_FORMATS)
            inner = sorted(path for path in file.iterdir() if path.name.endswith(endings) and path.name[0] != ".")
            if not endings or not inner:
                raise InputError(f"a folder without {format_} files", where=str(file), fix="Name a file.")
            yield from inner
        else:
            raise InputError(f"a file, where {format_} is a folder", where=str(file), fix="Name the folder.")


def expand_braces(pattern: str) -> Iterator[str]:
    """Yield the names of a brace pattern: ``{00..12}`` counts with leading zeros, ``{a,b}`` lists.

    Raises:
        InputError: for more than `MAX_PATTERN_NAMES` names, or a pattern of another kind.
    """
    pieces = re.split(r"\{([^{}]*)\}", pattern)
    choices = [[piece] if index % 2 == 0 else _expand_group(piece, pattern) for index, piece in enumerate(pieces)]
    total = 1
    for choice in choices:
        total *= len(choice)
    if total > MAX_PATTERN_NAMES:
        raise InputError(f"{total} names in one pattern", where=pattern, fix="Split the pattern.")
    return map("".join, product(*choices))


def _expand_group(inner: str, pattern: str) -> list[str]:
    counted = re.fullmatch(r"(\d{1,12})\.\.(\d{1,12})", inner)
    if counted:
        first, last = counted.groups()
        if int(first) > int(last) or int(last) - int(first) > MAX_PATTERN_NAMES:
            raise InputError(f"{{{inner}}} does not count up", where=pattern, fix="Write {00000..00009}.")
        return [f"{number:0{len(first)}d}" for number in range(int(first), int(last) + 1)]
    if "," in inner:
        return inner.split(",")
    raise InputError(f"{{{inner}}} is no pattern", where=pattern, fix="Write {00000..00009} or {a,b}.")
