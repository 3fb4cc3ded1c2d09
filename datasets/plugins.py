"""Registries of named components: built-in ones from a table, third-party ones from entry points.

A distribution declares a component in its pyproject.toml, for example

    [project.entry-points."pairwright.readers"]
    my-format = "my_package.my_module:READER"

A third-party component is imported when it is named, not when it is listed. A name that is used by two distributions, or
by a distribution and pairwright, is an error.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from pairwright.datasets.errors import PairwrightError, PluginError, UsageError
from pairwright.datasets.suggestions import require_known

T = TypeVar("T")


class PluginRow(NamedTuple):
    """One line of ``pairwright plugins``: kind, name, distribution, and description (third-party: import path)."""

    kind: str
    name: str
    origin: str
    about: str


@dataclass(frozen=True)
class PluginRegistry(Generic[T]):
    """Components of one kind.

    Attributes:
        kind: the noun in messages and in ``pairwright plugins``, such as "reader".
        groups: the entry-point groups of third-party components.
        built_in: built-in components by name.
        describe: returns the description of a built-in component.
        expected: the class of a loaded component; `object` accepts anything.
        guard: from a loaded component and its label to one whose exceptions name it, see `report_failures`.
    """

    kind: str
    groups: tuple[str, ...]
    built_in: Mapping[str, T]
    describe: Callable[[T], str]
    expected: type = object
    guard: Callable[[Any, str], Any] = lambda loaded, _label: loaded

    def names(self) -> list[str]:
        """Return the names of all components, built-in ones first; nothing is imported."""
        return list(dict.fromkeys([*self.built_in, *(point.name for point in self.entry_points())]))

    def rows(self) -> list[PluginRow]:
        """Return a line per component, built-in ones first; nothing is imported."""
        rows = [PluginRow(self.kind, name, "pairwright", self.describe(one)) for name, one in self.built_in.items()]
        return rows + [PluginRow(self.kind, p.name, _distribution(p) or "?", p.value) for p in self.entry_points()]

    def get(self, name: str) -> T:
        """Return the component ``name``.

        Raises:
            UsageError: for an unknown name, a name used more than once, or a component that cannot be loaded.
        """
        point = self.find_entry_point(name)
        return self.built_in[name] if point is None else self.load(point)

    def find_entry_point(self, name: str) -> EntryPoint | None:
        """Return the entry point of a third-party component, None for a built-in one.

        Raises:
            UsageError: for an unknown name, or a name used more than once.
        """
        points = [point for point in self.entry_points() if point.name == name]
        if not points:
            require_known(f"no {self.kind} named", [name], self.names())
            return None
        if name in self.built_in or len(points) > 1:
            names = [_distribution(point) or point.value for point in points]
            owners = ", ".join(sorted([*names, "pairwright"] if name in self.built_in else names))
            raise UsageError(
                f"the {self.kind} name {name!r} is used more than once ({owners}). Uninstall or rename one."
            )
        return points[0]

    def load(self, point: EntryPoint) -> Any:
        """Import a third-party component.

        Raises:
            UsageError: if it cannot be imported, or is not an instance of `expected`.
        """
        try:
            loaded = point.load()
        except Exception as error:
            raise self._load_error(point, error) from error
        if not isinstance(loaded, self.expected):
            found = type(loaded).__name__
            raise UsageError(
                f"{self.kind} {point.name} ({point.value}) is a {found}; expected a {self.expected.__name__}."
            )
        return self.guard(loaded, f"{self.kind} {point.name} ({point.value})")

    def _load_error(self, point: EntryPoint, error: Exception) -> UsageError:
        what = f"{error}" if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: {error}"
        return UsageError(f"{self.kind} {point.name} ({point.value}) cannot be loaded: {what}.")

    def fingerprint(self, name: str) -> str:
        """Return a text that changes when a third-party component changes: name, version, hash of its module.

        A built-in component gives its name only: stages already depend on the source of pairwright.

        Raises:
            UsageError: if the module of a third-party component cannot be found.
        """
        point = next((point for point in self.entry_points() if point.name == name), None)
        if point is None:
            return name
        try:
            spec = find_spec(point.module)
        except Exception as error:  # finding a module imports its package
            raise self._load_error(point, error) from error
        source = Path(spec.origin).read_bytes() if spec and spec.origin else b""
        owner = f"{point.dist.name} {point.dist.version}" if point.dist else ""
        return f"{name} {owner} {hashlib.sha256(source).hexdigest()}"

    def entry_points(self) -> tuple[EntryPoint, ...]:
        """Return the third-party entry points of the groups, sorted by name."""
        return tuple(point for point in _all_entry_points() if point.group in self.groups)


@contextmanager
def report_failures(label: str) -> Iterator[None]:
    """Turn an exception of third-party code into a `PluginError` that names it; PAIRWRIGHT_DEBUG keeps the traceback.

    Errors of pairwright, of the system and of memory pass unchanged.
    """
    try:
        yield
    except (PairwrightError, OSError, MemoryError):
        raise
    except Exception as error:
        if os.environ.get("PAIRWRIGHT_DEBUG"):
            raise
        what = f"{type(error).__name__}: {error}"
        raise PluginError(f"{label} failed: {what}. Set PAIRWRIGHT_DEBUG=1 for the traceback.") from error


def call_plugin(function: Callable[..., T], label: str, *args: Any, **options: Any) -> T:
    """Return ``function(*args, **options)``; see `report_failures`."""
    with report_failures(label):
        return function(*args, **options)


def iterate_plugin(function: Callable[..., Iterable[T]], expected: Any, label: str, *args: Any) -> Iterator[T]:
    """Yield from ``function(*args)``, which must give instances of ``expected``; see `report_failures`."""
    with report_failures(label):
        for item in function(*args):
            if not isinstance(item, expected):
                raise TypeError(f"it returned a {type(item).__name__}")
            yield item


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist else ""


def _all_entry_points() -> tuple[EntryPoint, ...]:
    return _read_entry_points(tuple((folder, _modified_time(folder)) for folder in sys.path))


def _modified_time(folder: str) -> int:
    try:
        return Path(folder).stat().st_mtime_ns  # installing or removing a distribution changes it
    except OSError:
        return 0


@lru_cache(maxsize=1)
def _read_entry_points(_folders: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    """Return pairwright's entry points of all groups; reading the metadata of every installed package is slow."""
    found = entry_points()
    points = [point for group in found.groups if group.startswith("pairwright.") for point in found.select(group=group)]
    return tuple(sorted(points, key=lambda point: (point.name, point.value)))
