"""Detection of the settings for an input, so that the config of `pairwright init` builds without changes.

Detected: the file with the captions of a folder of images, columns with other names, a header in another encoding than
UTF-8, the folder of the images, COCO instances in the folder of COCO captions, image formats that have to be recoded,
images that are URLs or missing. Inputs that no build can read are refused with a suggestion.

Limits: columns are judged by the first `ROWS` rows, images by the first `PAIRS` pairs; COCO and JSON lists are read whole.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from pairwright.datasets.brace_patterns import expand_braces
from pairwright.datasets.captions.cleaning import clean_web_caption, has_content, strip_html
from pairwright.datasets.count_phrases import count_phrase, verb_form
from pairwright.datasets.errors import InputError, PairwrightError
from pairwright.datasets.images.loading import IMAGE_SUFFIXES, image_format_by_name, is_url
from pairwright.datasets.images.recoding import IMAGE_EXTENSIONS
from pairwright.datasets.option_names import COMMAND_LINE
from pairwright.datasets.readers.caption_tables import COCO_DIGITS, CaptionTable, FolderFiles, find_caption_tables
from pairwright.datasets.readers.coco import list_instance_files
from pairwright.datasets.readers.column_expressions import LINES, compute
from pairwright.datasets.readers.columns import AmbiguousColumnsError, ColumnPlan, resolve_columns
from pairwright.datasets.readers.csv_tsv import decode_header
from pairwright.datasets.readers.field_values import is_image_in_base64, parse_image_number
from pairwright.datasets.readers.formats import NON_PAIR_FORMATS, READERS, LocatedInput, guess_format, locate_input
from pairwright.datasets.readers.input_rows import InputRow
from pairwright.datasets.readers.json_object import SPLIT
from pairwright.datasets.readers.known_layouts import CAPTION_PARTS
from pairwright.datasets.readers.normaliser import VerifyImages
from pairwright.datasets.readers.pairs import ReadBatch, ReadOptions, read_pairs, select_reader
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.readers.text_files import LIKELY_ENCODING
from pairwright.datasets.records import MAX_EDITABLE_CAPTION, Pair
from pairwright.datasets.rejects import BAD_BOX, RejectError, list_reasons
from pairwright.datasets.remote.object_store import is_remote
from pairwright.datasets.remote.store_path import to_path
from pairwright.filters.candidates.layouts import describe_negatives
from pairwright.generators.language.identification import other_language

ROWS, PAIRS = 200, 20_000
_CHECKED_IMAGES = 50  # whose files are checked
_MAX_PARTS = 8  # files of a brace pattern that are all sampled, as splits are; shards are alike
_MAX_FOLDERS = 500  # near the input, that may contain the images
_COLUMN_FORMATS = frozenset({"json", "json-object", "jsonl", "csv", "tsv", "parquet", "webdataset"})  # with columns
_SAMPLE_FORMATS = frozenset({"images", "webdataset"})  # whose images may have no caption, for a model to write
_TABLES = frozenset({"csv", "tsv"})  # formats with a header
_INSIDE = re.compile(r"\.(tar|parquet)::")  # an image inside another file
_ANSWERS = {  # keys of a turn to the place of the first answer in a conversation
    frozenset({"from", "value"}): "1.value",
    frozenset({"role", "content"}): "1.content",
    frozenset({"user", "assistant"}): "0.assistant",
}
_DOCUMENTS = (frozenset({"text_list", "image_info"}), frozenset({"images", "texts", "metadata"}))  # MMC4, OBELICS
_DOCUMENT_FIX = (
    "Make pairs first; of MMC4, images and the sentences that they match: "
    "jq -c '.text_list as $t | .image_info[] | {image: .raw_url, caption: $t[.matched_text_index]}' FILE > pairs.jsonl"
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_IMAGE_COLUMN = re.compile(r"^(?:image|img|photo|picture)", re.IGNORECASE)
_QUESTION_COLUMN = re.compile(r"question|prompt|instruction|query|(?:^|_)qa?s?$", re.IGNORECASE)
_ID_COLUMN = re.compile(r"(?:^|_)(?:id|key|name|image|img)$", re.IGNORECASE)
_NAMED_BY_ID = ("}.jpg", f":0{COCO_DIGITS}}}.jpg", "}.jpeg", "}.png", "}.webp")  # ends of templates
_MAX_ID, _CHECKED_IDS = 64, 10
_NUMBER = re.compile(r"\d+$")
_SPLIT_FILE = re.compile(r"(train|validation|valid|val|dev|test)(?![a-z])")
_BRACES = re.compile(r"[{},]")  # in the name of a folder, which would be part of a pattern
_SHOWN_TABLES = 5
_HTML, _WEB = "HTML", "an address, mention, hashtag, emoji or note of an agency"
_NO_SENTENCE = "a file name, address or placeholder"
_MIN_SHARE = 0.6  # of the values of a column of a kind
_MIN_QUESTIONS = 0.9  # of the values of a column that is not named as one of questions
_MIN_BESIDE = 0.9  # share of the images that a folder next to the input has, which may be unrelated


@dataclass(frozen=True, slots=True)
class InputSettings:
    """Settings for an input.

    Attributes:
        clean_captions: whether captions are of the web, with HTML, addresses and hashtags.
        encoding: of a table whose header is not UTF-8; empty for none.
        path: file to read, if the input is a folder of images whose captions are in it; empty for the input.
        columns: field to column name, for columns with uncommon names.
        image_root: folder of relative image paths; empty for the folder of the input.
        instances: COCO instances of the same images; empty for none.
        texts_only: whether no image can be packed.
        image_format: format to recode to; empty to keep the bytes.
        uncaptioned: whether most images have no caption, so that a model has to write it.
        found: the detected settings, a phrase each.
        notes: messages, a sentence each.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    image_root: str = ""
    instances: str = ""
    texts_only: bool = False
    image_format: str = ""
    uncaptioned: bool = False
    found: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    path: str = ""
    clean_captions: bool = False
    encoding: str = ""


@dataclass(frozen=True, slots=True)
class _Source:
    """An input as written, its files, and the encoding of its lines that are not UTF-8 (empty: those are flaws)."""

    written: str
    located: LocatedInput
    encoding: str = ""

    def parts(self) -> "list[_Source]":
        """Return the files of a short brace pattern, each of which may have its own folder of images; else the input."""
        files = self.located.files
        if not 1 < len(files) <= _MAX_PARTS:
            return [self]
        return [replace(self, written=str(file), located=replace(self.located, files=(file,))) for file in files]


def survey_input(written: str, columns: Mapping[str, str]) -> InputSettings:
    """Return the settings for an input.

    Args:
        written: path or brace pattern.
        columns: given by the user, field to column name.

    Raises:
        InputError: when the input is missing or broken, has no pairs, or has no column of captions.
    """
    located = locate_input(written, caption_is_named=bool(CAPTION_PARTS & columns.keys()))
    about = find_caption_tables(Path(written), columns) if _is_folder_of_images(located) else FolderFiles()
    if about.captions:
        return _survey_table(written, columns, about.captions)
    unclear = ""
    if about.texts:
        try:
            return _survey_table(written, columns, about.texts)
        except InputError as error:
            unclear = f"A table of these images is not read: {error} Or give it as --input."
    found = _survey(written, located, columns)
    return replace(found, notes=(*([unclear] if unclear else []), *_unread_files_notes(about), *found.notes))


def _survey_table(folder: str, columns: Mapping[str, str], tables: Sequence[CaptionTable]) -> InputSettings:
    """Return the settings for the first of the tables with captions of a folder of images; errors as in `survey_input`."""
    path = str(tables[0].path)
    within = Path(os.path.normpath(Path(folder).absolute()))
    found = _survey(path, locate_input(path, caption_is_named=True), columns, within)
    return replace(
        found,
        path=path,
        found=(f"captions in {_shown(path)}", *found.found),
        notes=(*_other_tables_note(tables), *found.notes),
    )


def _is_folder_of_images(located: LocatedInput) -> bool:
    return located.format == "images" and not is_remote(located.root)


def _other_tables_note(tables: Sequence[CaptionTable]) -> list[str]:
    """Return a note that names the files with captions that are not read, if there are any."""
    if len(tables) == 1:
        return []
    names = ", ".join(_shown(str(one.path)) for one in tables[1 : 1 + _SHOWN_TABLES])
    more = f" and {len(tables) - 1 - _SHOWN_TABLES:,} more" if len(tables) - 1 > _SHOWN_TABLES else ""
    many = f"{len(tables)} files have captions of these images"
    together = f" To use all: --input '{pattern}'." if (pattern := _pattern_of_tables(tables)) else ""
    how = f"To use another: --input FILE.{together}"
    return [f"{many}: {_shown(str(tables[0].path))} is read, not {names}{more}. {how}"]


def _pattern_of_tables(tables: Sequence[CaptionTable]) -> str:
    """Return the brace pattern of files of one folder and format (``captions_{train,val}.json``); empty if there is none."""
    paths = sorted(one.path for one in tables)
    folders, formats = {path.parent for path in paths}, {guess_format(path) for path in paths}
    names = [path.name for path in paths]
    if len(folders) > 1 or len(formats) > 1 or _BRACES.search("".join(names)):
        return ""
    return _shown(str(paths[0].with_name(_pattern_of(names))))


def _pattern_of(names: Sequence[str]) -> str:
    """Return the brace pattern of different names, in order; a single one unchanged."""
    if len(names) == 1:
        return names[0]
    start = _common_start(names)
    end = _common_start([name[len(start) :][::-1] for name in names])[::-1]
    parts = [name[len(start) : len(name) - len(end)] for name in names]
    counted = list(expand_braces(f"{{{parts[0]}..{parts[-1]}}}")) if all(map(str.isdecimal, parts)) else []
    inner = f"{parts[0]}..{parts[-1]}" if counted == parts else ",".join(parts)
    return f"{start}{{{inner}}}{end}"


def _common_start(texts: Sequence[str]) -> str:
    """Return the longest text that all texts begin with."""
    first, last = min(texts), max(texts)
    return first[
        : next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    ]


def _unread_files_notes(about: FolderFiles) -> Iterator[str]:
    """Yield a note about each file of a folder of images that has something else than captions of them."""
    for path, format_ in about.others[:_SHOWN_TABLES]:
        known = NON_PAIR_FORMATS[format_]
        yield f"{_shown(str(path))} is not read: {known.about}. {known.advice(COMMAND_LINE)}"


def _survey(
    written: str, located: LocatedInput, columns: Mapping[str, str], within: Path | None = None
) -> InputSettings:
    """Return the settings for an input that is read as `located`, with images in ``within``; errors as in `survey_input`."""
    header = decode_header(located.files[0]) if located.format in _TABLES else ""
    source = _Source(written, located, LIKELY_ENCODING if header else "")
    read = _columns(source, columns, within) if located.format in _COLUMN_FORMATS else _ReadColumns(dict(columns))
    chosen, found = dict(read.chosen), list(read.detected(columns))
    if header:
        found.append(f"encoding {source.encoding}")
    instances = _instances(source) if located.format == "coco" else ""
    if instances:
        found.append(f"boxes from {_shown(instances)}")
    pairs, skipped = _sample(source, chosen)
    images = [pair.image for pair in pairs if pair.image]
    bad_boxes = skipped.boxes.total()
    notes = [
        *_header_note(header),
        *read.other_texts_note(),
        *read.split_note(),
        *_split_files_note(located),
        *_rejection_notes(skipped, len(pairs), located.format),
    ]
    notes += _lines_note([pair.caption for pair in pairs if pair.caption], read)
    web = _WebCaptions.of([pair.caption for pair in pairs if pair.caption])
    notes += web.notes()
    settings = InputSettings(chosen, instances=instances, clean_captions=bool(web.remains), encoding=source.encoding)
    box_note = _box_note(bad_boxes, len(pairs))
    if not images:
        unread = _list_unread_images(located)
        notes += [*box_note, *unread]
        return replace(settings, texts_only=bool(unread), found=(*found, "no images"), notes=tuple(notes))
    local = [image for image in images if not is_url(image)]
    urls = f"{len(images) - len(local):,} of {count_phrase(len(images), 'image')} given by URL"
    how = "To download them, run `pairwright fetch` or add a section `fetch` to the config."
    if 2 * len(local) < len(images):
        note = f"{urls}: the build packs texts only. {how}"
        return replace(settings, texts_only=True, found=tuple(found), notes=(*notes, *box_note, note))
    search = _ImageSearch.of(located, local, within)
    root, existing, checked = search.root, search.existing, search.checked
    if not existing:
        note = f"No image file found ({local[0]}): the build packs texts only. {search.advice()}{_url_advice(pairs[0])}"
        return replace(settings, texts_only=True, found=tuple(found), notes=(*notes, *box_note, note))
    notes += _box_note_by_images(source, chosen, root) if bad_boxes else []
    notes += [f"Missing images: {checked - existing:,} of {checked:,} that were checked. They are rejected."] * (
        existing < checked
    )
    without = len(pairs) - len(images)
    notes += [f"Pairs without an image: {without:,} of {len(pairs):,}. They are rejected."] if without else []
    notes += [f"{urls}: rejected. {how}"] if len(local) < len(images) else []
    found += [f"images in {_shown(root)}"] if root else []
    formats = _image_formats(source, chosen, root, pairs)
    counts = ", ".join(f"{name} {count:,}" for name, count in formats.most_common())
    recode = len(formats) > 1 or not formats.keys() <= set(IMAGE_EXTENSIONS)
    found += [f"image formats {counts}, recoded to jpg"] if recode else []
    uncaptioned = sum(not pair.caption for pair in pairs)
    if uncaptioned:
        found.append(f"{uncaptioned:,} of {count_phrase(len(pairs), 'image')} without a caption")
        notes.append(_caption_advice(uncaptioned, len(pairs)))
    return replace(
        settings,
        image_root=root,
        image_format="jpg" if recode else "",
        uncaptioned=_is_most(uncaptioned, len(pairs)),
        found=tuple(found),
        notes=tuple(notes),
    )


def _header_note(header: str) -> list[str]:
    """Return a note about a header that is not UTF-8, as it reads in the likely encoding; none for an empty one."""
    if not header:
        return []
    how = "If this is wrong, change `encoding` under input in the config."
    return [
        f"The first line is not UTF-8. In {LIKELY_ENCODING}, which the config names, it reads {header[:80]!r}. {how}"
    ]


def _split_files_note(located: LocatedInput) -> list[str]:
    """Return a note about files of several splits, by their names (``train-00000-of-00002.parquet``), if there are any."""
    of_split: dict[str, list[str]] = {}
    for file in located.files:
        if found := _SPLIT_FILE.match(file.name):
            of_split.setdefault(found[1], []).append(file.name)
    if len(of_split) < 2:
        return []
    split, names = max(of_split.items(), key=lambda item: len(item[1]))
    one = _shown(str(located.files[0].with_name(_pattern_of(names))))
    return [f"Files of all splits are read ({', '.join(of_split)}). To read {split} only: --input '{one}'."]


def _rejection_notes(skipped: SkipCounts, pairs: int, format_: str) -> list[str]:
    """Return notes about the rows, and the single captions and fields of others, that the build will reject."""
    rows, captions, notes = skipped.rows.total(), list_reasons(skipped.captions), list[str]()
    if rows:
        of = count_phrase(rows + pairs, "row")
        how = " If these are in cp1252, or another encoding, name it: `encoding` under input in the config."
        hint = how if skipped.rows["not_utf8"] and READERS.get(format_).transcodes else ""
        notes.append(
            f"{rows:,} of the first {of} {verb_form(rows, 'are')} rejected: {list_reasons(skipped.rows)}.{hint}"
        )
    if captions:
        notes.append(f"Captions rejected of rows that have others: {captions}.")
    if skipped.fields:
        notes.append(f"Optional fields, such as width, that are read as unknown: {list_reasons(skipped.fields)}.")
    return notes


def _lines_note(captions: Sequence[str], read: "_ReadColumns") -> list[str]:
    """Return a note about captions of several lines, which may be a caption each; none if they are few."""
    several = sum(len(caption.splitlines()) > 1 for caption in captions)
    if several < max(1, _MIN_SHARE * len(captions)):
        return []
    column = read.chosen.get("caption") or (read.plan and read.plan.caption) or "caption"
    how = f"If each line is a caption of its own: --columns captions={column}.{LINES}."
    return [f"{several:,} of {count_phrase(len(captions), 'caption')} have several lines. {how}"]


@dataclass(frozen=True)
class _WebCaptions:
    """How many captions are no plain English, as alternative texts of web pages often are.

    Attributes:
        captions: number of all.
        remains: number of those with what `clean_captions` removes, by kind.
        other_language: number of those in another language than English.
    """

    captions: int
    remains: Mapping[str, int]
    other_language: int

    @classmethod
    def of(cls, captions: Sequence[str]) -> "_WebCaptions":
        """Count captions."""
        kinds = Counter(filter(None, map(_kind_of_remains, captions)))
        remains = {kind: kinds[kind] for kind in (_HTML, _WEB, _NO_SENTENCE) if kinds[kind]}
        return cls(len(captions), remains, sum(map(bool, map(other_language, captions))))

    def notes(self) -> list[str]:
        """Return notes about what is counted."""
        counts = dict(self.remains)
        fixes = []
        if self.remains:
            fixes.append(
                "`clean_captions` in the config removes HTML and the like, and rejects captions without content."
            )
        if self.other_language:
            counts["another language than English"] = self.other_language
            fixes.append("Rules edit English only: `pairwright filter --language en` removes other languages.")
        if not counts:
            return []
        shown = ", ".join(f"{what} {count:,}" for what, count in counts.items())
        return [f"Of the first {count_phrase(self.captions, 'caption')}: {shown}. {' '.join(fixes)}"]


def _kind_of_remains(caption: str) -> str:
    """Return what a caption has that is no part of a sentence; empty for nothing."""
    if not has_content(caption):
        return _NO_SENTENCE
    if ("&" in caption or "<" in caption) and strip_html(caption) != caption:
        return _HTML
    return "" if clean_web_caption(caption) == caption else _WEB


def _is_most(count: int, total: int) -> bool:
    return 2 * count > total


def _caption_advice(without: int, images: int) -> str:
    """Return what the build does with images without a caption, and how to change it."""
    if _is_most(without, images):
        other = " Or remove `captions` to reject them." if without < images else ""
        return f"A model that sees the images writes their captions: check `llm.model` in the config.{other}"
    how = "For captions by a model that sees them, add `captions: {forms: [short]}` and `llm: {model: gpt-4o-mini}`"
    return f"Images without a caption are rejected. {how} to the config."


def _box_note(bad: int, pairs: int) -> list[str]:
    """Return a note about the rows that the build will read without boxes, if there are any."""
    if not bad:
        return []
    return [
        f"Bad boxes: {bad:,} of the first {count_phrase(pairs, 'pair')} {verb_form(bad, 'are')} read without boxes."
    ]


def _box_note_by_images(source: _Source, columns: Mapping[str, str], root: str) -> list[str]:
    """Return `_box_note` for boxes in pixels of images whose files alone tell the size."""
    bad = pairs = 0
    with suppress(InputError):  # no image can be read
        for batch in _batches(source, columns, "header", ROWS, root):
            bad += sum(reject.reason == BAD_BOX for reject in batch.rejects)
            pairs += len(batch.pairs)
    return _box_note(bad, pairs)


def _list_unread_images(located: LocatedInput) -> list[str]:
    """Return a note about columns of bytes that are not an image per row, such as lists of bytes or base64, if any."""
    if located.format not in _COLUMN_FORMATS:
        return []
    read = READERS.get(located.format).read(located.files[0])
    row = next((row for row in read if isinstance(row, InputRow)), None)
    names = [name for name, value in row.fields.items() if _is_unread_image(value)] if row else []
    if not names:
        return []
    what = "The build packs texts only: images in base64, lists of bytes and other nested bytes are not read"
    return [f"{what} (column {', '.join(names)}). Write one image per row, as bytes or {{bytes, path}}."]


def _is_unread_image(value: Any) -> bool:
    return isinstance(value, bytes) or (isinstance(value, str) and is_image_in_base64(value))


def _url_advice(pair: Pair) -> str:
    """Return how to read the addresses of the images, if a column has them; else nothing."""
    urls = [name for name, value in json.loads(pair.meta).items() if isinstance(value, str) and is_url(value)]
    return f" Or download them: --columns image={urls[0]}, and `pairwright fetch`." if urls else ""


def _shown(path: str) -> str:
    """Return a path relative to the working folder, if it is inside."""
    with suppress(ValueError):
        return str(Path(path).absolute().relative_to(Path.cwd()))
    return path


def _sample(source: _Source, columns: Mapping[str, str]) -> tuple[list[Pair], SkipCounts]:
    """Return the first pairs, and what was rejected; images are not opened."""
    pairs, skipped = list[Pair](), SkipCounts()
    parts = source.parts()
    for part in parts:
        for batch in _batches(part, columns, "off", PAIRS // len(parts)):
            pairs += batch.pairs
            skipped.add(batch.rejects)
    return pairs, skipped


def _image_formats(source: _Source, columns: Mapping[str, str], root: str, pairs: Sequence[Pair]) -> Counter[str]:
    """Return the number of images of ``pairs`` by format: by their bytes for the first of each file, as a build does."""
    opened = dict[str, str]()
    parts = source.parts()
    for part in parts:
        with suppress(InputError):  # no image can be read
            for batch in _batches(part, columns, "header", -(-ROWS // len(parts)), root):
                opened.update(zip((pair.key for pair in batch.pairs), batch.image_formats(), strict=True))
    return Counter(filter(None, (opened.get(pair.key) or image_format_by_name(pair.image) for pair in pairs)))


def _batches(
    source: _Source, columns: Mapping[str, str], verify: VerifyImages, most: int, image_root: str = ""
) -> Iterator[ReadBatch]:
    size = min(most, 4096)
    options = ReadOptions(
        source.written,
        columns=columns,
        encoding=source.encoding,
        on_error="skip",
        verify_images=verify,
        image_root=image_root,
        batch_size=size,
        max_caption=MAX_EDITABLE_CAPTION,  # as in a build
        without_caption=source.located.format in _SAMPLE_FORMATS,
    )
    yield from islice(read_pairs(options), -(-most // size))


@dataclass(frozen=True, slots=True)
class _ReadColumns:
    """Columns of an input.

    Attributes:
        chosen: the user's mapping, with the columns of caption and image if they have uncommon names.
        plan: which column is read as which field; None if no row can be read.
        texts: columns of texts without a field.
        negatives: what the file is, if it has negatives of its captions; else empty.
        splits: values of a column `split`, if there are or may be several.
    """

    chosen: Mapping[str, str]
    plan: ColumnPlan | None = None
    texts: Sequence[str] = ()
    splits: Sequence[str] = ()
    negatives: str = ""

    def detected(self, mapped: Mapping[str, str]) -> Iterator[str]:
        """Yield a phrase for each field whose column has another name and was not mapped by the user."""
        for part in ("caption", "captions", "image"):
            picture = self.plan.picture if self.plan and part == "image" else None
            column = self.plan and (picture or getattr(self.plan, part))
            column = self.chosen.get(part) or column
            if column and column != part and part not in mapped:
                yield f"{part} from column {column}"

    def split_note(self) -> Iterator[str]:
        """Yield a note about rows of several splits, if there are any."""
        if self.splits:
            yield f"All splits are read ({', '.join(self.splits)}): `where` in the config chooses among them."

    def other_texts_note(self) -> Iterator[str]:
        """Yield a note that names the columns of texts that are not read as captions, if there are any."""
        caption = self.plan and (self.plan.caption or self.plan.captions)
        if self.negatives:
            yield f"A build reads the captions alone, from {caption}.{_negatives_advice(self.negatives)}"
        elif self.texts and caption:
            columns, names = ("columns", "one") if len(self.texts) > 1 else ("column", "it")
            fix = f"To use {names} instead: --columns caption={self.texts[0]}."
            yield f"Captions are read from {caption}, not from the {columns} {', '.join(self.texts)}. {fix}"


def _columns(source: _Source, mapped: Mapping[str, str], within: Path | None) -> _ReadColumns:
    """Return the columns of an input, judged by its first rows and the images in ``within``."""
    located = source.located
    read = select_reader(ReadOptions(source.written, encoding=source.encoding), located.format)(located.files[0])
    rows = [row for row in islice(read, ROWS) if isinstance(row, InputRow)]
    if not rows and (about := describe_negatives(located.files[0])):
        fix = _negatives_advice(about).strip()
        raise InputError("no rows with a caption field", where=str(located.files[0]), fix=fix)
    if all(row.missing_caption for row in rows):  # or there are none
        return _ReadColumns(dict(mapped))
    names = list(dict.fromkeys(name for row in rows for name in row.fields))
    pictures = tuple(dict.fromkeys(name for row in rows for name in row.pictures))
    values = {name: [row.fields[name] for row in rows if row.fields.get(name) not in (None, "")] for name in names}
    chosen = dict(mapped)
    where = str(located.files[0])
    while True:
        try:
            plan = resolve_columns(names, chosen, pictures)
            break
        except AmbiguousColumnsError as unclear:
            kind = _is_text if unclear.part in {"caption", "captions"} else _is_image
            chosen[unclear.part] = _only(unclear.part, _of_kind(values, unclear.columns, kind), unclear.columns, where)
        except RejectError as refused:
            if {"caption", "captions"} & chosen.keys():
                raise InputError(refused.detail, where=where, fix="Correct --columns.") from None
            chosen |= _caption(values, [*pictures, *chosen.values()], where)
    if not (plan.picture or (plan.image and not _is_number(plan.image, values, chosen))):
        images = list(pictures) or _of_kind(values, [name for name in names if name in plan.extra], _is_image)
        chosen |= {"image": images[0]} if len(images) == 1 else {}
        if not images and not is_remote(located.root):
            chosen |= _images_named_by_id(values, plan, located, within)
    free = [name for name in plan.extra if name not in chosen.values() and not _is_among(name, chosen.values())]
    frequent = [name for name in free if 2 * len(values[name]) > len(rows)]  # unlike messages of errors
    frequent = [name for name in frequent if not _is_constant(values[name])]
    texts = () if CAPTION_PARTS & mapped.keys() else _of_kind(values, frequent, _is_text)
    if plan.caption and not plan.captions and (pattern := _numbered_pattern(texts, plan.caption)):
        chosen["captions"] = pattern
        texts = [name for name in texts if not _is_among(name, [pattern])]
    splits = list(dict.fromkeys(value for value in values.get(SPLIT, ()) if isinstance(value, str)))
    splits = splits if len(splits) > 1 or len(rows) == ROWS else []
    return _ReadColumns(chosen, plan, texts, splits, describe_negatives(located.files[0]) if texts else "")


def _is_number(image: str, values: Mapping[str, Sequence[Any]], chosen: Mapping[str, str]) -> bool:
    """Return whether the column of images was found by its name and has numbers, which readers take for no place."""
    return "image" not in chosen and bool(values.get(image)) and all(map(parse_image_number, values[image]))


def _numbered_pattern(names: Sequence[str], caption: str = "") -> str:
    """Return the pattern of columns that are numbered alike (``caption_*``), of which one or more follow ``caption``."""
    counts = Counter(_NUMBER.sub("*", name) for name in names if _NUMBER.search(name))
    if caption:
        fitting = [pattern for pattern in counts if pattern[:-1].rstrip("_- ") == caption]
    else:  # all texts are captions of one image
        fitting = [pattern for pattern, count in counts.items() if count == len(names) > 1]
    return fitting[0] if len(fitting) == 1 else ""


def _is_among(name: str, patterns: Iterable[str]) -> bool:
    """Return whether a numbered column is one of a pattern."""
    return bool(_NUMBER.search(name)) and _NUMBER.sub("*", name) in patterns


def _images_named_by_id(
    values: Mapping[str, Sequence[Any]], plan: ColumnPlan, located: LocatedInput, within: Path | None
) -> dict[str, str]:
    """Return the template of the image files that are named by an id of the rows (``{image_id:012}.jpg``), as image."""
    root = Path(os.path.normpath(located.root.absolute()))
    folders = [root, *(folder for folder, _ in _candidate_folders(root, within))]
    for column in dict.fromkeys(name for name in (plan.key, *values) if name and _ID_COLUMN.search(name)):
        ids = [{column: value} for value in list(dict.fromkeys(filter(_is_id, values[column])))[:_CHECKED_IDS]]
        for template in (f"{{{column}{end}" for end in _NAMED_BY_ID):
            names = [str(compute(row, template)) for row in ids]
            if ids and any(2 * sum((folder / name).exists() for name in names) > len(names) for folder in folders):
                return {"image": template}
    return {}


def _is_id(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool)) or (
        isinstance(value, str) and 0 < len(value) <= _MAX_ID and not {"/", " ", "\0"} & set(value)
    )


def _caption(values: Mapping[str, Sequence[Any]], taken: Iterable[str], where: str) -> dict[str, str]:
    """Return the column of texts, or of lists of texts, as caption or captions."""
    names = given = [name for name in values if name not in taken]
    if answer := _find_answers(values):
        fix = f"Use `pairwright mix` or `pairwright export`; if the first answers are captions: --columns caption={answer}."
        raise InputError("rows of conversations, without captions", where=where, fix=fix)
    if any(document <= values.keys() for document in _DOCUMENTS):
        raise InputError("documents of texts with images between them, not pairs", where=where, fix=_DOCUMENT_FIX)
    names = [name for name in names if not _is_constant(values[name])]  # such as the question of all rows
    texts = _of_kind(values, names, _is_text)
    lists = [] if texts else _of_kind(values, names, _is_texts)
    if not (texts or lists):
        inside = _inner_values({name: values[name] for name in names})
        texts, lists = _of_kind(inside, inside, _is_text), _of_kind(inside, inside, _is_texts)
    if (captions := _numbered_pattern(texts)) and not _numbered_pattern(list(filter(_IMAGE_COLUMN.search, values))):
        return {"captions": captions}
    if lists and not texts:
        return {"captions": _only("captions", lists, given, where)}
    return {"caption": _only("caption", texts, given, where)}


def _is_constant(column: Sequence[Any]) -> bool:
    """Return whether all of several rows have the same value."""
    return len(column) > 2 and all(value == column[0] for value in column[1:])


def _find_answers(values: Mapping[str, Sequence[Any]]) -> str:
    """Return the path of the first answers of a column of conversations; empty if there is none."""
    for name, column in values.items():
        turn = next((value[0] for value in column if isinstance(value, list) and value), None)
        for keys, answer in _ANSWERS.items():
            if isinstance(turn, dict) and keys <= turn.keys():
                return f"{name}.{answer}"
    return ""


def _inner_values(values: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return the values inside objects and lists of objects, by path, such as ``regions.phrase``."""
    found: dict[str, list[Any]] = {}
    for name, column in values.items():
        first = next((value[0] if isinstance(value, list) and value else value for value in column), None)
        for key in first if isinstance(first, dict) else ():
            path = f"{name}.{key}"
            found[path] = [value for one in column if (value := compute({name: one}, path)) is not None]
    return found


def _only(part: str, candidates: Sequence[str], names: Sequence[str], where: str) -> str:
    """Return the only candidate for a field.

    Args:
        part: the field.
        candidates: columns that may be it.
        names: all columns.
        where: the file.

    Raises:
        InputError: for several candidates or none, with the option to set.
    """
    if len(candidates) == 1:
        return candidates[0]
    if not candidates:
        fix = f"Set it: --columns {part}=NAME. If another file has the {part}s, give that file."
        raise InputError(f"no column of {part}s among: {', '.join(names)}", where=where, fix=fix)
    what = f"columns that may each be the {part}: {', '.join(candidates)}"
    fix = f"Set it: --columns {part}={candidates[0]}.{_negatives_advice(describe_negatives(Path(where)))}"
    raise InputError(what, where=where, fix=fix)


def _negatives_advice(about: str) -> str:
    """Return which commands read a file that `describe_negatives` describes; empty for another one."""
    return f" To use the negatives ({about}): `pairwright audit` and `refine` read this file." if about else ""


def _of_kind(values: Mapping[str, Sequence[Any]], names: Iterable[str], kind: Callable[[Any], bool]) -> list[str]:
    found = [name for name in names if values[name] and _share(kind, values[name]) >= _MIN_SHARE]
    return [name for name in found if not _has_questions(name, values[name])]


def _share(kind: Callable[[Any], bool], column: Sequence[Any]) -> float:
    return sum(map(kind, column)) / len(column)


def _has_questions(name: str, column: Sequence[Any]) -> bool:
    """Return whether a column holds questions about the images, not captions of which some end with a question mark."""
    most = 1 - _MIN_SHARE if _QUESTION_COLUMN.search(name) else _MIN_QUESTIONS
    return _share(_is_question, column) > most


def _is_question(value: Any) -> bool:
    texts = value if isinstance(value, list) else [value]
    return bool(texts) and all(isinstance(text, str) and text.rstrip().endswith("?") for text in texts)


def _is_text(value: Any) -> bool:
    if not isinstance(value, str) or len(_WORD.findall(value)) < 2 or is_url(value) or _is_image(value):
        return False
    return not value.isascii() or " " in value.strip()  # else a name: image/jpeg, gemini-pro-vision


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))


def _is_image(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    path = urlsplit(value).path if is_url(value) else value
    return is_url(value) or PurePosixPath(path).suffix.lower() in IMAGE_SUFFIXES


def _instances(source: _Source) -> str:
    """Return the instances in the folder of COCO captions: the same name, or pattern, with ``instances`` for ``captions``."""
    captions = Path(source.written)
    instances = str(captions.with_name(captions.name.replace("captions", "instances")))
    files = list_instance_files(instances)
    with suppress(PairwrightError):
        if len(files) == len(source.located.files) and all(map(_is_instances, files)):
            return instances
    return ""


def _is_instances(file: Path) -> bool:
    return file.is_file() and guess_format(file) == "coco-instances"


@dataclass(frozen=True)
class _ImageSearch:
    """Where the images of an input are.

    Attributes:
        root: folder of most images, or a brace pattern of folders; empty for that of the input.
        existing: number of images found there.
        checked: number of images looked for.
        beside: folder next to the input with too few of the images to be theirs for certain; empty for none.
        in_beside: number of images found there.
    """

    root: str
    existing: int
    checked: int
    beside: str = ""
    in_beside: int = 0

    @classmethod
    def of(cls, located: LocatedInput, images: Sequence[str], within: Path | None = None) -> "_ImageSearch":
        """Look for a sample of the images in the folders of the input, below it, and next to it (COCO's layout).

        Args:
            located: the input.
            images: locators.
            within: a folder that has the images, itself or in subfolders; None if it is unknown.
        """
        distinct = list(dict.fromkeys(images))
        checked = distinct[:: -(-len(distinct) // _CHECKED_IMAGES)]
        missing = [path for image in checked if not (_INSIDE.search(image) or (path := to_path(image)).exists())]
        found = cls("", len(checked) - len(missing), len(checked))
        root = Path(os.path.normpath(located.root.absolute()))  # as images are located, without ..
        # An absolute path of another machine is looked for by its name.
        names = [image.relative_to(root) if image.is_relative_to(root) else Path(image.name) for image in missing]
        candidates = list(_candidate_folders(root, within)) if names else []
        for least in sorted(
            {least for _, least in candidates}
        ):  # folders next to the input, which need more, come last
            found = found._with_folders([folder for folder, share in candidates if share == least], names, least)
        return found

    def _with_folders(self, folders: Sequence[Path], names: Sequence[Path], least: float) -> "_ImageSearch":
        """Return the search after more folders: one of them, or several of one parent, if they have more of the images.

        Args:
            folders: that may have the images.
            names: of the images in them.
            least: share of all images that they must have.
        """
        found = self
        siblings: dict[Path, dict[Path, set[Path]]] = {}
        for folder in folders:
            has = {name for name in names if os.path.exists(folder / name)}  # noqa: PTH110 - `Path.exists` raises for names that are too long
            if len(has) > found.existing and len(has) >= least * found.checked:
                found = replace(found, root=str(folder), existing=len(has))
            elif len(has) > found.in_beside:
                found = replace(found, beside=str(folder), in_beside=len(has))
            if has and not _BRACES.search(folder.name):
                siblings.setdefault(folder.parent, {})[folder] = has
        for parent, inside in siblings.items():
            chosen = _fewest_folders(inside)
            count = len(set[Path]().union(*(inside[folder] for folder in chosen)))
            if count > found.existing and count >= least * found.checked:
                pattern = f"{{{','.join(folder.name for folder in chosen)}}}"
                found = replace(found, root=str(parent / pattern), existing=count)
        return found

    def advice(self) -> str:
        """Return what to do when no image was found."""
        how = "Set image_root to the folder of the images"
        if not self.beside:
            return f"{how}."
        return f"{how}; {_shown(self.beside)} has {self.in_beside:,} of the {self.checked:,} that were checked."


def _fewest_folders(folders: Mapping[Path, set[Path]]) -> list[Path]:
    """Return folders, that with most names first, of which each has a name that those before it lack."""
    chosen, covered = list[Path](), set[Path]()
    for folder in sorted(folders, key=lambda each: (-len(folders[each]), each)):
        if not folders[folder] <= covered:
            chosen.append(folder)
            covered |= folders[folder]
    return chosen


def _candidate_folders(root: Path, within: Path | None) -> Iterator[tuple[Path, float]]:
    """Yield folders that may contain the images, each once, and the minimal share of images to find there.

    ``within`` and folders below it and below that of the input, two levels deep; without ``within`` also those next to the
    input (COCO's layout), which may be unrelated.
    """
    patterns = [(root, "*", 0.0), (root, "*/*", 0.0)]
    if within and within != root:
        patterns += [(within, ".", 0.0), (within, "*", 0.0), (within, "*/*", 0.0)]
    if not within:
        patterns.append((root.parent, "*", _MIN_BESIDE))
    shares: dict[Path, float] = {}
    for base, pattern, least in patterns:
        for path in [base] if pattern == "." else sorted(base.glob(pattern)):
            if path.is_dir() and path.name[0] != "." and len(shares) < _MAX_FOLDERS:
                shares.setdefault(path, least)
    yield from shares.items()
