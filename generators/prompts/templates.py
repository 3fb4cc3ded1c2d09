"""Templates of a prompt's user message: a safe subset of Jinja2.

A template may print a value, loop over one and test one, and nothing else:

    Caption: {{ caption }}
    {% for label, box in boxes %}
    {{ label }}: {{ box }}
    {% endfor %}

**Values are data, not instructions.** Every printed value is written as JSON, so a text is in double quotes with inner
quotes escaped: no caption can end its own string. Line breaks, invisible and bidirectional characters and lone
surrogates are escaped, so none of them affects the layout of the message. Special tokens of chat templates are escaped,
too (`special_tokens`). This applies to every value and cannot be turned off. Values are never parsed as templates.

**Templates are untrusted.** They are checked against a list of allowed nodes before compilation: no calls, filters,
attributes, arithmetic or includes, and a nested loop only over an item of the outer loop, so the output grows linearly
with the values. The rest runs in Jinja's sandbox, and rendering stops at `MAX_LENGTH` characters.
"""

import json
import re
from collections.abc import Iterator, Mapping
from json.encoder import encode_basestring
from math import isfinite
from typing import Any

from jinja2 import StrictUndefined, TemplateSyntaxError, nodes
from jinja2.exceptions import TemplateRuntimeError
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.special_tokens import escape_special_tokens

MAX_LENGTH = 1_000_000  # characters of one message

_RESERVED = frozenset({"self", "super", "caller", "varargs", "kwargs"})  # special names of Jinja
_LOOP = frozenset({"index", "first", "last"})
_ALLOWED_COMPARISONS = frozenset({"eq", "ne", "lt", "lteq", "gt", "gteq"})
_ALLOWED = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.Tuple, nodes.For, nodes.If,
    nodes.CondExpr, nodes.Compare, nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.Getitem, nodes.Getattr,
)  # fmt: skip
_NAMES: Mapping[type[nodes.Node], str] = {
    nodes.Call: "a call", nodes.Filter: "a filter", nodes.Test: "a test with 'is'", nodes.Assign: "'set'",
    nodes.AssignBlock: "'set'", nodes.Include: "'include'", nodes.Import: "'import'", nodes.FromImport: "'import'",
    nodes.Extends: "'extends'", nodes.Macro: "'macro'", nodes.List: "a list", nodes.Dict: "a mapping",
    nodes.Slice: "a slice", nodes.Concat: "'~'", nodes.Block: "'block'", nodes.CallBlock: "'call'",
    nodes.FilterBlock: "'filter'", nodes.With: "'with'", nodes.Scope: "'autoescape'",
}  # fmt: skip

# Invisible or reordering characters: controls, zero-width and bidirectional characters, line and paragraph separators,
# fillers, surrogates, tag characters. Variation selector 16 is part of emoji.
_HIDDEN = re.compile(
    "[\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff0-\uffff\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


class TemplateError(Exception):
    """Invalid or disallowed template; ``line`` counts from 1 in the template."""

    def __init__(self, what: str, line: int | None) -> None:
        super().__init__(what)
        self.what, self.line = what, line or 1  # some nodes have no line


def json_for_prompt(value: Any) -> str:
    """Return a value as one line of JSON with invisible characters and special tokens escaped.

    Raises:
        TypeError: the value is no text, number, bool, list or mapping.
        ValueError: a number is not finite.
    """
    kind = type(value)
    if kind is str:
        quoted = escape_special_tokens(encode_basestring(value))  # called by `json.dumps`, without creating an encoder
        return quoted if value.isascii() and value.isprintable() else _HIDDEN.sub(_escape, quoted)
    if kind is float:
        return repr(value) if isfinite(value) else json.dumps(value, allow_nan=False)  # raises
    if kind is int or kind is bool:
        return repr(value).lower()
    if isinstance(value, Undefined):
        return str(value)  # raises with the name of the missing value
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(json_for_prompt, value)) + "]"
    if isinstance(value, Mapping):
        return (
            "{"
            + ", ".join(f"{json_for_prompt(str(name))}: {json_for_prompt(inner)}" for name, inner in value.items())
            + "}"
        )
    raise TypeError(f"a value of type {kind.__name__} cannot be written")


def _escape(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1] if match[0] != "\x7f" else "\\u007f"


_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, finalize=json_for_prompt, autoescape=False, trim_blocks=True, lstrip_blocks=True
)
for _table in (_ENVIRONMENT.globals, _ENVIRONMENT.filters, _ENVIRONMENT.tests):
    _table.clear()


class Template:
    """A checked and compiled template.

    Attributes:
        needs: names of the values that it uses.
    """

    def __init__(self, source: str) -> None:
        """Check and compile the template.

        Raises:
            TemplateError: it is invalid or uses a disallowed feature.
        """
        self._source = source
        try:
            tree = _ENVIRONMENT.parse(source)
            _check(tree, None)
            self.needs = frozenset(find_undeclared_variables(tree))
            self._compiled = _ENVIRONMENT.from_string(tree)
        except TemplateSyntaxError as error:
            raise TemplateError(str(error.message), error.lineno) from None
        except (RecursionError, SyntaxError, MemoryError):
            raise TemplateError("it is nested too deeply", 1) from None

    def __reduce__(self) -> tuple[object, tuple[str]]:
        """Pickle the source: compiled templates cannot be pickled."""
        return Template, (self._source,)

    def render(self, values: Mapping[str, object]) -> str:
        """Return the message, stripped of surrounding white space.

        Raises:
            UsageError: a value is missing or of a type that the template cannot use.
            RequestError: ``request_too_large`` beyond `MAX_LENGTH` characters, ``bad_request`` for NaN or infinity.
        """
        try:
            text = "".join(_limit_length(self._compiled.root_render_func(self._compiled.new_context(dict(values)))))
        except TemplateRuntimeError as error:
            raise UsageError(f"the template uses a missing value: {error.message}.") from None
        except ValueError as error:
            if "JSON compliant" in str(error):
                raise RequestError("bad_request", "a value is not a finite number") from None
            raise UsageError(f"the template does not fit the values: {error}.") from None
        except TypeError as error:
            raise UsageError(f"the template does not fit the values: {error}.") from None
        return text.strip()


def _limit_length(pieces: Iterator[str]) -> Iterator[str]:
    letters = 0
    for piece in pieces:
        letters += len(piece)
        if letters > MAX_LENGTH:
            raise RequestError("request_too_large", f"a message of more than {MAX_LENGTH:,} characters")
        yield piece


def _check(node: nodes.Node, loop: frozenset[str] | None) -> None:
    """Reject disallowed nodes. ``loop``: names bound by the innermost loop; None outside of loops."""
    if not isinstance(node, _ALLOWED):
        raise TemplateError(f"{_NAMES.get(type(node), type(node).__name__)} is not allowed in a prompt", node.lineno)
    if isinstance(node, nodes.Getattr) and not (_is_name(node.node, "loop") and node.attr in _LOOP and loop):
        raise TemplateError(f"'.{node.attr}' is not allowed in a prompt; for a mapping write [\"...\"]", node.lineno)
    if isinstance(node, nodes.Getitem) and not isinstance(node.arg, nodes.Const):
        raise TemplateError('only ["name"] and [number] are allowed after a value', node.lineno)
    if isinstance(node, nodes.Operand) and node.op not in _ALLOWED_COMPARISONS:
        raise TemplateError(f"'{node.op}' is not allowed in a prompt", node.lineno)
    if isinstance(node, nodes.Name) and (node.name.startswith("_") or node.name in _RESERVED):
        raise TemplateError(f"'{node.name}' is not a valid name of a value", node.lineno)
    if isinstance(node, nodes.For):
        _check_loop(node, loop)
        loop = frozenset(name.name for name in node.target.find_all(nodes.Name)) | _loop_targets(node.target)
    for child in node.iter_child_nodes():
        _check(child, loop)


def _check_loop(node: nodes.For, around: frozenset[str] | None) -> None:
    over = node.iter
    while isinstance(over, nodes.Getitem):
        over = over.node
    if not isinstance(over, nodes.Name) or node.recursive or node.test is not None:
        raise TemplateError("a loop must iterate over a value: {% for item in items %}", node.lineno)
    if around is not None and over.name not in around:
        raise TemplateError(
            f"a nested loop must iterate over an item of the outer loop, not '{over.name}'", node.lineno
        )


def _loop_targets(target: nodes.Node) -> frozenset[str]:
    return frozenset({target.name}) if isinstance(target, nodes.Name) else frozenset()


def _is_name(node: nodes.Node, name: str) -> bool:
    return isinstance(node, nodes.Name) and node.name == name
