"""Reading and checking a task file; `rationales.tasks` tells what its keys are. Whatever is wrong is told with its line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from pairwright.datasets.errors import ConfigError, UsageError
from pairwright.generators.prompts.parser import suggestion
from pairwright.generators.prompts.strict_yaml import NodePath, YamlError, read_yaml
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
    """Return the names of our tasks."""
    return tuple(sorted(path.stem for path in BUILT_IN.glob("*.yaml")))


def open_task(named: str) -> TaskDefinition:
    """Return a task of ours by its name, or the user's by the path of its file.

    Raises:
        UsageError: when there is neither.
        ConfigError: when the file is broken, with file and line.
    """
    path = BUILT_IN / f"{named}.yaml"
    if named not in built_in_tasks():
        path = Path(named)
        if not path.is_file():
            raise UsageError(
                f"--task {named}: neither a task ({', '.join(built_in_tasks())}) nor a file.{suggestion(named, built_in_tasks())}"
            )
    return load_task(path)


def load_task(path: Path) -> TaskDefinition:
    """Read a task file; the task's name is the file's.

    Raises:
        ConfigError: when it is broken, with file and line.
    """
    content, lines = _read(path)
    reader = _TaskParser(path, content, lines)
    return reader.task()


def _read(path: Path) -> tuple[dict[str, Any], dict[NodePath, int]]:
    try:
        return read_yaml(path.read_bytes())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}). Check the path.") from None
    except YamlError as error:
        raise ConfigError(f"{path}:{error.line}: {error.what}. Mend the file.") from None


class _TaskParser:
    """Reads one file, part by part."""

    def __init__(self, path: Path, content: dict[str, Any], lines: Mapping[NodePath, int]) -> None:
        self._path, self._lines, self._given = path, lines, content
        self._content = {**self._likeness(), **content}

    def task(self) -> TaskDefinition:
        for key in self._given:
            if key not in TASK_KEYS:
                self._refuse(
                    (key,), f"unknown key '{key}'.{suggestion(key, TASK_KEYS)} The keys are {', '.join(TASK_KEYS)}."
                )
        for key in ("fields", "label", "input"):
            if key not in self._content:
                self._refuse((), f"the key '{key}' is missing. Add it, or 'like' and a task of ours.")
        fields = self._fields()
        labels, columns, choices_in = self._label(fields)
        instructions = self._text("instructions")
        # Instructions of the user's own do not go with the prompt of the task that this one is like.
        prompt = "" if "instructions" in self._given and "prompt" not in self._given else self._text("prompt")
        if bool(prompt) == bool(instructions):
            self._refuse((), "a task has either 'prompt' or 'instructions'. Write one of them.")
        demonstrations = self._demonstrations(fields, labels, choices_in)
        return TaskDefinition(
            name=self._path.stem,
            about=self._text("about"),
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

    def _likeness(self) -> dict[str, Any]:
        if "like" not in self._given:
            return {}
        if self._given["like"] not in built_in_tasks():
            self._refuse(("like",), f"'like' is none of our tasks. They are {', '.join(built_in_tasks())}.")
        content, _ = _read(BUILT_IN / f"{self._given['like']}.yaml")
        return content

    def _refuse(self, place: NodePath, what: str) -> NoReturn:
        while place and place not in self._lines:
            place = place[:-1]
        raise ConfigError(f"{self._path}:{self._lines.get(place, 1)}: {what}")

    def _text(self, key: str) -> str:
        text = self._content.get(key, "")
        if not isinstance(text, str):
            self._refuse((key,), f"'{key}' is no text. Write one.")
        return text.strip()

    def _fields(self) -> dict[str, Columns]:
        given = self._content["fields"]
        if not isinstance(given, dict) or not given:
            self._refuse(("fields",), "'fields' is no mapping. Write NAME: [COLUMN, ...].")
        fields: dict[str, Columns] = {}
        for name, places in given.items():
            columns = parse_columns(places)
            if columns is None:
                self._refuse(("fields", name), f"'{name}' names no columns. Write {name}: [COLUMN, ...].")
            if not name.isidentifier() or name.startswith("_") or name in {"label", "loop"}:
                self._refuse(("fields", name), f"'{name}' is no name for a field. Use letters, digits and '_'.")
            fields[name] = columns
        return fields

    def _label(self, fields: Mapping[str, Columns]) -> tuple[Labels, Columns, str]:
        given = self._content["label"]
        if not isinstance(given, dict):
            self._refuse(("label",), "'label' is no mapping. Write kind, columns, and values where it is a set.")
        for key in given:
            if key not in _LABEL_KEYS:
                self._refuse(
                    ("label", key),
                    f"unknown key '{key}'.{suggestion(key, _LABEL_KEYS)} The keys are {', '.join(_LABEL_KEYS)}.",
                )
        kind = given.get("kind")
        if kind not in LABEL_KINDS:
            self._refuse(("label", "kind"), f"'kind' is none of {', '.join(LABEL_KINDS)}. Write one of them.")
        columns = parse_columns(given.get("columns", "label"))
        if columns is None:
            self._refuse(("label", "columns"), "'columns' names no columns. Write [COLUMN, ...].")
        values, also = given.get("values", []), given.get("also", {})
        if (kind == "set") != bool(values) or not _texts(values) or len(set(values)) < len(values):
            self._refuse(("label", "values"), "'values' lists the different answers of a set, and of a set alone.")
        if not isinstance(also, dict) or not also.keys() <= set(values) or not all(map(_texts, also.values())):
            self._refuse(("label", "also"), "'also' gives for values of 'values' lists of other words.")
        choices_in = given.get("of", "")
        if (kind == "choice") != (choices_in in fields):
            self._refuse(("label", "of"), "'of' names the field that holds the choices, for the kind choice alone.")
        words = {value: tuple(others) for value, others in also.items()}
        return Labels(kind, tuple(values), words), columns, choices_in

    def _input(self, fields: Mapping[str, Columns]) -> str:
        text = self._text("input")
        for name in template_fields(text):
            if name not in fields:
                self._refuse(("input",), f"'{name}' is no field.{suggestion(name, fields)}")
        if not any(True for _ in template_fields(text)):
            self._refuse(("input",), "'input' asks for no field. Write {NAME} where its text shall stand.")
        return text

    def _demonstrations(
        self, fields: Mapping[str, Columns], labels: Labels, choices_in: str
    ) -> tuple[Demonstration, ...]:
        given = self._content.get("demonstrations", [])
        if not isinstance(given, list):
            self._refuse(("demonstrations",), "'demonstrations' is no list. Write one.")
        wanted = {*fields, "label", "rationale"}
        found: list[Demonstration] = []
        for at, shown in enumerate(given):
            place: NodePath = ("demonstrations", at)
            if not isinstance(shown, dict) or shown.keys() != wanted:
                self._refuse(place, f"a demonstration has {', '.join(sorted(wanted))}, no more and no less.")
            values = {name: shown[name] for name in fields}
            try:
                label = labels.gold(shown["label"], tuple(values[choices_in]) if choices_in else ())
            except ValueError as error:
                self._refuse((*place, "label"), f"{error}. Correct it.")
            rationale = shown["rationale"]
            if not label or not isinstance(rationale, str) or not rationale.strip():
                self._refuse(place, "a demonstration has a rationale and a label that are not empty.")
            found.append(Demonstration(values, " ".join(rationale.split()), label))
        return tuple(found)


def _texts(given: Any) -> bool:
    return isinstance(given, list) and all(isinstance(each, str) and each.strip() for each in given)
