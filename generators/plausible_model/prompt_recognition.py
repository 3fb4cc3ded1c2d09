"""Recognition of pairwright's own prompts, and of their values, in chat requests."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from pairwright.generators.prompts.book import PromptBook

_VALUE = re.compile(r"(?P<label>.+?)\s*\{\{ (?P<name>\w+) \}\}")
_LOOP = re.compile(r"\{% for [\w, ]+ in (?P<name>\w+) %\}")
_PAIR = re.compile(r'(?P<key>"(?:[^"\\]|\\.)*"): (?P<value>.+)')


@dataclass(frozen=True, slots=True)
class RecognizedPrompt:
    """Name of a prompt, and the values that appear in the request."""

    name: str
    values: Mapping[str, Any]

    def text(self, name: str) -> str:
        """Return a text value; empty if absent."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a value that is a list of texts; empty if absent."""
        value = self.values.get(name)
        return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


@dataclass
class PromptRecognizer:
    """Recognizes requests made from the prompts of a book.

    Attributes:
        book: the prompts.
    """

    book: PromptBook = field(default_factory=PromptBook)

    def __post_init__(self) -> None:
        """Load the prompts, longest system text first, since one may be a prefix of another."""
        prompts = [each.with_image(sees=sees) for each in self.book.listing() for sees in (False, True)]
        self._prompts = sorted(prompts, key=lambda prompt: -len(prompt.messages[0].text))
        self._layouts = {prompt.name: _PromptLayout.of(prompt.user) for prompt in prompts}

    def read(self, messages: Sequence[tuple[str, str]]) -> RecognizedPrompt | None:
        """Return the prompt of a request and its values; None if it is not in the book.

        Args:
            messages: role and text of each message. The last user message with values is used; an answer and a repair
                request may follow it.
        """
        system = "\n".join(text for role, text in messages if role in {"system", "developer"}) or messages[0][1]
        prompt = next((each for each in self._prompts if each.messages[0].text in system), None)
        if prompt is None:
            return None
        for role, text in reversed(messages):
            values = self._layouts[prompt.name].read(text) if role == "user" else {}
            if values:
                return RecognizedPrompt(prompt.name, values)
        return None


@dataclass(frozen=True, slots=True)
class _PromptLayout:
    """Positions of values in a template: on a line after a label, or one on each line below a heading."""

    labels: Mapping[str, str]
    headings: Mapping[str, str]

    @classmethod
    def of(cls, template: str) -> "_PromptLayout":
        labels: dict[str, str] = {}
        headings: dict[str, str] = {}
        heading = ""
        for line in template.splitlines():
            if loop := _LOOP.fullmatch(line.strip()):
                headings[heading] = loop["name"]
            elif (value := _VALUE.fullmatch(line.strip())) and "}}" not in value["label"]:
                labels[value["label"]] = value["name"]
            elif not line.startswith("{"):
                heading = line.strip()
        return cls(labels, headings)

    def read(self, text: str) -> dict[str, Any]:
        values: dict[str, Any] = {}
        section = ""
        for line in text.splitlines():
            label = next((label for label in self.labels if line.startswith(f"{label} ")), "")
            if line.strip() in self.headings:
                section = self.headings[line.strip()]
                values[section] = []
            elif label:
                section = ""
                value = _loaded(line[len(label) :])
                if value is not None:
                    values[self.labels[label]] = value
            elif section and (pair := _PAIR.fullmatch(line)):
                values[section].append((_loaded(pair["key"]), _loaded(pair["value"])))
            elif section and (value := _loaded(line)) is not None:
                values[section].append(value)
        return values


def _loaded(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
