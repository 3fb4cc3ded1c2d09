"""What to ask an index: free text, a class list with prompt templates, the captions of pairs, or vectors made elsewhere.

A *concept* is what the user wants pairs about: a line of text, a class, an image. A concept has one or more
*queries*; a class has one for each of its names and each template (REACT eq. 2.1). A class list is JSON, one set or
several by name::

    {"pets": {"classes": ["beagle", ["tabby", "tabby cat"]], "templates": ["a photo of a {}."]}}

A class that is a list has synonyms: one concept, named by the first, asked for under every name. A name that comes
twice stands for two concepts ("missile" and "missile#2"), as the set meant them. With several sets a concept is named
``set/class``.

Lines of text may share words that say nothing of what each is about ("a photo of a cat", "a photo of a dog"). The *name*
of a line is what is left without the words that nearly all lines hold; what it serves for: `questions.py`, `judging.py`.

Captions are queries as they are (REACT asks with the captions of a training set): the concept is the image, under its
source id where it has one. Vectors of queries that were encoded elsewhere stand in an ``.npy``, a row a query.

Memory: the queries, some 500 bytes each.
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
_SHARED_WORD_SHARE = 0.9  # share of the lines that hold a word which does not tell them apart
_MIN_SHARED_LINES = 3  # that say so: what two lines share may well be what is wanted


@dataclass(frozen=True, slots=True)
class Query:
    """One text to search with.

    Attributes:
        text: what is encoded.
        concept: what it is about; several queries may share it.
        name: the words for the concept that ``text`` holds; the text itself where nothing else is known.
        template: the template with its slot ``{}``; empty without one.
    """

    text: str
    concept: str
    name: str
    template: str = ""


def read_queries(path: Path) -> list[Query]:
    """Read queries from ``.txt`` (one a line), a ``.json`` class list, or any input that holds pairs; see the module.

    A ``.json`` with ``images`` and ``annotations`` (COCO), or a list, holds pairs.

    Raises:
        InputError: when there is no such file, its content is not as described, or it holds no query.
    """
    ending = path.suffix.lower()
    content = _read_text(path) if ending in {".txt", ".json"} else ""
    if ending == ".txt":
        queries = queries_from_lines(content.splitlines())
    elif ending == ".json" and not _holds_pairs(parsed := _parse_json(content, path)):
        queries = queries_from_classes(parsed, where=str(path))
    else:
        # Of queries none may be missing: what they find would be missing too.
        options = ReadOptions(str(path), verify_images="off", wording=WITHOUT_OPTIONS)
        queries = queries_from_pairs(batch.pairs for batch in read_pairs(options))
    if not queries:
        raise InputError("no queries", where=str(path), fix="Give at least one line, or one class and one template.")
    return queries


def queries_from_pairs(batches: Iterable[Sequence[Pair]], *, every_caption: bool = True) -> list[Query]:
    """Return the captions of pairs as queries.

    The concept of a pair is its source id, or else its caption, so that the captions of one image are one concept.

    Args:
        batches: of pairs.
        every_caption: the other captions of the image, too; a text counts once a concept.
    """
    queries: dict[tuple[str, str], Query] = {}
    for batch in batches:
        for pair in batch:
            concept = pair.source_id or pair.caption
            for text in (pair.caption, *(pair.captions if every_caption else ())):
                queries.setdefault((concept, text), Query(text, concept, text))
    return list(queries.values())


def read_query_vectors(path: Path, queries: int, dim: int) -> Vectors:
    """Read the vectors of queries from an ``.npy`` of floats, one row a query, in the order of the queries.

    Args:
        path: of the file.
        queries: how many there are.
        dim: length of a vector of the index.

    Returns:
        Unit rows, float32 (queries, dim); rows of any length but zero are scaled.

    Raises:
        InputError: when the file is missing, is no such array, or has a row that is zero or not finite.
    """
    try:
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise InputError("no such file", where=str(path), fix="Check the path.") from None
    except (OSError, ValueError, EOFError) as error:
        # NumPy takes whatever is no array for a pickle, and advises to trust it.
        said = "it holds objects, or no array at all" if "pickle" in str(error) else str(error) or "it is empty"
        raise InputError(f"not an .npy of numbers ({said})", where=str(path), fix="Save it with numpy.save.") from None
    if not isinstance(stored, np.ndarray) or stored.dtype.kind != "f" or stored.shape != (queries, dim):
        found = f"{stored.dtype} {stored.shape}" if isinstance(stored, np.ndarray) else "several arrays"
        raise InputError(
            f"{found} instead of floats ({queries}, {dim})",
            where=str(path),
            fix="Give one row a query, in their order, from the encoder that the index's vectors came from.",
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
    """Return a query for each line, its own concept; blank lines are none."""
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
    """Return the queries of a class list, a JSON value as the module describes it.

    Raises:
        InputError: naming the set and the class or template that is wrong.
    """
    if not isinstance(content, dict):
        raise InputError("not an object", where=where, fix='Give {"classes": [...], "templates": [...]}.')
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
        raise InputError("not an object", where=where, fix='Give {"classes": [...], "templates": [...]}.')
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
            f"no list {name!r}", where=where, fix='Give both "classes" and "templates"; ["{}"] asks for bare names.'
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
