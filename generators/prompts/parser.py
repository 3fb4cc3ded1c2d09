"""Parser for prompt files (keys: `prompts.book`); errors name file and line.

A file is validated completely before anything is sent: unknown keys, wrong types, templates with undeclared values,
demonstrations with missing values or answers of the wrong type.
"""

import re
from collections.abc import Callable, Mapping
from json import dumps
from pathlib import Path
from typing import Any, Literal, cast

from pairwright.datasets.errors import ConfigError, PairwrightError
from pairwright.generators.llm.client.messages import Message, Schema
from pairwright.generators.prompts.prompt import IMAGE_NOTICE, Prompt, system_message
from pairwright.generators.prompts.strict_yaml import NodePath
from pairwright.generators.prompts.templates import Template, TemplateError
from pairwright.generators.prompts.yaml_file import YamlFile, suggestion

_REQUIRED = ("version", "about", "system", "user", "answer")
_OPTIONAL = ("values", "demonstrations", "lists", "schema", "typical", "with_image")
_WITH_IMAGE = ("system", "demonstrations")
# name -> minimum, maximum, whether it is an integer
_NUMBERS: Mapping[str, tuple[float, float, bool]] = {
    "temperature": (0, 2, False),
    "top_p": (0, 1, False),
    "max_tokens": (1, 1_000_000, True),
}
_OTHER_SYNTAX = r"\$%s\b|\$?\{%s\}"  # a value as Python's formats and templates have it
PROMPT_KEYS = (*_REQUIRED, *_OPTIONAL, *_NUMBERS, "stop")


def load_prompt(path: Path) -> Prompt:
    """Read a prompt file; its name without the extension is the prompt's name.

    Raises:
        ConfigError: it is invalid; the message names file and line.
        OSError: it cannot be read.
    """
    return _PromptParser(path).prompt()


class _PromptParser(YamlFile):
    """Parser of one prompt file."""

    def prompt(self) -> Prompt:
        self._check_keys(self.content, PROMPT_KEYS)
        for key in _REQUIRED:
            if key not in self.content:
                self._refuse((), f"the key '{key}' is missing. Add it.")
        name = self._path.stem
        values, template = self._values(), self._template()
        for needed in sorted(template.needs - values.keys()):
            self._refuse(
                ("user",),
                f"'{needed}' is not among the values.{suggestion(needed, values)}"
                f" Add it under 'values' with a description, such as {{{needed}: the {needed}}}.",
            )
        for unused in sorted(values.keys() - template.needs):
            if found := re.search(_OTHER_SYNTAX % (unused, unused), self._text("user")):
                self._refuse(("user",), f"'{found[0]}' would be sent as it is. Write '{{{{ {unused} }}}}'.")
        answer = cast("Literal['text', 'json']", self._choice("answer", ("text", "json")))
        turns = self._demonstrations(template, answer, "demonstrations")
        schema = self._mapping("schema") if "schema" in self.content else None
        return Prompt(
            name=name,
            version=self._whole("version"),
            about=self._line("about"),
            values=values,
            messages=(system_message(self._text("system")), *turns),
            user=self._text("user"),
            answer=answer,
            parameters=self._parameters(),
            schema=None if schema is None else Schema(name.replace("-", "_"), schema),
            typical=self._typical(answer, turns),
            lists=self._lists(),
            source=self._path,
            lines=self._lines,
            template=template,
            image_messages=self._with_image(template, answer, turns),
        )

    def _with_image(self, template: Template, answer: str, turns: list[Message]) -> tuple[Message, ...]:
        """Return the fixed turns of requests with the image: those of ``with_image``, else the usual ones."""
        own = self._mapping("with_image") if "with_image" in self.content else {}
        self._check_keys(own, _WITH_IMAGE, "with_image")
        if "demonstrations" in own:
            turns = self._demonstrations(template, answer, "with_image", "demonstrations")
        if "system" in own:
            return system_message(self._text("with_image", "system")), *turns
        return system_message(self._text("system"), notice=IMAGE_NOTICE), *turns

    def _line(self, *place: str | int) -> str:
        text = self._text(*place)
        if "\n" in text:
            self._refuse(place, f"'{'.'.join(map(str, place))}' is longer than one line. Shorten it.")
        return text

    def _whole(self, key: str) -> int:
        number: int = self._at((key,), int, "whole number")
        return number

    def _choice(self, key: str, choices: tuple[str, ...]) -> str:
        if self.content[key] not in choices:
            self._refuse((key,), f"'{key}' is neither {' nor '.join(choices)}. Write one of them.")
        chosen: str = self.content[key]
        return chosen

    def _values(self) -> dict[str, str]:
        if "values" not in self.content:
            return {}
        for name in self._mapping("values"):
            if not name.isidentifier() or name.startswith("_") or name == "loop":
                self._refuse(("values", name), f"'{name}' is not a valid name of a value. Use letters, digits and '_'.")
        return {name: self._line("values", name) for name in self._mapping("values")}

    def _template(self) -> Template:
        source = self._text("user")
        try:
            return Template(source)
        except TemplateError as error:
            first = self._lines.get(("user",), 1)
            # The lines of a block ('user: |') start below its key.
            line = first + error.line if "\n" in self.content["user"] else first
            raise ConfigError(f"{self._path}:{line}: {error.what}. Fix the template.") from None

    def _demonstrations(self, template: Template, answer: str, *key: str | int) -> list[Message]:
        turns: list[Message] = []
        for at in range(len(self._at(key, list, "list")) if key[0] in self.content else 0):
            place: NodePath = (*key, at)
            if (keys := set(self._mapping(*place))) != {"values", "answer"}:
                wrong = ", ".join(sorted(keys ^ {"values", "answer"}))
                self._refuse(place, f"a demonstration has exactly the keys 'values' and 'answer' ({wrong}).")
            values = self._mapping(*place, "values")
            for needed in sorted(template.needs - values.keys()):
                self._refuse((*place, "values"), f"the value '{needed}' is missing. Add it.")
            for name in sorted(values.keys() - set(self.content.get("values", ()))):
                self._refuse((*place, "values", name), f"'{name}' is not among the values. Remove it.")
            question = self._tried((*place, "values"), lambda given=values: template.render(given))  # type: ignore[misc]
            turns += [Message("user", question), Message("assistant", self._answer((*place, "answer"), answer))]
        return turns

    def _tried(self, place: NodePath, render: Callable[[], str]) -> str:
        try:
            return render()
        except PairwrightError as error:
            self._refuse(place, str(error))

    def _answer(self, place: NodePath, kind: str) -> str:
        if kind == "text":
            return self._text(*place)
        value = self._at(place, (dict, list), "mapping")
        return dumps(value, ensure_ascii=False)

    def _typical(self, answer: str, turns: list[Message]) -> str:
        if "typical" in self.content:
            return self._answer(("typical",), answer)
        if not turns:
            self._refuse((), "'typical' is required without demonstrations, for cost estimates. Add it.")
        return turns[1].text

    def _lists(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for name in self._mapping("lists") if "lists" in self.content else ():
            count = len(self._at(("lists", name), list, "list"))
            found[name] = tuple(self._text("lists", name, at) for at in range(count))
            if not count or len(set(found[name])) < count:
                self._refuse(("lists", name), f"the list '{name}' is empty or has duplicates. Fix it.")
        return found

    def _parameters(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, (low, high, whole) in _NUMBERS.items():
            if name in self.content:
                number = self._at((name,), int if whole else (int, float), "whole number" if whole else "number")
                if not low <= number <= high:
                    self._refuse((name,), f"'{name}' is not between {low:g} and {high:g}. Change it.")
                found[name] = number
        if "stop" in self.content:
            count = len(self._at(("stop",), list, "list"))
            if not 1 <= count <= 4:
                self._refuse(("stop",), "'stop' takes one to four texts. Change it.")
            found["stop"] = [self._at(("stop", at), str, "text") for at in range(count)]
        return found
