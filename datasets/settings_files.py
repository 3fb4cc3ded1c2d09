"""Reading of YAML files of settings (configs, recipes), and messages for invalid settings."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from pairwright.datasets.errors import ConfigError
from pairwright.datasets.suggestions import did_you_mean, suggest_alternatives

_QUOTED = re.compile(r"'([^']*)'")
_IN_YAML = {
    "tuple_type": "must be a list, such as [a, b]",
    "dict_type": "must be a mapping, such as {key: value}",
    "model_type": "must be a section: keys with values, indented on the lines below",
    "too_short": "must have at least one entry",
    "string_type": "must be a string",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must consist of letters, digits, - and _, and begin with a letter or digit",
}
"""Replacements for messages of pydantic in Python's terms."""
_DATA = frozenset({".jsonl", ".csv", ".tsv", ".parquet", ".tar", ".txt"})
_PYDANTIC_MESSAGES = re.compile(r"constrained-|\w+\[")  # pydantic's names for the choices of a union


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML's safe loader that refuses duplicate keys, which YAML forbids and PyYAML silently accepts."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's
        """Return a mapping; raise for a duplicate key."""
        seen: set[object] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        problem=f"duplicate key `{key.value}`", problem_mark=key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def load_settings(path: Path, how_to_write: str) -> dict[str, Any]:
    """Return the settings of a YAML file, not validated yet.

    Args:
        path: of the file.
        how_to_write: a sentence on how to create such a file.

    Raises:
        ConfigError: when the file is missing, a data file by its name, not YAML, or empty.
    """
    if path.suffix.lower() in _DATA:
        raise ConfigError(f"{path}: is a data file, not a config. {how_to_write}")
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"{path}: cannot be read ({why}). {how_to_write}") from None
    try:
        data = _UniqueKeyLoader(text).get_single_data()
    except yaml.YAMLError as error:
        place = getattr(error, "problem_mark", None)
        line = f":{place.line + 1}" if place else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise ConfigError(f"{path}{line}: not YAML: {problem}. Fix that line.") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: contains no settings. {how_to_write}")
    return data


def validation_messages(error: ValidationError, model: type[BaseModel]) -> Iterator[str]:
    """Yield a sentence for each error in settings of ``model``, with suggestions for unknown keys.

    A section may have ``removed_keys``, a class variable: what to do in place of each key that an earlier version had.
    """
    problems = error.errors()
    for problem in problems:
        if any(other["loc"][: len(problem["loc"])] == problem["loc"] for other in problems if other is not problem):
            continue  # the consequence of an inner problem
        keys, section = _resolve(problem["loc"], model)
        place = ".".join(keys)
        if problem["type"] == "extra_forbidden":
            yield _unknown_key(keys, section)
        elif problem["type"] == "missing":
            yield f"`{place}` is missing. Add it."
        elif problem["type"] == "value_error":  # a message of a validator; the value may be a secret
            message = f"{problem['ctx']['error']}"
            yield f"`{place}`: {message}. Change it." if place else f"{message}."
        elif problem["type"] == "literal_error":
            known = _QUOTED.findall(problem["ctx"]["expected"])
            yield f"`{place}` is {problem['input']!r}. {suggest_alternatives([str(problem['input'])], known)}."
        else:
            message = problem["msg"][:1].lower() + problem["msg"][1:]
            message = _IN_YAML.get(problem["type"], message)
            if problem["type"] == "string_type" and isinstance(problem["input"], int | float):
                message += ", in quotes where YAML reads a number or a time"
            yield f"`{place}` is {problem['input']!r}: {message}. Change it."


def _resolve(loc: tuple[int | str, ...], section: type[BaseModel]) -> tuple[list[str], type[BaseModel]]:
    """Return the keys of a place without pydantic's names for choices of a union, and the section with the last key."""
    keys: list[str] = []
    holder, by_tag = section, dict[str, type[BaseModel]]()
    for step in map(str, loc):
        if step in by_tag:
            section, by_tag = by_tag[step], {}
        elif not _PYDANTIC_MESSAGES.match(step):
            keys.append(step)
            holder = section
            if (field := section.model_fields.get(step)) is not None:
                sections = _sections_of(field.annotation)
                section, tag = next(iter(sections), section), field.discriminator
                tagged = sections if isinstance(tag, str) else []
                by_tag = {name: one for one in tagged for name in get_args(one.model_fields[str(tag)].annotation)}
    return keys, holder


def _unknown_key(keys: Sequence[str], section: type[BaseModel]) -> str:
    known, place = list(section.model_fields), ".".join(keys)
    removed: Mapping[str, str] = getattr(section, "removed_keys", {})
    if keys[-1] in removed:
        return f"`{place}` was removed. {removed[keys[-1]]}"
    if keys[0] == "llm" and any(word in keys[-1] for word in ("key", "token", "secret")):
        return f"unknown key `{place}`. Do not store secrets in a config: set OPENAI_API_KEY in the environment."
    hint = did_you_mean([keys[-1]], known, mark="`") or f"Known here: {', '.join(known)}."
    return f"unknown key `{place}`. {hint}"


def _sections_of(annotation: object) -> list[type[BaseModel]]:
    options = (annotation, *get_args(annotation))
    return [option for option in options if isinstance(option, type) and issubclass(option, BaseModel)]
