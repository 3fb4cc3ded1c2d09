"""Recipe reader: YAML, single settings changed by --set, and one-line error messages."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from pairwright.datasets.errors import ConfigError, UsageError
from pairwright.datasets.suggestions import did_you_mean, suggest_alternatives
from pairwright.training.finetuning.settings import FinetuningRecipe
from pairwright.training.recipes.names import RECIPES_FOLDER, recipe_names
from pairwright.training.recipes.schema import Recipe

_SCHEMAS: tuple[type[Recipe | FinetuningRecipe], ...] = (Recipe, FinetuningRecipe)
_METHODS: dict[str, tuple[type[Recipe | FinetuningRecipe], type[BaseModel]]] = {
    kind: (schema, method)
    for schema in _SCHEMAS
    for method in get_args(schema.model_fields["method"].annotation)
    for kind in get_args(method.model_fields["kind"].annotation)
}
_QUOTED = re.compile(r"'([^']*)'")


def read_recipe(name: str, changes: Sequence[str] = ()) -> Recipe | FinetuningRecipe:
    """Read a recipe.

    Args:
        name: of a built-in recipe, or the path of a YAML file.
        changes: ``key=value`` with a dotted key (``optimizer.lr=1e-5``) and a YAML value.

    Raises:
        ConfigError: no such recipe, or invalid settings.
        UsageError: a change that is not ``key=value``.
    """
    path = RECIPES_FOLDER / f"{name}.yaml" if name in recipe_names() else Path(name)
    settings = _settings(path, name)
    for change in changes:
        _change(settings, change)
    schema = _schema(settings)
    try:
        return schema.model_validate(settings)
    except ValidationError as error:
        raise ConfigError("\n".join(f"{name}: {message}" for message in _messages(error, schema))) from None


def _schema(settings: dict[str, Any]) -> type[Recipe | FinetuningRecipe]:
    """Return the schema with the method's kind; `Recipe` for an unknown one."""
    method = settings.get("method")
    kind = method.get("kind") if isinstance(method, dict) else None
    return _METHODS[kind][0] if isinstance(kind, str) and kind in _METHODS else Recipe


def _settings(path: Path, name: str) -> dict[str, Any]:
    try:
        settings = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        if path.suffix in {".yaml", ".yml"}:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise ConfigError(f"{path}: cannot be read ({why}). Check the path, or name a built-in recipe.") from None
        raise ConfigError(
            f"no recipe {name!r}. {suggest_alternatives([name], recipe_names())}; or pass a YAML file."
        ) from None
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        line = f":{place.line + 1}" if place else ""
        raise ConfigError(f"{path}{line}: not YAML: {getattr(error, 'problem', error)}. Fix that line.") from None
    if not isinstance(settings, dict):
        raise ConfigError(f"{path}: no settings. Start from a copy of a built-in recipe in {RECIPES_FOLDER}.")
    return settings


def _change(settings: dict[str, Any], change: str) -> None:
    key, sign, value = change.partition("=")
    if not sign or not all(key.split(".")):
        raise UsageError(f"--set {change}: expected key=value, such as optimizer.lr=1e-5.")
    *outer, last = key.split(".")
    for step in outer:
        inner = settings.get(step)
        settings[step] = inner if isinstance(inner, dict) else {}
        settings = settings[step]
    try:
        settings[last] = yaml.safe_load(value)
    except yaml.YAMLError:
        settings[last] = value


def _messages(error: ValidationError, schema: type[BaseModel]) -> Iterator[str]:
    for problem in error.errors():
        place = ".".join(str(step) for step in _without_kind(problem["loc"]))
        if problem["type"] == "extra_forbidden":
            yield _unknown(problem["loc"], place, schema)
        elif problem["type"] == "missing":
            yield f"`{place}` is missing. Add it."
        elif problem["type"].startswith("union_tag"):
            given = problem.get("ctx", {}).get("tag", "")
            wrong = f"is {given!r}" if given else "is missing"
            yield f"`{place}.kind` {wrong}. {suggest_alternatives([given], sorted(_METHODS))}."
        elif problem["type"] == "value_error":
            yield f"{f'`{place}`: ' if place else ''}{problem['ctx']['error']}."
        elif problem["type"] == "literal_error":
            known = _QUOTED.findall(problem["ctx"]["expected"])
            yield f"`{place}` is {problem['input']!r}. {suggest_alternatives([str(problem['input'])], known)}."
        else:
            yield f"`{place}` is {problem['input']!r}: {problem['msg'].lower()}. Change it."


def _unknown(loc: tuple[int | str, ...], place: str, schema: type[BaseModel]) -> str:
    section = schema
    for number, step in enumerate(loc[:-1]):
        if number == 1 and loc[0] == "method":  # pydantic puts the kind after the section
            section = _METHODS[str(step)][1]
        elif str(step) in section.model_fields:
            annotation = section.model_fields[str(step)].annotation
            options = (annotation, *get_args(annotation))  # of an optional section
            section = next((one for one in options if isinstance(one, type) and issubclass(one, BaseModel)), section)
    known = list(section.model_fields)
    hint = did_you_mean([str(loc[-1])], known, mark="`") or f"Known here: {', '.join(known)}."
    return f"unknown key `{place}`. {hint}"


def _without_kind(loc: tuple[int | str, ...]) -> tuple[int | str, ...]:
    return (loc[0], *loc[2:]) if len(loc) > 1 and loc[0] == "method" else loc
