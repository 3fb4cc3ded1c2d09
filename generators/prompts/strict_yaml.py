"""Strict YAML reader that also returns the line of each part, for error messages.

Only plain data is read. ``on``, ``off``, ``yes`` and ``no`` are strings, as in YAML 1.2 (a caption may contain them),
and so are dates and times; ``true``, ``false``, ``null`` and numbers have their types. Duplicate keys are errors, and so
are anchors and aliases, with which a small file can expand to a huge one.
"""

import re
from collections.abc import Iterator
from typing import Any

import yaml

MAX_BYTES = 1_000_000
MAX_DEPTH = 50

NodePath = tuple[str | int, ...]


class YamlError(Exception):
    """Invalid YAML; ``line`` counts from 1."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.what, self.line = what, line


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - declared so in PyYAML
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Reject anchors, aliases and deep nesting before they are constructed."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise YamlError("anchors (&) and aliases (*) are not allowed; write the value out", _line(event.start_mark))
        if self.depth > MAX_DEPTH:
            raise YamlError(f"it is nested deeper than {MAX_DEPTH} levels", _line(event.start_mark))
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


for _tag, _pattern, _first in (
    ("bool", r"true|false|True|False|TRUE|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))
# YAML 1.1 reads 010 as eight and 1:30 as ninety.
_Loader.add_constructor("tag:yaml.org,2002:int", lambda _, node: int(str(node.value)))


def read_yaml(content: bytes) -> tuple[dict[str, Any], dict[NodePath, int]]:
    """Parse a YAML mapping.

    Args:
        content: the file's bytes, UTF-8.

    Returns:
        The mapping; and path -> line, from 1, where a path is a tuple of keys and indices.

    Raises:
        YamlError: the content is too large, not UTF-8, not YAML, not a mapping, or uses a rejected feature.
    """
    if len(content) > MAX_BYTES:
        raise YamlError(f"it is larger than {MAX_BYTES:,} bytes", 1)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise YamlError("it is not UTF-8", content[: error.start].count(b"\n") + 1) from None
    try:
        return _read(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise YamlError(f"it is not YAML: {error.problem or error.context}", _line(mark)) from None
    except yaml.reader.ReaderError as error:
        raise YamlError(
            f"it contains a character that YAML does not allow (U+{_code(error.character):04X})", 1
        ) from None
    except ValueError:
        raise YamlError("it contains a number that is too long", 1) from None


def _line(mark: Any) -> int:
    return 1 if mark is None else int(mark.line) + 1


def _code(character: str | int | bytes) -> int:
    return character if isinstance(character, int) else ord(character)


def _read(text: str) -> tuple[dict[str, Any], dict[NodePath, int]]:
    loader = _Loader(text)
    node = loader.get_single_node()
    if not isinstance(node, yaml.MappingNode):
        raise YamlError("it is not a mapping", 1)
    lines = dict(_lines(node, ()))
    value: dict[str, Any] = loader.construct_document(node)
    return value, lines


def _lines(node: yaml.Node, place: NodePath) -> Iterator[tuple[NodePath, int]]:
    yield place, _line(node.start_mark)
    if isinstance(node, yaml.SequenceNode):
        for at, inner in enumerate(node.value):
            yield from _lines(inner, (*place, at))
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, inner in node.value:
            line = _line(key.start_mark)
            if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
                raise YamlError("a key is not a string", line)
            if key.value in seen:
                raise YamlError(f"duplicate key '{key.value}'", line)
            seen.add(key.value)
            yield from _lines(inner, (*place, key.value))
            yield (*place, key.value), line
