"""Parser for task files (keys: `rationales.tasks`); errors name file and line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pairwright.datasets.errors import ConfigError, UsageError
from pairwright.generators.prompts.strict_yaml import NodePath
from pairwright.generators.prompts.yaml_file import YamlFile, suggestion
from pairwright.generators.rationales.labels import LABEL_KINDS, Labels
from pairwright.generators.rationales.tasks import (
    Columns,
    Demonstration,
    TaskDefinition,
    parse_columns,
    template_fields,
)

BUILT_IN = Path(__file__).parents[1] / "tasks"
TASK_KEYS = ("like", "about", "fields", "label", "input", "prompt", "instructions", "demonstrations")
_LABEL_KEYS = ("kind", "columns", "values", "also", "of")


def built_in_tasks() -> tuple[str, ...]:
    """Return the names of the built-in tasks."""
    return tuple(sorted(path.stem for path in BUILT_IN.glob("*.yaml")))


def open_task(named: str) -> TaskDefinition:
    """Return a built-in task by name, or a user's task by the path of its file.

    Raises:
        UsageError: there is neither.
        ConfigError: the file is invalid, with file and line.
    """
    path = BUILT_IN / f"{named}.yaml"
    if named not in built_in_tasks():
        path = Path(named)
        if not path.is_file():
            raise UsageError(
                f"--task {named}: neither a built-in task ({', '.join(built_in_tasks())}) nor a file.{suggestion(named, built_in_tasks())}"
            )
    return load_task(path)


def load_task(path: Path) -> TaskDefinition:
    """Read a task file; its name without the extension is the task's name.

    Raises:
        ConfigError: it is invalid, with file and line.
    """
    try:
        return _TaskParser(path).task()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None


class _TaskParser(YamlFile):
    """Parser of one task file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._given = self.content
        self.content = {**self._base_task(), **self._given}

    def task(self) -> TaskDefinition:
        self._check_keys(self._given, TASK_KEYS)
        for key in ("fields", "label", "input"):
            if key not in self.content:
                self._refuse((), f"the key '{key}' is missing. Add it, or 'like' with a built-in task.")
        fields = self._fields()
        labels, columns, choices_in = self._label(fields)
        instructions = self._optional("instructions")
        # Own instructions replace the prompt of the base task.
        prompt = "" if "instructions" in self._given and "prompt" not in self._given else self._optional("prompt")
        if bool(prompt) == bool(instructions):
            self._refuse((), "a task has either 'prompt' or 'instructions'. Write one of them.")
        demonstrations = self._demonstrations(fields, labels, choices_in)
        return TaskDefinition(
            name=self._path.stem,
            about=self._optional("about"),
            fields=fields,
            labels=labels,
            label_columns=columns,
            choices_in=choices_in,
            input=self._input(fields),
            prompt=prompt,
            instructions=instructions,
            demonstrations=demonstrations,
            source=self._path,
        )

    def _base_task(self) -> dict[str, Any]:
        if "like" not in self._given:
            return {}
        if self._given["like"] not in built_in_tasks():
            self._refuse(("like",), f"'like' is not a built-in task. The tasks are {', '.join(built_in_tasks())}.")
        return YamlFile(BUILT_IN / f"{self._given['like']}.yaml").content

    def _optional(self, key: str) -> str:
        return self._text(key) if self.content.get(key, "") != "" else ""

    def _fields(self) -> dict[str, Columns]:
        fields: dict[str, Columns] = {}
        for name, places in self._mapping("fields").items():
            columns = parse_columns(places)
            if columns is None:
                self._refuse(("fields", name), f"'{name}' names no columns. Write {name}: [COLUMN, ...].")
            if not name.isidentifier() or name.startswith("_") or name in {"label", "loop"}:
                self._refuse(("fields", name), f"'{name}' is not a valid field name. Use letters, digits and '_'.")
            fields[name] = columns
        return fields

    def _label(self, fields: Mapping[str, Columns]) -> tuple[Labels, Columns, str]:
        given = self._mapping("label")
        self._check_keys(given, _LABEL_KEYS, "label")
        kind = given.get("kind")
        if kind not in LABEL_KINDS:
            self._refuse(("label", "kind"), f"'kind' is not one of {', '.join(LABEL_KINDS)}. Write one of them.")
        columns = parse_columns(given.get("columns", "label"))
        if columns is None:
            self._refuse(("label", "columns"), "'columns' names no columns. Write [COLUMN, ...].")
        values, also = given.get("values", []), given.get("also", {})
        if (kind == "set") != bool(values) or not _texts(values) or len(set(values)) < len(values):
            self._refuse(
                ("label", "values"), "'values' is required for kind set, and only for it: a list of different texts."
            )
        if not isinstance(also, dict) or not also.keys() <= set(values) or not all(map(_texts, also.values())):
            self._refuse(("label", "also"), "'also' must map values of 'values' to lists of aliases.")
        choices_in = given.get("of", "")
        if (kind == "choice") != (choices_in in fields):
            self._refuse(
                ("label", "of"),
                "'of' is required for kind choice, and only for it: the name of the field with the choices.",
            )
        words = {value: tuple(others) for value, others in also.items()}
        return Labels(kind, tuple(values), words), columns, choices_in

    def _input(self, fields: Mapping[str, Columns]) -> str:
        text = self._text("input")
        for name in template_fields(text):
            if name not in fields:
                self._refuse(("input",), f"'{name}' is not a field.{suggestion(name, fields)}")
        if not any(True for _ in template_fields(text)):
            self._refuse(("input",), "'input' contains no field. Write {NAME} for the text of a field.")
        return text

    def _demonstrations(
        self, fields: Mapping[str, Columns], labels: Labels, choices_in: str
    ) -> tuple[Demonstration, ...]:
        given = self._at(("demonstrations",), list, "list") if "demonstrations" in self.content else []
        wanted = {*fields, "label", "rationale"}
        found: list[Demonstration] = []
        for at, shown in enumerate(given):
            place: NodePath = ("demonstrations", at)
            if not isinstance(shown, dict) or shown.keys() != wanted:
                self._refuse(place, f"a demonstration has exactly the keys {', '.join(sorted(wanted))}.")
            values = {name: shown[name] for name in fields}
            try:
                label = labels.gold(shown["label"], tuple(values[choices_in]) if choices_in else ())
            except ValueError as error:
                self._refuse((*place, "label"), f"{error}. Correct it.")
            rationale = shown["rationale"]
            if not label or not isinstance(rationale, str) or not rationale.strip():
                self._refuse(place, "the rationale or the label of a demonstration is empty.")
            found.append(Demonstration(values, " ".join(rationale.split()), label))
        return tuple(found)


def _texts(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(each, str) and each.strip() for each in given)
