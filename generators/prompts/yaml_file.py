"""Base class of the parsers of YAML files (prompts, tasks); errors name file and line."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from pairwright.datasets.errors import ConfigError
from pairwright.datasets.suggestions import did_you_mean
from pairwright.generators.prompts.strict_yaml import NodePath, YamlError, read_yaml

_SUCH_AS: Mapping[str, str] = {"mapping": ", such as {caption: the caption}", "list": ", such as [a, b]"}


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return `` Did you mean 'dog'?`` if a known word is similar; else an empty string."""
    hint = did_you_mean([word], known, mark="'")
    return f" {hint}" if hint else ""


class YamlFile:
    """The content of a YAML file, with access that checks types.

    Args:
        path: the file.

    Attributes:
        content: the mapping.

    Raises:
        ConfigError: it is invalid; the message names file and line.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self.content, self._lines = read_yaml(path.read_bytes())
        except YamlError as error:
            raise ConfigError(f"{path}:{error.line}: {error.what}. Fix the file.") from None

    def _refuse(self, place: NodePath, what: str) -> NoReturn:
        while place and place not in self._lines:
            place = place[:-1]
        raise ConfigError(f"{self._path}:{self._lines.get(place, 1)}: {what}")

    def _check_keys(self, keys: Iterable[str], known: Iterable[str], *within: str) -> None:
        for key in keys:
            if key not in known:
                hint = suggestion(key, known)
                self._refuse((*within, key), f"unknown key '{key}'.{hint} The keys are {', '.join(known)}.")

    def _at(self, place: NodePath, kind: type | tuple[type, ...], called: str) -> Any:
        value: Any = self.content
        for step in place:
            value = value[step]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            where = ".".join(map(str, place))
            self._refuse(place, f"'{where}' is not a {called}. Write a {called}{_SUCH_AS.get(called, '')}.")
        return value

    def _text(self, *place: str | int) -> str:
        text: str = self._at(place, str, "text")
        if not text.strip():
            self._refuse(place, f"'{'.'.join(map(str, place))}' is empty. Write a text.")
        return text.strip()

    def _mapping(self, *place: str | int) -> Mapping[str, Any]:
        mapping: Mapping[str, Any] = self._at(place, dict, "mapping")
        return mapping
