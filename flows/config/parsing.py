"""Settings from a YAML file, and what is said of those that cannot be: used by every config there is."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from pairwright.datasets.errors import ConfigError
from pairwright.datasets.suggestions import did_you_mean, suggest_alternatives

_QUOTED = re.compile(r"'([^']*)'")
_IN_YAML = {
    "tuple_type": "it has to be a list, such as [a, b]",
    "dict_type": "it has to be keys with values, such as {key: value}",
    "model_type": "it has to be a section: keys with values, on lines of their own below it",
    "too_short": "it needs at least one entry",
    "string_type": "it has to be one text",
    "string_too_short": "it is empty",
    "string_pattern_mismatch": "only a to z, A to Z, digits, - and _ may stand there, and first a letter or digit",
}
"""What pydantic says in Python's words."""
_DATA = frozenset({".jsonl", ".csv", ".tsv", ".parquet", ".tar", ".txt"})
_PYDANTIC_MESSAGES = re.compile(r"constrained-|\w+\[")  # its names of the choices of a union, which no config holds


class _UniqueKeyLoader(yaml.SafeLoader):
    """YAML's safe loader, but for a key that stands twice: YAML forbids it, and PyYAML takes the last without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002 - PyYAML's
        """Return a mapping, or refuse it."""
        seen: set[object] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                if key.value in seen:
                    raise yaml.constructor.ConstructorError(
                        problem=f"the key `{key.value}` stands twice", problem_mark=key.start_mark
                    )
                seen.add(key.value)
        return super().construct_mapping(node, deep)


def load_settings(path: Path, how_to_write: str) -> dict[str, Any]:
    """Return the settings of a YAML file, not yet checked.

    Args:
        path: of the file.
        how_to_write: a sentence that tells how to come by such a file.

    Raises:
        ConfigError: when the file is missing, is data by its name, is not YAML, or holds no settings.
    """
    if path.suffix.lower() in _DATA:
        raise ConfigError(f"{path}: data, and no config. {how_to_write}")
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
        raise ConfigError(f"{path}{line}: not YAML: {problem}. Mend that line.") from None
    if not isinstance(data, dict):
        raise ConfigError(f"{path}: holds no settings. {how_to_write}")
    return data


def validation_messages(error: ValidationError, model: type[BaseModel]) -> Iterator[str]:
    """Yield a sentence for each thing that is wrong with settings of ``model``, an unknown key with its nearest one."""
    problems = error.errors()
    for problem in problems:
        if any(other["loc"][: len(problem["loc"])] == problem["loc"] for other in problems if other is not problem):
            continue  # only the consequence of a problem further in
        place = ".".join(str(step) for step in problem["loc"] if not _PYDANTIC_MESSAGES.match(str(step)))
        if problem["type"] == "extra_forbidden":
            yield _unknown_key(problem["loc"], model)
        elif problem["type"] == "missing":
            yield f"`{place}` is missing. Add it."
        elif problem["type"] == "value_error":  # said by us, in whole; the value may be a secret
            said = f"{problem['ctx']['error']}"
            yield f"`{place}`: {said}. Change it." if place else f"{said}."
        elif problem["type"] == "literal_error":
            known = _QUOTED.findall(problem["ctx"]["expected"])
            yield f"`{place}` is {problem['input']!r}. {suggest_alternatives([str(problem['input'])], known)}."
        else:
            said = problem["msg"][:1].lower() + problem["msg"][1:]  # not all of it: it may hold a pattern
            said = _IN_YAML.get(problem["type"], said)
            yield f"`{place}` is {problem['input']!r}: {said}. Change it."


def _unknown_key(loc: tuple[int | str, ...], section: type[BaseModel]) -> str:
    for step in loc[:-1]:
        if isinstance(step, str) and step in section.model_fields:
            section = _section_of(section.model_fields[step].annotation) or section
    known = list(section.model_fields)
    place = ".".join(str(step) for step in loc)
    if loc[0] == "llm" and any(word in str(loc[-1]) for word in ("key", "token", "secret")):
        return f"unknown key `{place}`. A config holds no secrets: set OPENAI_API_KEY in the environment."
    hint = did_you_mean([str(loc[-1])], known, mark="`") or f"Known here: {', '.join(known)}."
    return f"unknown key `{place}`. {hint}"


def _section_of(annotation: object) -> type[BaseModel] | None:
    for option in (annotation, *get_args(annotation)):
        if isinstance(option, type) and issubclass(option, BaseModel):
            return option
    return None
