"""Recipe reader: YAML, single settings changed by --set, and one-line error messages."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import ValidationError

from pairwright.datasets.errors import ConfigError, UsageError
from pairwright.datasets.settings_files import load_settings, validation_messages
from pairwright.datasets.suggestions import suggest_alternatives
from pairwright.training.recipes.names import RECIPES_FOLDER, recipe_names
from pairwright.training.recipes.settings import FinetuningRecipe, Recipe

_SCHEMAS: dict[str, type[Recipe | FinetuningRecipe]] = {
    kind: schema
    for schema in (Recipe, FinetuningRecipe)
    for method in get_args(schema.model_fields["method"].annotation)
    for kind in get_args(method.model_fields["kind"].annotation)
}


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
    if path.suffix not in {".yaml", ".yml"} and not path.is_file():
        raise ConfigError(f"no recipe {name!r}. {suggest_alternatives([name], recipe_names())}; or pass a YAML file.")
    settings = load_settings(path, f"Start from a copy of a built-in recipe in {RECIPES_FOLDER}.")
    for change in changes:
        _change(settings, change)
    schema = _schema(settings, name)
    try:
        return schema.model_validate(settings)
    except ValidationError as error:
        messages = validation_messages(error, schema)
        raise ConfigError("\n".join(f"{name}: {message}" for message in messages)) from None


def _schema(settings: dict[str, Any], name: str) -> type[Recipe | FinetuningRecipe]:
    """Return the schema with the method's kind."""
    method = settings.get("method")
    kind = str(method.get("kind", "")) if isinstance(method, dict) else ""
    if kind not in _SCHEMAS:
        wrong = f"is {kind!r}" if kind else "is missing"
        raise ConfigError(f"{name}: `method.kind` {wrong}. {suggest_alternatives([kind], sorted(_SCHEMAS))}.")
    return _SCHEMAS[kind]


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
