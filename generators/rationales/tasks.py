"""Rationale tasks: the fields of a row, its labels, the student's input and the prompt.

The built-in tasks (nli, mcqa, math, itm) are under ``generators/tasks``; a user's task is any YAML file. The keys:

    like             a built-in task whose values are the defaults of this file
    about            one line
    fields           name -> column, or a list of columns of which the first present one is used; ``question.stem`` is a
                     key in an object, and a list in the list joins columns
    label            kind: set, choice, number or text (see `rationales.labels`); columns: as in fields; values and also
                     (value -> aliases) for a set; of: the field with the choices
    input            the student's input; ``{name}`` is replaced by a field
    prompt           a prompt's name, or a prompt file in the folder of this file
    instructions     instead of a prompt: instructions from which a prompt is made
    demonstrations   instead of the prompt's demonstrations: a list of {each field, label, rationale}

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
from pairwright.generators.prompts.prompt import IMAGE_NOTICE, Prompt, system_message
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
"""Alternative columns of a value, of which the first present one is used; each is one column or several joined ones."""


class TaskRowError(ValueError):
    """A row lacks a field or has an invalid value."""


@dataclass(frozen=True)
class Demonstration:
    """A demonstration of a task file."""

    values: Mapping[str, Any]
    rationale: str
    label: str


@dataclass(frozen=True)
class TaskRow:
    """A row of a task.

    Attributes:
        values: field -> text or tuple of texts.
        input: input of the student.
        gold: the gold label; empty if unknown.
        choices: choices of the row, for labels of kind ``choice``.
        key: key of its pair, for image-text matching; else empty.
        image: locator of its image; empty if it has none.
    """

    values: Mapping[str, Any]
    input: str
    gold: str = ""
    choices: tuple[str, ...] = ()
    key: str = ""
    image: str = ""


@dataclass(frozen=True)
class TaskDefinition:
    """A validated task.

    Attributes:
        name: file name without extension.
        about: one line.
        fields: field -> columns.
        labels: the labels.
        label_columns: columns of the gold label.
        choices_in: field with a row's choices; empty for other kinds of labels.
        input: template of the student's input.
        prompt: name of a prompt, or a file; empty: made from ``instructions``.
        instructions: see the module.
        demonstrations: demonstrations that replace those of the prompt.
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
        """Return the task row of a row of the source.

        Args:
            row: column -> value.
            key: key of the row's pair, or empty.

        Raises:
            TaskRowError: a field is missing, or the label is not a label of the task.
        """
        values = {name: self._value(name, row) for name in self.fields}
        choices = tuple(values[self.choices_in]) if self.choices_in else ()
        try:
            gold = self.labels.gold(_found(row, self.label_columns), choices)
        except ValueError as error:
            raise TaskRowError(str(error)) from None
        image = row.get("image")
        return TaskRow(values, self.render_input(values), gold, choices, key, image if isinstance(image, str) else "")

    def render_input(self, values: Mapping[str, Any]) -> str:
        """Return the student's input."""
        return _PLACE.sub(lambda found: _plain(values[found[1]]), self.input).strip()

    def question(self, item: TaskRow) -> str:
        """Return the texts of a row, which a model may repeat."""
        return " ".join(_plain(value) for value in item.values.values())

    def build_prompt(self, book: PromptBook, *, label_given: bool, see_image: bool = False) -> Prompt:
        """Return the prompt of the task.

        Args:
            book: prompts by name.
            label_given: whether the prompt shows the gold label; then own demonstrations show theirs, too.
            see_image: whether the image of a row is sent.

        Raises:
            UsageError: there is no such prompt.
            ConfigError: the prompt is invalid.
        """
        prompt = (self._made() if not self.prompt else self._named(book)).with_image(sees=see_image)
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
        system = f"{self.instructions}{labels}\n\n{_RULES}"
        user = "\n".join(f"{_title(name)}: {{{{ {name} }}}}" for name in self.fields)
        user += "\n{% if label %}\nRight answer: {{ label }}\n{% endif %}"
        return Prompt(
            name=self.name,
            version=1,
            about=self.about,
            values={**dict.fromkeys(self.fields, "a field of the task"), "label": "the right answer, or nothing"},
            messages=(system_message(system),),
            user=user,
            answer="text",
            parameters=_PARAMETERS,
            schema=None,
            typical=f"This is what the text says, and nothing speaks against it. {ANSWER_TEMPLATE.format(label=[*self.labels.values, '1'][0])}",
            lists={},
            source=self.source,
            lines={},
            template=Template(user),
            image_messages=(system_message(system, notice=IMAGE_NOTICE),),
        )

    def _value(self, name: str, row: Mapping[str, Any]) -> Any:
        found = _found(row, self.fields[name])
        if name == self.choices_in:
            return _choices(found, name)
        if isinstance(found, list | tuple) and all(isinstance(each, str) for each in found) and found:
            return tuple(found)
        if isinstance(found, bool) or not isinstance(found, str | int | float) or not str(found).strip():
            columns = " or ".join("+".join(joined) for joined in self.fields[name])
            raise TaskRowError(f"no text for the field `{name}` (column {columns})")
        return str(found).strip()


def _found(row: Mapping[str, Any], places: Columns) -> Any:
    """Return the value of the first alternative whose columns are all present, or None."""
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
    """Return the choices of a row from a list of texts or of objects with ``text``, or an object with a list ``text``."""
    if isinstance(found, str):
        try:
            found = orjson.loads(found)
        except orjson.JSONDecodeError:
            raise TaskRowError(f"{name} is not a JSON list") from None
    if isinstance(found, Mapping):
        found = found.get("text")
    if isinstance(found, list | tuple):
        texts = [str(each.get("text", "") if isinstance(each, Mapping) else each).strip() for each in found]
        if len(texts) > 1 and all(texts):
            return tuple(texts)
    raise TaskRowError(f"{name} is not a list of at least two texts")


def _plain(value: Any) -> str:
    return ", ".join(value) if isinstance(value, tuple) else str(value)


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def template_fields(template: str) -> Iterator[str]:
    """Yield the fields of a template of the student's input."""
    yield from _PLACE.findall(template)


def parse_columns(given: Any) -> Columns | None:
    """Return the columns of a value as given in a task file; None if they are invalid."""
    places: Sequence[Any] = given if isinstance(given, list) else [given]
    found = [tuple(place) if isinstance(place, list) else (place,) for place in places]
    if not found or not all(columns and all(isinstance(column, str) for column in columns) for columns in found):
        return None
    return tuple(found)
