"""Retrieval queries: lines of text, class lists with prompt templates, captions of pairs, or precomputed vectors.

A *concept* is the subject of a search: a line of text, a class, an image. A concept has one or more *queries*; a class
has one per name and template (REACT eq. 2.1). A class list is JSON, one set or several by name::

    {"pets": {"classes": ["beagle", ["tabby", "tabby cat"]], "templates": ["a photo of a {}."]}}

A class given as a list has synonyms: one concept, named by the first, with queries for every name. A name that occurs
twice gives two concepts ("missile" and "missile#2"). With several sets a concept is named ``set/class``.

Lines of text may share words that do not describe them ("a photo of a cat", "a photo of a dog"). The *name* of a line is
the line without the words that nearly all lines contain; it is used by `prepared_queries` and `coverage`.

Captions are used as queries unchanged (REACT queries with the captions of a training set); the concept is the image,
named by its source id if it has one. Precomputed query vectors are in an ``.npy`` file, one row per query.

Memory: about 500 bytes per query.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairwright.datasets.errors import InputError
from pairwright.datasets.option_names import WITHOUT_OPTIONS
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.readers.text_files import read_text_bytes
from pairwright.datasets.records import Pair
from pairwright.indexes.encoders.hashed_features import split_words
from pairwright.indexes.encoders.protocols import Vectors

SLOT = "{}"
_ROWS = 65_536
_SHARED_WORD_SHARE = 0.9  # a word in at least this share of the lines is not part of their names
_MIN_SHARED_LINES = 3  # minimum number of such lines: words shared by two lines may be the subject


@dataclass(frozen=True, slots=True)
class Query:
    """One text to search with.

    Attributes:
        text: text to encode.
        concept: subject of the query; several queries may share it.
        name: words of ``text`` that name the concept; by default the whole text.
        template: the template with its slot ``{}``; empty without one.
    """

    text: str
    concept: str
    name: str
    template: str = ""


def read_queries(path: Path) -> list[Query]:
    """Read queries from ``.txt`` (one per line), a ``.json`` class list, or any input of pairs; see the module docstring.

    A ``.json`` with ``images`` and ``annotations`` (COCO), or with a list, is an input of pairs.

    Raises:
        InputError: if the file is missing or invalid, or has no queries.
    """
    ending = path.suffix.lower()
    content = _read_text(path) if ending in {".txt", ".json"} else ""
    if ending == ".txt":
        queries = queries_from_lines(content.splitlines())
    elif ending == ".json" and not _holds_pairs(parsed := _parse_json(content, path)):
        queries = queries_from_classes(parsed, where=str(path))
    else:
        # No row is skipped: the hits of its query would be missing.
        options = ReadOptions(str(path), verify_images="off", wording=WITHOUT_OPTIONS)
        queries = queries_from_pairs(batch.pairs for batch in read_pairs(options))
    if not queries:
        raise InputError("no queries", where=str(path), fix="Add at least one line, or one class and one template.")
    return queries


def queries_from_pairs(batches: Iterable[Sequence[Pair]], *, every_caption: bool = True) -> list[Query]:
    """Return the captions of pairs as queries.

    The concept of a pair is its source id, else its caption, so that all captions of an image share a concept.

    Args:
        batches: batches of pairs.
        every_caption: use the other captions of the image too; a text counts once per concept.
    """
    queries: dict[tuple[str, str], Query] = {}
    for batch in batches:
        for pair in batch:
            concept = pair.source_id or pair.caption
            for text in (pair.caption, *(pair.captions if every_caption else ())):
                queries.setdefault((concept, text), Query(text, concept, text))
    return list(queries.values())


def read_query_vectors(path: Path, queries: int, dim: int) -> Vectors:
    """Read query vectors from an ``.npy`` of floats, one row per query in their order.

    Args:
        path: path of the file.
        queries: number of queries.
        dim: vector length of the index.

    Returns:
        Unit rows, float32 (queries, dim); other rows are normalised.

    Raises:
        InputError: if the file is missing, is not such an array, or has a row that is zero or not finite.
    """
    try:
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError("no such file", where=str(path), fix="Check the path.") from None
    except (OSError, ValueError, EOFError) as error:
        # NumPy takes any other content for a pickle and suggests allow_pickle.
        reason = "it contains objects, or is not an array" if "pickle" in str(error) else str(error) or "it is empty"
        raise InputError(
            f"not an .npy of numbers ({reason})", where=str(path), fix="Save it with numpy.save."
        ) from None
    if not isinstance(stored, np.ndarray) or stored.dtype.kind != "f" or stored.shape != (queries, dim):
        found = f"{stored.dtype} {stored.shape}" if isinstance(stored, np.ndarray) else "several arrays"
        raise InputError(
            f"{found} instead of floats ({queries}, {dim})",
            where=str(path),
            fix="Save one row per query, in their order, from the encoder that made the vectors of the index.",
        )
    rows = np.empty(stored.shape, np.float32)
    for start in range(0, queries, _ROWS):
        block = stored[start : start + _ROWS].astype(np.float64)
        lengths = np.linalg.norm(block, axis=1)
        wrong = np.flatnonzero(~(np.isfinite(lengths) & (lengths > 0)))
        if len(wrong):
            raise InputError(
                "zero or not finite", where=f"{path} row {start + wrong[0]}", fix="Encode that query again."
            )
        rows[start : start + _ROWS] = block / lengths[:, None]
    return rows


def queries_from_lines(lines: Iterable[str]) -> list[Query]:
    """Return a query for each line, with the line as concept; blank lines are skipped."""
    texts = [text for line in lines if (text := line.strip())]
    words = {text: split_words(text) for text in texts}
    counts = Counter(word for found in words.values() for word in set(found))
    least = max(_SHARED_WORD_SHARE * len(words), _MIN_SHARED_LINES)
    shared = {word for word, count in counts.items() if count >= least}
    return [
        Query(text, text, " ".join(rest) if shared and (rest := _remove_words(words[text], shared)) else text)
        for text in texts
    ]


def _remove_words(words: Sequence[str], shared: Collection[str]) -> list[str]:
    return [word for word in words if word not in shared]


def queries_from_classes(content: Any, *, where: str = "classes") -> list[Query]:
    """Return the queries of a class list, a JSON value as in the module docstring.

    Raises:
        InputError: naming the set and the invalid class or template.
    """
    if not isinstance(content, dict):
        raise InputError("not an object", where=where, fix='Write {"classes": [...], "templates": [...]}.')
    if "classes" in content or "templates" in content:
        return list(_expand_class_set(content, "", where))
    several = len(content) > 1
    return [
        query
        for name, one in content.items()
        for query in _expand_class_set(one, f"{name}/" if several else "", f"{where}, {name}")
    ]


def _expand_class_set(one: Any, prefix: str, where: str) -> Iterator[Query]:
    if not isinstance(one, dict):
        raise InputError("not an object", where=where, fix='Write {"classes": [...], "templates": [...]}.')
    templates = _require_list(one, "templates", where)
    for template in templates:
        if not isinstance(template, str) or SLOT not in template:
            raise InputError(f"template {template!r} has no {SLOT}", where=where, fix=f"Write {SLOT} for the name.")
    taken: set[str] = set()
    for number, entry in enumerate(_require_list(one, "classes", where), start=1):
        names = _class_names(entry, f"{where}, class {number}")
        concept = _make_unique(names[0], taken)
        taken.add(concept)
        for name in names:
            for template in templates:
                yield Query(template.replace(SLOT, name), prefix + concept, name, template)


def _require_list(one: dict[str, Any], name: str, where: str) -> list[Any]:
    value = one.get(name)
    if not isinstance(value, list):
        raise InputError(
            f"no list {name!r}",
            where=where,
            fix='Write both "classes" and "templates"; the template "{}" searches for bare names.',
        )
    return value


def _class_names(entry: Any, where: str) -> list[str]:
    names = [entry] if isinstance(entry, str) else entry
    if not isinstance(names, list) or not names or not all(isinstance(n, str) and n.strip() for n in names):
        raise InputError(f"{entry!r} is not a name or a list of names", where=where, fix="Fix or remove it.")
    return list(dict.fromkeys(name.strip() for name in names))


def _make_unique(name: str, taken: set[str]) -> str:
    candidate, ordinal = name, 2
    while candidate in taken:
        candidate, ordinal = f"{name}#{ordinal}", ordinal + 1
    return candidate


def _read_text(path: Path) -> str:
    if not path.is_file():
        raise InputError("no such file", where=str(path), fix="Check the path.")
    try:
        return read_text_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(
            f"byte {error.start + 1} is not UTF-8", where=str(path), fix="Save the file as UTF-8."
        ) from None


def _holds_pairs(content: Any) -> bool:
    return (isinstance(content, list) and content != []) or (
        isinstance(content, dict) and {"images", "annotations"} <= content.keys()
    )


def _parse_json(content: str, path: Path) -> Any:
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON ({error.msg})", where=f"{path} line {error.lineno}", fix="Fix the file.") from None
