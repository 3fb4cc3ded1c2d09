"""What to ask an index: queries from free text, or from a class list with prompt templates.

A *concept* is what the user wants pairs about: a line of text, a class, an image. A concept has one or more
*queries*; a class has one for each of its names and each template (REACT eq. 2.1). A class list is JSON, one set or
several by name::

    {"pets": {"classes": ["beagle", ["tabby", "tabby cat"]], "templates": ["a photo of a {}."]}}

A class that is a list has synonyms: one concept, named by the first, asked for under every name. A name that comes
twice stands for two concepts ("missile" and "missile#2"), as the set meant them. With several sets a concept is named
``set/class``.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import InputError, UsageError

SLOT = "{}"


@dataclass(frozen=True, slots=True)
class Query:
    """One text to search with.

    Attributes:
        text: what is encoded.
        concept: what it is about; several queries may share it.
        name: the words for the concept that ``text`` holds; the text itself without a template.
        template: the template with its slot ``{}``; empty without one.
    """

    text: str
    concept: str
    name: str
    template: str = ""


def read_queries(path: Path) -> list[Query]:
    """Read queries from a ``.txt`` file (one a line) or a ``.json`` class list; see the module.

    Raises:
        UsageError: when the file is missing or ends otherwise.
        InputError: when its content is not as described, or holds no query.
    """
    if path.suffix.lower() not in {".txt", ".json"}:
        raise UsageError(f"{path}: queries are a .txt file (one a line) or a .json class list with templates.")
    try:
        content = path.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError):
        raise UsageError(f"{path}: no such file.") from None
    except UnicodeDecodeError as error:
        raise InputError(f"byte {error.start} is not UTF-8", where=str(path), mend="Save the file as UTF-8.") from None
    if path.suffix.lower() == ".txt":
        queries = text_queries(content.splitlines())
    else:
        queries = class_queries(_parsed(content, path), where=str(path))
    if not queries:
        raise InputError("no queries", where=str(path), mend="Give at least one line, or one class and one template.")
    return queries


def text_queries(lines: Iterable[str]) -> list[Query]:
    """Return a query for each line, its own concept; blank lines are none."""
    return [Query(text, text, text) for line in lines if (text := line.strip())]


def class_queries(content: Any, *, where: str = "classes") -> list[Query]:
    """Return the queries of a class list, a JSON value as the module describes it.

    Raises:
        InputError: naming the set and the class or template that is wrong.
    """
    if not isinstance(content, dict):
        raise InputError("not an object", where=where, mend='Give {"classes": [...], "templates": [...]}.')
    if "classes" in content or "templates" in content:
        return list(_expanded(content, "", where))
    several = len(content) > 1
    return [
        query
        for name, one in content.items()
        for query in _expanded(one, f"{name}/" if several else "", f"{where}, {name}")
    ]


def _expanded(one: Any, prefix: str, where: str) -> Iterator[Query]:
    if not isinstance(one, dict):
        raise InputError("not an object", where=where, mend='Give {"classes": [...], "templates": [...]}.')
    templates = _list(one, "templates", where)
    for template in templates:
        if not isinstance(template, str) or SLOT not in template:
            raise InputError(f"template {template!r} has no {SLOT}", where=where, mend=f"Write {SLOT} for the name.")
    taken: set[str] = set()
    for number, entry in enumerate(_list(one, "classes", where), start=1):
        names = _names(entry, f"{where}, class {number}")
        concept = _unused(names[0], taken)
        taken.add(concept)
        for name in names:
            for template in templates:
                yield Query(template.replace(SLOT, name), prefix + concept, name, template)


def _list(one: dict[str, Any], name: str, where: str) -> list[Any]:
    value = one.get(name)
    if not isinstance(value, list):
        raise InputError(f"no list {name!r}", where=where, mend='Give both "classes" and "templates".')
    return value


def _names(entry: Any, where: str) -> list[str]:
    names = [entry] if isinstance(entry, str) else entry
    if not isinstance(names, list) or not names or not all(isinstance(n, str) and n.strip() for n in names):
        raise InputError(f"{entry!r} is not a name or a list of names", where=where, mend="Mend or remove it.")
    return list(dict.fromkeys(name.strip() for name in names))


def _unused(name: str, taken: set[str]) -> str:
    candidate, ordinal = name, 2
    while candidate in taken:
        candidate, ordinal = f"{name}#{ordinal}", ordinal + 1
    return candidate


def _parsed(content: str, path: Path) -> Any:
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        raise InputError(
            f"not JSON ({error.msg})", where=f"{path} line {error.lineno}", mend="Mend the file."
        ) from None
