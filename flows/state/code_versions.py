"""Versions of the code and of the packages that shape the files of a build.

The code version of a stage covers the module that declares its jobs, all modules of pairwright that this one imports,
directly or not, inside functions too, or names in a string of its own, and their data files (prompts, word lists,
models). It is read from the source text without importing anything. Imports under ``if TYPE_CHECKING:`` do not count,
nor does the build config: each job states the values that it reads. A third-party generator is not covered here but by
`generators.registry.generator_fingerprint`.
"""

import hashlib
import re
import sys
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

SHAPING_PACKAGES = ("faiss-cpu", "lemminflect", "numpy", "pillow", "polars", "pyarrow", "spacy")
ROOMS = ("datasets", "indexes", "generators", "filters", "flows")

_CONFIG = "pairwright.flows.config."  # validates the config; its values are stated in the fingerprints
_PACKAGE = Path(__file__).resolve().parents[2]
_TYPE_IMPORTS = re.compile(r"^if TYPE_CHECKING:\n(?:[ \t]+.*\n|\n)+", re.MULTILINE)
_IMPORT = re.compile(
    r"^[ \t]*(?:from (pairwright[\w.]*) import (\([^)]*\)|.*)|import (pairwright[\w.]*))", re.MULTILINE
)
_NAMED = re.compile(r"""["'](pairwright(?:\.\w+)+)(?::\w+)?["']""")


@cache
def package_version(name: str) -> str:
    """Return the version of an installed package; to read it means to parse the metadata of its distribution."""
    return metadata.version(name)


def package_versions() -> list[str]:
    """Return the versions of the packages that shape the bytes of a build."""
    return [f"{name} {package_version(name)}" for name in SHAPING_PACKAGES]


@lru_cache(maxsize=1)
def source_hash() -> str:
    """Return a hash of all source and data files of the rooms that shape a build's output."""
    return _hash_files(path for room in ROOMS for path in _files_below(_PACKAGE / room))


@lru_cache
def code_hash(module: str) -> str:
    """Return the code version of ``module``: a hash of `code_files`."""
    return _hash_files(code_files(module))


def code_files(module: str) -> list[Path]:
    """Return the source and data files that ``module``, by its dotted name, depends on, in order of their paths."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [each for each in _read_source(name).imports if not each.startswith(_CONFIG)]
    sources = {_read_source(name).path for name in found}
    return sorted({*sources, *(path for folder in {each.parent for each in sources} for path in _data_files(folder))})


class _Source(NamedTuple):
    path: Path
    imports: tuple[str, ...]


@cache
def _read_source(module: str) -> _Source:
    """Return the file of a module and the modules of pairwright that it imports."""
    path = _module_path(module) or Path(str(sys.modules[module].__file__))
    text = _TYPE_IMPORTS.sub("", path.read_text(encoding="utf-8"))
    imports = set(_NAMED.findall(text))
    for package, names, whole in _IMPORT.findall(text):
        members = re.findall(r"\w+", re.sub(r"#.*| as \w+", "", names))
        imports |= {whole or package, *(f"{package}.{member}" for member in members)}
    return _Source(path, tuple(name for name in sorted(imports) if _module_path(name)))


@cache
def _module_path(module: str) -> Path | None:
    """Return the file of a module in one of the rooms; None for any other module."""
    package, *steps = module.split(".")
    if package != "pairwright" or len(steps) < 2 or steps[0] not in ROOMS:
        return None
    path = _PACKAGE.joinpath(*steps).with_suffix(".py")
    return path if path.is_file() else None


@cache
def _data_files(folder: Path) -> tuple[Path, ...]:
    """Return the data files of a folder of modules, and those below it in folders without modules."""
    if _PACKAGE not in folder.parents:
        return ()
    found: list[Path] = []
    for path in folder.iterdir():
        if path.is_dir() and path.name != "__pycache__":
            found += () if next(path.glob("*.py"), None) else _data_files(path)
        elif path.is_file() and path.suffix != ".py":
            found.append(path)
    return tuple(found)


def _files_below(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def _hash_files(paths: Iterable[Path]) -> str:
    hasher = hashlib.blake2b(digest_size=16)
    for path in paths:
        name = path.relative_to(_PACKAGE) if _PACKAGE in path.parents else path.name
        hasher.update(str(name).encode())
        hasher.update(_hash_file(path))
    return hasher.hexdigest()


@cache
def _hash_file(path: Path) -> bytes:
    return hashlib.sha256(path.read_bytes()).digest()
