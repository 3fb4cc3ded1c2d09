"""Tasks of rationales as files: what a row holds, which answers there are, how the student's input reads.

Ours stand under ``generators/tasks`` (nli, mcqa, math, itm); a user's own is any YAML file. The keys:

    like             a task of ours: whatever this file leaves out is taken from there
    about            one line
    fields           name -> where it stands in a row: a column, or a list of columns of which the first that is there
                     counts; ``question.stem`` looks into an object, and a list in the list joins columns
    label            kind: set, choice, number or text (see `rationales.labels`); columns: as in fields; values and also
                     (value -> other words) of a set; of: the field that holds the choices
    input            the student's input; ``{name}`` stands for a field
    prompt           a prompt's name, or a prompt file beside this one
    instructions     in place of a prompt: what the model is told; a prompt is made of it
    demonstrations   the user's own, in place of the prompt's: a list of {each field, label, rationale}

The values of a prompt are the task's fields and ``label``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import orjson

from pairwright.generators.llm.client.messages import Message
from pairwright.generators.prompts.book import PromptBook, load_prompt
from pairwright.generators.prompts.prompt import UNTRUSTED_DATA_NOTICE, Prompt
from pairwright.generators.prompts.templates import Template
from pairwright.generators.rationales.labels import Labels

ANSWER_TEMPLATE = "So the answer is {label}."

_PLACE = re.compile(r"\{(\w+)\}")
_RULES = (
    "Rules:\n"
    "- If the right answer is given, explain why it is right. Do not say that it was given.\n"
    '- Two to four plain sentences on one line. The last one is exactly "So the answer is X." with the answer in place of'
    " X. Write nothing after it."
)
_PARAMETERS = {"temperature": 0.7, "max_tokens": 300}

Columns = tuple[tuple[str, ...], ...]
"""Where a value may stand, the first that is there counts; each is one column, or several that are joined."""


class TaskRowError(ValueError):
    """A row lacks a field, or holds what cannot be."""


@dataclass(frozen=True)
class Demonstration:
    """An example with its rationale and its label, as the user gives it."""

    values: Mapping[str, Any]
    rationale: str
    label: str


@dataclass(frozen=True)
class TaskRow:
    """A row of a task.

    Attributes:
        values: of the fields: texts, or lists of texts.
        input: what the student reads.
        gold: the right label; empty where nobody knows it.
        choices: of the row, for labels of the kind ``choice``.
        key: of its pair, for image-text matching; else empty.
    """

    values: Mapping[str, Any]
    input: str
    gold: str = ""
    choices: tuple[str, ...] = ()
    key: str = ""


@dataclass(frozen=True)
class TaskDefinition:
    """A task, read and checked.

    Attributes:
        name: nli, mcqa, math, itm, or the name of the user's file.
        about: one line.
        fields: name -> where it stands.
        labels: the answers that there are.
        label_columns: where the right one stands.
        choices_in: the field that holds a row's choices; empty where they are the same for all.
        input: template of the student's input.
        prompt: of the book, or the user's file; empty: made of ``instructions``.
        instructions: see the module.
        demonstrations: the user's, in place of the prompt's.
        source: the file.
    """

    name: str
    about: str
    fields: Mapping[str, Columns]
    labels: Labels
    label_columns: Columns
    choices_in: str
    input: str
    prompt: str
    instructions: str
    demonstrations: tuple[Demonstration, ...]
    source: Path = field(compare=False)

    def item(self, row: Mapping[str, Any], key: str = "") -> TaskRow:
        """Return a row as an item of the task.

        Raises:
            RowFault: when a field is missing, or the label is none of the task's.
        """
        values = {name: self._value(name, row) for name in self.fields}
        choices = tuple(values[self.choices_in]) if self.choices_in else ()
        try:
            gold = self.labels.gold(_found(row, self.label_columns), choices)
        except ValueError as error:
            raise TaskRowError(str(error)) from None
        return TaskRow(values, self.said(values), gold, choices, key)

    def said(self, values: Mapping[str, Any]) -> str:
        """Return the student's input."""
        return _PLACE.sub(lambda found: _plain(values[found[1]]), self.input).strip()

    def asked(self, item: TaskRow) -> str:
        """Return the texts of an item, as a model may say them again."""
        return " ".join(_plain(value) for value in item.values.values())

    def prompt_of(self, book: PromptBook, *, label_given: bool) -> Prompt:
        """Return the prompt by which a model is asked.

        Args:
            book: where prompts are looked up by name.
            label_given: whether it is told the right label; the user's demonstrations then are, too.

        Raises:
            UsageError: when there is no such prompt.
            ConfigError: when it is broken.
        """
        prompt = self._made() if not self.prompt else self._named(book)
        if not self.demonstrations:
            return prompt
        turns: list[Message] = []
        for shown in self.demonstrations:
            values = {**shown.values, "label": shown.label if label_given else ""}
            turns.append(Message("user", prompt.template.render(values)))
            turns.append(Message("assistant", f"{shown.rationale} {ANSWER_TEMPLATE.format(label=shown.label)}"))
        return replace(prompt, messages=(prompt.messages[0], *turns), typical=turns[1].text)

    def _named(self, book: PromptBook) -> Prompt:
        return load_prompt(self.source.parent / self.prompt) if self.prompt.endswith(".yaml") else book.get(self.prompt)

    def _made(self) -> Prompt:
        labels = f"\n\nThe answer is one of: {', '.join(self.labels.values)}." if self.labels.values else ""
        user = "\n".join(f"{_title(name)}: {{{{ {name} }}}}" for name in self.fields)
        user += "\n{% if label %}\nRight answer: {{ label }}\n{% endif %}"
        return Prompt(
            name=self.name,
            version=1,
            about=self.about,
            values={**dict.fromkeys(self.fields, "a field of the task"), "label": "the right answer, or nothing"},
            messages=(Message("system", f"{self.instructions}{labels}\n\n{_RULES}\n\n{UNTRUSTED_DATA_NOTICE}"),),
            user=user,
            answer="text",
            parameters=_PARAMETERS,
            schema=None,
            typical=f"This is what the text says, and nothing speaks against it. {ANSWER_TEMPLATE.format(label=[*self.labels.values, '1'][0])}",
            lists={},
            source=self.source,
            lines={},
            template=Template(user),
        )

    def _value(self, name: str, row: Mapping[str, Any]) -> Any:
        found = _found(row, self.fields[name])
        if name == self.choices_in:
            return _choices(found, name)
        if isinstance(found, list | tuple) and all(isinstance(each, str) for each in found) and found:
            return tuple(found)
        if isinstance(found, bool) or not isinstance(found, str | int | float) or not str(found).strip():
            told = " or ".join("+".join(columns) for columns in self.fields[name])
            raise TaskRowError(f"no {name} (a text in the column {told})")
        return str(found).strip()


def _found(row: Mapping[str, Any], places: Columns) -> Any:
    """Return what stands at the first of the places that the row has; None where it has none."""
    for columns in places:
        values = [_at(row, column) for column in columns]
        if all(value is not None for value in values):
            return values[0] if len(values) == 1 else "\n".join(str(value).strip() for value in values)
    return None


def _at(row: Mapping[str, Any], column: str) -> Any:
    if column in row:
        return row[column]
    value: Any = row
    for step in column.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return None
        value = value[step]
    return value


def _choices(found: Any, name: str) -> tuple[str, ...]:
    """Return the choices of a row: a list of texts, of objects with ``text``, or an object with a list ``text``."""
    if isinstance(found, str):
        try:
            found = orjson.loads(found)
        except orjson.JSONDecodeError:
            raise TaskRowError(f"{name} is no list (as JSON, in a text)") from None
    if isinstance(found, Mapping):
        found = found.get("text")
    if isinstance(found, list | tuple):
        texts = [str(each.get("text", "") if isinstance(each, Mapping) else each).strip() for each in found]
        if len(texts) > 1 and all(texts):
            return tuple(texts)
    raise TaskRowError(f"{name} is no list of two texts or more")


def _plain(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def template_fields(template: str) -> Iterator[str]:
    """Give the names of the fields that a student's input asks for."""
    yield from _PLACE.findall(template)


def parse_columns(given: Any) -> Columns | None:
    """Return where a value may stand, as a task file writes it; None when it is not written so."""
    places: Sequence[Any] = given if isinstance(given, list) else [given]
    found = [tuple(place) if isinstance(place, list) else (place,) for place in places]
    if not found or not all(columns and all(isinstance(column, str) for column in columns) for columns in found):
        return None
    return tuple(found)
