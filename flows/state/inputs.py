"""What a build reads from outside, and how it notices that it changed: by size and time of each file.

The content itself is not hashed: a pool may be terabytes. What was read enters the receipts by content, so a file
that was only touched is read again, but nothing after it is made again.
Image files that pairs name are watched too, where they are packed (`stages/shards.py`).
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pairwright.datasets.brace_patterns import expand_braces
from pairwright.datasets.directories import walk_files
from pairwright.datasets.option_names import OptionNames
from pairwright.datasets.readers.formats import locate_input
from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.datasets.remote.local_copies import GIB, LocalCopies
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.config.sections import InputSection
from pairwright.generators.language.tagger import BUNDLED_PIPELINE, choose_pipeline, tagger_status
from pairwright.generators.language.wordnet_table import table_path

UNDER_INPUT = OptionNames("under input")


def read_options(section: InputSection) -> ReadOptions:
    """Return the reader's options that a config's input section stands for."""
    return ReadOptions(
        input=section.path,
        format=section.format,
        columns=section.columns,
        explode=section.explode,
        image_root=section.image_root,
        source=section.source,
        instances=section.instances,
        on_error=section.on_error,
        verify_images=section.verify_images,
        max_caption=section.max_caption,
        option_names=UNDER_INPUT,
    )


def with_local_inputs(config: BuildConfig, folder: Path) -> BuildConfig:
    """Return a config whose inputs lie on this machine: those in a store are copied into ``folder`` first.

    Raises:
        InputError, StorageError, UsageError, MissingResource: as `LocalCopies.fetch`.
    """
    near = LocalCopies(folder, int(config.copies_gib * GIB), "`copies_gib` in the config").fetch
    given, asked = config.input, config.retrieve
    update: dict[str, Any] = {
        "input": given.model_copy(
            update={name: near(getattr(given, name)) for name in ("path", "image_root", "instances")}
        )
    }
    if asked:
        files: dict[str, Any] = {name: near(getattr(asked, name)) for name in ("queries", "query_vectors")}
        files["exclude"] = tuple(map(near, asked.exclude))
        update["retrieve"] = asked.model_copy(update=files)
    return config.model_copy(update=update)


def input_state(section: InputSection) -> str:
    """Return the state of the files that a build reads its pairs from; errors as in `readers.formats.locate`."""
    files = list(locate_input(section.path, section.format, UNDER_INPUT).files)
    files += [table for file in files if file.suffix == ".tar" and (table := file.with_suffix(".parquet")).exists()]
    return file_state([*files, *([Path(section.instances)] if section.instances else [])])


def file_state(paths: Iterable[Path]) -> str:
    """Return name, size and time of change of each file, and of each file below each folder."""
    states = []
    for path in paths:
        if path.is_dir():
            states += [_state(file, file.relative_to(path).as_posix()) for file in walk_files(path)]
        else:
            states.append(_state(path, path.name))
    return "\n".join(states)


def _state(file: Path, name: str) -> str:
    try:
        found = file.stat()
    except OSError:  # a link that leads nowhere; its reader tells
        found = file.lstat()
    return f"{name}:{found.st_size}:{found.st_mtime_ns}"


def named_state(names: Iterable[str]) -> str:
    """Return the state of files, folders and brace patterns; of what is missing none, since its reader tells of it."""
    written = [one for name in names for one in ([name] if Path(name).exists() else expand_braces(name))]
    return file_state(path for path in map(Path, written) if path.exists())


def tagger_state(name: str) -> str:
    """Return what tells one tagger from another: its name and version, and the files of a pipeline in a folder."""
    source = Path(choose_pipeline(name))
    files = "" if source == BUNDLED_PIPELINE or not source.is_dir() else file_state([source])
    return f"{tagger_status(name)[1]} {files}"


def wordnet_state() -> str:
    """Return the state of WordNet's table."""
    return file_state([path for path in [table_path()] if path.is_file()])
