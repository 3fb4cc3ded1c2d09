"""Recognition of pairwright's own prompts in a chat request, and of the values that they were filled with."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from pairwright.generators.prompts.book import PromptBook
from pairwright.generators.prompts.prompt import Prompt

_VALUE = re.compile(r"(?P<label>.+?)\s*\{\{ (?P<name>\w+) \}\}")
_LOOP = re.compile(r"\{% for [\w, ]+ in (?P<name>\w+) %\}")
_PAIR = re.compile(r'(?P<key>"(?:[^"\\]|\\.)*"): (?P<value>.+)')


@dataclass(frozen=True, slots=True)
class RecognizedPrompt:
    """A prompt, and the values of one row that it was filled with; a value that the request does not show is absent."""

    prompt: Prompt
    values: Mapping[str, Any]

    def text(self, name: str) -> str:
        """Return a value that is a text; empty where it is absent."""
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a value that is a list of texts; empty where it is absent."""
        value = self.values.get(name)
        return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


@dataclass
class PromptRecognizer:
    """Recognizes requests that prompts of a book made.

    Attributes:
        book: the prompts.
    """

    book: PromptBook = field(default_factory=PromptBook)

    def __post_init__(self) -> None:
        """Read the prompts, longest system text first: one may begin as another does."""
        prompts = self.book.listing()
        self._prompts = sorted(prompts, key=lambda prompt: -len(prompt.messages[0].text))
        self._layouts = {prompt.name: _PromptLayout.of(prompt.user) for prompt in prompts}

    def read(self, messages: Sequence[tuple[str, str]]) -> RecognizedPrompt | None:
        """Return the prompt of a request and its values; None where it is none of the book's.

        Args:
            messages: role and text of each. The last user message that has the prompt's values counts: behind it may
                stand an answer and what was wrong with it.
        """
        said = "\n".join(text for role, text in messages if role in {"system", "developer"}) or messages[0][1]
        prompt = next((each for each in self._prompts if each.messages[0].text in said), None)
        if prompt is None:
            return None
        for role, text in reversed(messages):
            values = self._layouts[prompt.name].read(text) if role == "user" else {}
            if values:
                return RecognizedPrompt(prompt, values)
        return None


@dataclass(frozen=True, slots=True)
class _PromptLayout:
    """Where a template writes its values: on a line behind a label, or a line each below a heading."""

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
