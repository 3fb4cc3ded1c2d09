"""Inputs of a build: how they are read, and their states, by which a build detects changes.

The state of a file is its name, size and time of change; in a store also its ETag, as S3 dates to the second. The content is not hashed: a pool may be terabytes. Receipts
hold the content of what was read, so a file that was only touched is read again without repeating later stages.
The states of image files that pairs name are checked where they are packed (`stages/shards.py`).
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairwright.datasets.brace_patterns import expand_braces
from pairwright.datasets.directories import walk_files
from pairwright.datasets.images.loading import is_stored
from pairwright.datasets.option_names import OptionNames
from pairwright.datasets.readers.coco import list_instance_files
from pairwright.datasets.readers.pairs import ReadOptions, locate_inputs
from pairwright.datasets.readers.stored_inputs import list_below, list_in_place
from pairwright.datasets.remote.local_copies import GIB, LocalCopies
from pairwright.datasets.remote.object_store import is_remote
from pairwright.datasets.remote.store_path import StorePath

if TYPE_CHECKING:
    from pairwright.flows.config.build import BuildConfig
    from pairwright.flows.config.sections import InputSection

UNDER_INPUT = OptionNames("under input")


def read_options(section: "InputSection", *, without_caption: bool = False) -> ReadOptions:
    """Return the reader's options for the ``input`` section of a config.

    Args:
        section: the section.
        without_caption: also read images without a caption.
    """
    return ReadOptions(
        input=section.path,
        format=section.format,
        columns=section.columns,
        where=section.where,
        explode=section.explode,
        image_root=section.image_root,
        source=section.source,
        instances=section.instances,
        on_error=section.on_error,
        verify_images=section.verify_images,
        max_caption=section.max_caption,
        clean_captions=section.clean_captions,
        encoding=section.encoding,
        without_caption=without_caption,
        option_names=UNDER_INPUT,
    )


def with_local_inputs(config: "BuildConfig", folder: Path) -> "BuildConfig":
    """Return a config with inputs to read: those in an object store that are not read in place are copied into ``folder``.

    Raises:
        InputError, StorageError, UsageError, MissingResource: as `LocalCopies.fetch`.
    """
    near = LocalCopies(folder, int(config.copies_gib * GIB), "`copies_gib` in the config").fetch
    given, asked = config.input, config.retrieve
    update: dict[str, Any] = {
        "input": given.model_copy(
            update={
                "path": given.path if is_remote(given.path) and list_in_place(given.path) else near(given.path),
                "image_root": given.image_root if is_stored(given.image_root) else near(given.image_root),
                "instances": near(given.instances),
            }
        )
    }
    if asked:
        files: dict[str, Any] = {name: near(getattr(asked, name)) for name in ("queries", "query_vectors")}
        files["exclude"] = tuple(map(near, asked.exclude))
        update["retrieve"] = asked.model_copy(update=files)
    return config.model_copy(update=update)


def input_state(section: "InputSection") -> str:
    """Return the state of the files that a build reads its pairs from; errors as in `locate_inputs`."""
    (located,) = locate_inputs(read_options(section))
    return files_state(located.files, section.instances)


def files_state(located: Iterable[Path], instances: str = "") -> str:
    """Return the state of input files, the tables of downloads beside tars included, and of the COCO ``instances``."""
    files = list(located)
    files += [table for file in files if file.suffix == ".tar" and (table := file.with_suffix(".parquet")).exists()]
    return file_state([*files, *list_instance_files(instances)])


def file_state(paths: Iterable[Path]) -> str:
    """Return name, size and time of change of each file, including those below folders."""
    states = []
    for path in paths:
        if path.is_dir():
            states += [_state(file, file.relative_to(path).as_posix()) for file in walk_files(path)]
        elif isinstance(path, StorePath) and not path.is_file():
            states += [_state(file, str(file).removeprefix(f"{path}/")) for file in list_below(path)]
        else:
            states.append(_state(path, path.name))
    return "\n".join(states)


def _state(file: Path, name: str) -> str:
    if isinstance(file, StorePath):
        return f"{name}:{file.identity()}"
    try:
        found = file.stat()
    except OSError:  # a broken link, which its reader reports
        found = file.lstat()
    return f"{name}:{found.st_size}:{found.st_mtime_ns}"


def named_state(names: Iterable[str]) -> str:
    """Return the state of files, folders and brace patterns; missing ones, which their reader reports, are skipped."""
    written = [one for name in names for one in ([name] if Path(name).exists() else expand_braces(name))]
    return file_state(path for path in map(Path, written) if path.exists())
