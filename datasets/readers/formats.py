"""Registry of input formats, and detection of an input's format and files.

An input is a file, a folder, or a brace pattern (``shards/{00000..00009}.tar``, ``{train,val}.jsonl``). The format of a
file is detected by its ending, of a ``.json`` by its content (JSON Lines may have that ending too), of a ``.txt`` or
``.token`` by its first line, of a folder by its files (`folder_formats.py`). Formats that pairwright reads elsewhere (LLaVA,
SugarCrepe, COCO instances) are recognised and refused: they are not sources of pairs.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import Any

from pairwright.datasets.brace_patterns import expand_braces
from pairwright.datasets.directories import folder_of_input
from pairwright.datasets.errors import InputError
from pairwright.datasets.images.loading import is_url
from pairwright.datasets.option_names import COMMAND_LINE, OptionNames
from pairwright.datasets.plugins import PluginRegistry, iterate_plugin
from pairwright.datasets.readers.clip_retrieval import read_clip_retrieval
from pairwright.datasets.readers.coco import read_coco
from pairwright.datasets.readers.columns import COLUMN_NAMES_BY_FIELD, AmbiguousColumnsError, resolve_columns
from pairwright.datasets.readers.csv_tsv import guess_table, read_csv, read_tsv
from pairwright.datasets.readers.folder_formats import guess_folder
from pairwright.datasets.readers.image_folder import read_image_folder
from pairwright.datasets.readers.input_rows import InputRow, Reader
from pairwright.datasets.readers.json_list import read_first_items, read_json_list
from pairwright.datasets.readers.json_object import has_rows, read_json_object
from pairwright.datasets.readers.jsonl import read_jsonl
from pairwright.datasets.readers.known_layouts import FIRST_ANSWER
from pairwright.datasets.readers.parallel_lines import find_parallel_files, read_parallel_lines
from pairwright.datasets.readers.parquet import read_parquet
from pairwright.datasets.readers.stored_inputs import list_in_place
from pairwright.datasets.readers.text_files import iter_lines, parse_json, read_text_bytes, strip_compression
from pairwright.datasets.readers.unread_files import find_unread_kind
from pairwright.datasets.readers.webdataset import read_webdataset
from pairwright.datasets.rejects import Reject, RejectError
from pairwright.datasets.remote.local_copies import fetch_local_copy
from pairwright.datasets.remote.object_store import is_remote
from pairwright.datasets.remote.store_path import to_path
from pairwright.datasets.suggestions import require_known


@dataclass(frozen=True, slots=True)
class NonPairFormat:
    """A recognised format without pairs: description, what to do with it, and how it is recognised.

    ``rows`` is the reader of its rows, if these are pairs as soon as the user names the column of the caption.
    """

    name: str
    about: str
    fix: str
    sniff_json: Callable[[Any], bool]
    rows: str = ""

    def advice(self, option_names: OptionNames) -> str:
        """Return what to do with a file of this format, in a sentence or two."""
        if not self.rows or option_names.no_options:
            return self.fix
        return f"{self.fix} If the first answer of each row is one: {option_names.column('caption', FIRST_ANSWER)}."


_SNIFFED_ITEMS = 100  # of a list


def _is_coco(data: Any) -> bool:
    return isinstance(data, dict) and all(isinstance(data.get(name), list) for name in ("images", "annotations"))


def _is_coco_captions(data: Any) -> bool:
    return _is_coco(data) and (not data["annotations"] or _any_has(data["annotations"], "caption"))


def _is_coco_instances(data: Any) -> bool:
    return _is_coco(data) and not _is_coco_captions(data)


def _is_llava(data: Any) -> bool:
    return isinstance(data, list) and _any_has(data, "conversations")


def _is_sugarcrepe(data: Any) -> bool:
    return isinstance(data, dict) and not _is_coco(data) and _any_has(list(data.values()), "negative_caption")


def _is_row_object(data: Any) -> bool:
    return not (_is_coco(data) or _is_half_of_coco(data) or _is_sugarcrepe(data)) and has_rows(data)


def _is_half_of_coco(data: Any) -> bool:
    """Return whether an object has COCO's images without the captions, or its captions without the images."""
    halves = {name: data[name] for name in ("images", "annotations") if name in data} if isinstance(data, dict) else {}
    rows = next(iter(halves.values()), None)
    if len(halves) != 1 or not isinstance(rows, list) or not rows or not isinstance(rows[0], dict):
        return False
    try:
        plan = resolve_columns(tuple(rows[0]), {})
    except RejectError:  # no caption
        return "images" in halves
    except AmbiguousColumnsError:
        return False
    return plan.image is None and "annotations" in halves


def _is_row_list(data: Any) -> bool:
    return isinstance(data, list) and not _is_llava(data)


def _any_has(items: list[Any], name: str) -> bool:
    return any(isinstance(item, dict) and name in item for item in items[:_SNIFFED_ITEMS])


_ANY_OBJECT = "json-object"
_BUILT_IN = (
    Reader("coco", "COCO captions JSON, with COCO instances for boxes", read_coco, sniff_json=_is_coco_captions),
    Reader("json", "a JSON list of rows", read_json_list, sniff_json=_is_row_list, caption_per_row=True),
    Reader(
        _ANY_OBJECT,
        "a JSON object with rows: a list, columns, or a row per image",
        read_json_object,
        sniff_json=_is_row_object,
        caption_per_row=True,
    ),
    Reader(
        "jsonl",
        "one JSON object per line",
        read_jsonl,
        (".jsonl", ".ndjson", ".jsonlines"),
        transcodes=True,
        compressed=True,
        caption_per_row=True,
    ),
    Reader(
        "csv",
        "comma-separated columns",
        read_csv,
        (".csv",),
        transcodes=True,
        compressed=True,
        fixed_columns=True,
        caption_per_row=True,
    ),
    Reader(
        "tsv",
        "tab-separated columns",
        read_tsv,
        (".tsv",),
        transcodes=True,
        compressed=True,
        fixed_columns=True,
        caption_per_row=True,
    ),
    Reader(
        "parquet",
        "Parquet files, such as those of LAION and Hugging Face",
        read_parquet,
        (".parquet",),
        fixed_columns=True,
        caption_per_row=True,
    ),
    Reader("images", "a folder of images with .txt files of the same names", read_image_folder, reads_folders=True),
    Reader("webdataset", "tars of jpg, txt and json, as img2dataset writes them", read_webdataset, (".tar",)),
    Reader(
        "clip-retrieval",
        "a folder of embeddings and metadata",
        read_clip_retrieval,
        reads_folders=True,
        fixed_columns=True,
    ),
    Reader(
        "parallel-lines",
        "a folder of two .txt files, images and captions line by line (SBU)",
        read_parallel_lines,
        reads_folders=True,
        transcodes=True,
        fixed_columns=True,
        caption_per_row=True,
    ),
)
READERS = PluginRegistry(
    "reader",
    ("pairwright.readers",),
    {one.name: one for one in _BUILT_IN},
    attrgetter("about"),
    Reader,
    lambda reader, label: replace(reader, read=partial(iterate_plugin, reader.read, (InputRow, Reject), label)),
)
NON_PAIR_FORMATS = {
    one.name: one
    for one in (
        NonPairFormat(
            "llava",
            "LLaVA conversations",
            "`pairwright mix`, `export` and `verify` read them; here, give captions.",
            _is_llava,
            rows="json",
        ),
        NonPairFormat(
            "sugarcrepe",
            "SugarCrepe candidates (captions with negatives)",
            "`pairwright refine`, `audit` and `validate` read them; here, give captions.",
            _is_sugarcrepe,
        ),
        NonPairFormat(
            "coco-instances",
            "COCO instances (boxes)",
            "Give the captions file, and this one as instances.",
            _is_coco_instances,
        ),
    )
}
_CAPTION_NAMES = frozenset(name for rank in COLUMN_NAMES_BY_FIELD["caption"] for name in rank)
_TEXT_SUFFIXES = frozenset({".txt", ".token"})  # of tables, recognised by their first line
_PREVIEW_BYTES = 200


@dataclass(frozen=True, slots=True)
class LocatedInput:
    """Format, files in order, folder of relative paths, and default name of an input."""

    format: str
    files: tuple[Path, ...]
    root: Path
    name: str


def guess_format(path: str | Path, option_names: OptionNames = COMMAND_LINE) -> str:
    """Return the format of a file or folder: a name of `READERS` or `NON_PAIR_FORMATS`.

    Raises:
        InputError: if there is no such file, or its format cannot be detected.
    """
    path = to_path(path)
    if path.is_dir():
        return guess_folder(path, option_names, match_suffix)
    if not path.exists():
        raise _missing_path_error(path)
    name = path.name.lower()
    plain = strip_compression(name)
    if plain.endswith(".json"):
        return _guess_json(path)
    if format_ := match_suffix(name) or _match_plugin_suffix(path, option_names):
        return format_
    if kind := find_unread_kind(path):
        raise InputError(kind.about, where=str(path), fix=kind.convert(path))
    if path.suffix.lower() in _TEXT_SUFFIXES:
        return _guess_text_file(path, option_names)
    raise InputError(
        "unknown file ending",
        where=str(path),
        fix="Name it .jsonl, .csv, .tsv or .parquet."
        if option_names.no_options
        else f"Name the format: {option_names.choice('format', READERS.names())}.",
    )


def match_suffix(name: str) -> str:
    """Return the built-in format of a file name in lower case, empty for an unknown ending."""
    plain = strip_compression(name)
    for reader in READERS.built_in.values():
        if plain.endswith(reader.suffixes) and (plain == name or reader.compressed):
            return reader.name
    return ""


def _match_plugin_suffix(path: Path, option_names: OptionNames) -> str:
    """Return the third-party format of a file with an unknown ending, empty if there is none."""
    name = path.name.lower()
    found = [
        reader.name
        for reader in _plugins()
        if name.endswith(reader.suffixes) or (reader.compressed and strip_compression(name).endswith(reader.suffixes))
    ]
    if len(found) > 1:
        fix = "Rename it." if option_names.no_options else f"Name one: {option_names.choice('format', found)}."
        raise InputError(f"several formats have this ending: {', '.join(found)}", where=str(path), fix=fix)
    return found[0] if found else ""


def _plugins() -> Iterator[Reader]:
    """Yield the third-party readers by the names of their entry points, for inputs that no built-in format matches."""
    for point in READERS.entry_points():
        yield replace(READERS.get(point.name), name=point.name)


def _guess_text_file(path: Path, option_names: OptionNames) -> str:
    """Return the format of a table under another name, such as those of Flickr8k and Flickr30k.

    Raises:
        InputError: it has lines of text without a header.
    """
    _, line = next(iter_lines(path), (0, b""))
    words = line.decode("utf-8", "replace").strip()
    if format_ := guess_table(words, _CAPTION_NAMES):
        return format_
    pair = None if is_remote(path) else find_parallel_files(path.parent)
    if pair and path in pair:
        fix = f"Give the folder, {path.parent}, and {option_names.setting('format', 'parallel-lines')}."
        raise InputError(f"lines that belong to those of {pair[path == pair[0]].name}", where=str(path), fix=fix)
    header = "image, a tab, and caption" if "\t" in words else "caption"
    fix = f"Add a header line ({header}) and rename the file to .tsv."
    raise InputError("lines of text without column names", where=str(path), fix=fix)


def _missing_path_error(path: Path) -> InputError:
    starred = any(sign in path.name for sign in "*?")
    fix = "Patterns are written {00000..00009} or {a,b}, not with * or ?; or name the folder." if starred else ""
    return InputError("no such file or folder", where=str(path), fix=fix or "Check the path.")


def _guess_json(path: Path) -> str:
    try:
        data = read_first_items(path, _SNIFFED_ITEMS)  # a list of gigabytes is not held in memory
        data = parse_json(read_text_bytes(path)) if data is None else data
    except RejectError as flaw:
        if _begins_with_row(path):
            return "jsonl"
        fix = f"Write a row per line: jq -c . {path} > rows.jsonl." if _is_several_values(path) else "Fix the file."
        raise InputError(f"{flaw.reason}: {flaw.detail}", where=str(path), fix=fix) from None
    built_in = dict(READERS.built_in)
    general = built_in.pop(_ANY_OBJECT)  # the last: it would hide the layouts of installed readers
    candidates: Iterable[NonPairFormat | Reader] = chain(
        NON_PAIR_FORMATS.values(), built_in.values(), _plugins(), [general]
    )
    for known in candidates:
        if known.sniff_json and known.sniff_json(data):
            return known.name
    fix = "COCO has two lists, `images` and `annotations`; otherwise give a list of rows."
    raise InputError(f"unknown JSON layout: {_describe_json(data)}", where=str(path), fix=fix)


def _describe_json(data: Any) -> str:
    """Return a short description of a JSON file's content."""
    if not isinstance(data, dict):
        return "neither a list nor an object"
    if not data:
        return "an empty object"
    of_coco = [name for name in ("images", "annotations") if name in data]
    lacks = [name for name in ("images", "annotations") if not isinstance(data.get(name), list)]
    if of_coco:
        return f"it has {' and '.join(of_coco)}, but no list {' and no list '.join(lacks)}"
    return f"an object with {', '.join(list(data)[:5])[:100]}"


def _is_several_values(path: Path) -> bool:
    """Return whether a file begins with an object, after which another one follows."""
    text = read_text_bytes(path).decode("utf-8", "replace")
    try:
        value, end = json.JSONDecoder().raw_decode(text.lstrip())
    except (json.JSONDecodeError, RecursionError):
        return False
    return isinstance(value, dict) and text.lstrip()[end:].lstrip().startswith("{")


def _begins_with_row(path: Path) -> bool:
    """Return whether the first line is an object: JSON Lines with the ending .json."""
    _, line = next(iter_lines(path), (0, b""))
    try:
        return isinstance(parse_json(line), dict)
    except RejectError:
        return False


def locate_input(
    written: str, format_: str = "", option_names: OptionNames = COMMAND_LINE, *, caption_is_named: bool = False
) -> LocatedInput:
    """Find the files of an input.

    Args:
        written: path, brace pattern, or the URL of one in an object store. Tars, Parquet, JSON Lines, CSV and TSV are read
            there by ranges (`StorePath`); other inputs are copied to this machine first.
        format_: a name of `READERS`; empty to detect.
        option_names: how messages name options.
        caption_is_named: whether the user maps the caption, so that rows of other kinds may be pairs too.

    Raises:
        UsageError: for an unknown format.
        InputError: if files are missing, or the format has no pairs.
    """
    if format_ and format_ not in NON_PAIR_FORMATS:
        require_known(f"{option_names.option('format')}: no such format:", [format_], READERS.names())
    if is_remote(written) and (stored := list_in_place(written)):
        return _locate_stored(written, stored, format_, option_names, caption_is_named=caption_is_named)
    written = fetch_local_copy(written)
    if is_url(written) or written.startswith("pipe:"):
        raise InputError("not a local path", where=written, fix="Download it first.")
    if "{" in written and not Path(written).exists():
        files = tuple(map(Path, expand_braces(written)))
        missing = [file for file in files if not file.exists()]
        if missing:
            what = f"{len(missing)} of {len(files)} files of the pattern are missing"
            raise InputError(what, where=str(missing[0]), fix="Fix the pattern.")
        name = files[0].absolute().parent.name
    else:
        files, name = (Path(written),), _stem(Path(written).absolute())
    _reject_placeholder_file(files[0])
    format_ = _pair_format(
        written, format_ or guess_format(files[0], option_names), option_names, caption_is_named=caption_is_named
    )
    return LocatedInput(format_, tuple(_expand_folders(files, READERS.get(format_))), folder_of_input(files[0]), name)


def _pair_format(written: str, format_: str, option_names: OptionNames, *, caption_is_named: bool) -> str:
    """Return the format that reads pairs, refusing formats that have none."""
    other = NON_PAIR_FORMATS.get(format_)
    if other is None:
        return format_
    if other.rows and caption_is_named:
        return other.rows
    what = f"not a source of pairs: {other.about}"
    raise InputError(what, where=written, fix=other.advice(option_names))


def _locate_stored(
    written: str, files: tuple[Path, ...], format_: str, option_names: OptionNames, *, caption_is_named: bool
) -> LocatedInput:
    """Return the input of files in a store, or of a folder of images there."""
    if not files[0].is_file():
        return LocatedInput("images", files, files[0], files[0].name)
    _reject_placeholder_file(files[0])
    format_ = _pair_format(
        written, format_ or guess_format(files[0], option_names), option_names, caption_is_named=caption_is_named
    )
    single = len(files) == 1 and to_path(written).name == files[0].name
    name = strip_compression(files[0].name).rpartition(".")[0] if single else files[0].parent.name
    return LocatedInput(format_, files, files[0].parent, name)


def _reject_placeholder_file(path: Path) -> None:
    """Refuse files that a failed download leaves: a Git LFS pointer, or an HTML error page."""
    if not path.is_file():
        return
    try:
        with path.open("rb") as handle:
            head = handle.read(_PREVIEW_BYTES).lstrip().lower()
    except OSError:  # the reader reports it
        return
    if head.startswith(b"version https://git-lfs"):
        raise InputError("a pointer of Git LFS, not the file itself", where=str(path), fix="Fetch it: git lfs pull.")
    if head.startswith((b"<!doctype html", b"<html")):
        raise InputError("a web page, not data", where=str(path), fix="Inspect it, and download the file again.")


def _stem(path: Path) -> str:
    return strip_compression(path.name).rpartition(".")[0] or path.name if path.is_file() else path.name


def _expand_folders(files: tuple[Path, ...], reader: Reader) -> Iterator[Path]:
    """Yield files, folders replaced by their files of the format."""
    for file in files:
        if not file.exists():
            raise _missing_path_error(file)
        if not os.access(file, os.R_OK):
            raise InputError("is not readable", where=str(file), fix="Check its permissions (ls -l).")
        if file.is_dir() == reader.reads_folders:
            yield file
        elif file.is_dir():
            bare = strip_compression if reader.compressed else str
            inner = sorted(
                path for path in file.iterdir() if bare(path.name).endswith(reader.suffixes) and path.name[0] != "."
            )
            if not inner:
                raise InputError(f"a folder without {reader.name} files", where=str(file), fix="Name a file.")
            yield from inner
        else:
            raise InputError(f"a file, where {reader.name} is a folder", where=str(file), fix="Name the folder.")
