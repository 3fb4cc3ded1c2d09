"""Set-up of WordNet 3.0: download and compilation to the table that `wordnet` reads.

Sources of the files, in order: NLTK's folders (``NLTK_DATA`` and the like); Debian's installation
(``/usr/share/wordnet``); ``nltk.download`` if its server is reachable; Debian's packages ``wordnet-base`` and
``wordnet-sense-index``, downloaded with apt-get and unpacked with dpkg-deb, without root. Debian's files lack
``lexnames``, which NLTK requires, and NLTK reads only folders on its path; so they are copied to
``<environment>/share/nltk_data/corpora/wordnet`` and ``lexnames`` is added.

Only `set_up_language` (`pairwright doctor --fix`) uses the network.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from pairwright.datasets.atomic_files import write_text
from pairwright.datasets.errors import MissingResourceError, StorageError
from pairwright.generators.language.wordnet_compiler import compile_table
from pairwright.generators.language.wordnet_table import LEXICAL_DOMAINS, read_graph, table_path

_DEBIAN_FOLDER = Path("/usr/share/wordnet")
_PACKAGES = ("wordnet-base", "wordnet-sense-index")
_REACHABLE_SECONDS = 5

ProgressCallback = Callable[[str], None]


def set_up_language(progress: ProgressCallback, prefix: Path | None = None) -> Path:
    """Get WordNet and compile its table, unless there is a valid one.

    Args:
        progress: called with one line at each step.
        prefix: the environment's folder; default: that of this Python.

    Returns:
        The path of the table.

    Raises:
        MissingResourceError: WordNet is not available, or a folder is not writable; the message says what to do.
    """
    path = table_path(prefix)
    if _is_complete(path):
        progress(f"WordNet table found: {path}")
        return path
    try:
        with _with_nltk_path(_corpora_folder(prefix)):
            root = find_wordnet(progress, prefix)
            progress(f"compiling WordNet from {root} (about 15 seconds, once)")
            compile_table(root, path)
    except PermissionError as error:
        raise MissingResourceError(
            f"{error.filename or path} is not writable: run as the owner of {prefix or sys.prefix}, or set "
            "PAIRWRIGHT_WORDNET to a writable file and NLTK_DATA to a writable folder."
        ) from error
    progress(f"WordNet table written: {path}")
    return path


def _is_complete(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        read_graph(path)
    except StorageError:
        return False  # corrupt or of another version
    return True


def _corpora_folder(prefix: Path | None) -> Path:
    """Return the NLTK data folder to install into: the first of ``NLTK_DATA``, or the environment's."""
    named = os.environ.get("NLTK_DATA", "").split(os.pathsep)[0]
    if named and prefix is None:
        return Path(named)
    return (prefix or Path(sys.prefix)) / "share" / "nltk_data"


@contextmanager
def _with_nltk_path(folder: Path) -> Iterator[None]:
    """Put ``folder`` on NLTK's path temporarily, since NLTK reads only folders on its path."""
    import nltk.data

    before = list(nltk.data.path)
    nltk.data.path.insert(0, str(folder))
    try:
        yield
    finally:
        nltk.data.path[:] = before


def find_wordnet(progress: ProgressCallback, prefix: Path | None = None) -> Any:
    """Return NLTK's pointer to the folder (or zip) of WordNet files, after getting them if necessary."""
    found = _find_in_nltk()
    if found is None:
        _get_wordnet(progress, _corpora_folder(prefix))
        found = _find_in_nltk()
    if found is None:
        raise MissingResourceError(
            f"NLTK does not find WordNet under {_corpora_folder(prefix)}, where it was just installed."
        )
    return found


def _find_in_nltk() -> Any:
    import nltk.data

    try:
        root = nltk.data.find("corpora/wordnet")
        for name in ("lexnames", "index.sense", "cntlist.rev", "data.noun"):
            root.join(name)
    except (LookupError, OSError):
        return None
    return root


def _get_wordnet(progress: ProgressCallback, corpora: Path) -> None:
    target = corpora / "corpora" / "wordnet"
    target.mkdir(parents=True, exist_ok=True)  # fail before the download if not writable
    if (_DEBIAN_FOLDER / "index.sense").is_file():
        progress(f"copying WordNet from {_DEBIAN_FOLDER}")
        _install(_DEBIAN_FOLDER, target)
    elif not _nltk_download(progress, corpora):
        with tempfile.TemporaryDirectory(prefix="pairwright-wordnet-") as scratch:
            _install(_from_debian(progress, Path(scratch)), target)


def _nltk_download(progress: ProgressCallback, corpora: Path) -> bool:
    from nltk.downloader import Downloader

    server = Downloader.DEFAULT_URL
    try:
        with urlopen(server, timeout=_REACHABLE_SECONDS):  # noqa: S310 - NLTK's own https address
            progress(f"downloading WordNet with NLTK into {corpora}")
    except OSError as error:  # URLError and timeouts are OSErrors
        progress(f"NLTK's server is unreachable ({error}); trying Debian's packages")
        return False
    return bool(Downloader().download("wordnet", download_dir=str(corpora), quiet=True))


def _install(source: Path, target: Path) -> None:
    """Copy WordNet's files to ``target``, and add ``lexnames`` last, which marks the folder as complete."""
    for file in sorted(source.iterdir()):
        if file.is_file() and file.name != "lexnames":
            shutil.copyfile(file, target / file.name)
    write_text(target / "lexnames", lexnames_content())


def lexnames_content() -> str:
    """Return the content of ``lexnames``: number, lexicographer file and part-of-speech number (1 noun ... 4 adverb)."""
    numbers = {"noun": 1, "verb": 2, "adj": 3, "adv": 4}
    lines = (f"{at:02}\t{name}\t{numbers[name.split('.')[0]]}\n" for at, name in enumerate(LEXICAL_DOMAINS))
    return "".join(lines)


def _from_debian(progress: ProgressCallback, scratch: Path) -> Path:
    """Download Debian's packages into ``scratch`` and return the folder with WordNet's files."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise MissingResourceError(
            "WordNet is not installed, NLTK cannot download it, and this is not Debian or Ubuntu: get NLTK's corpus "
            "`wordnet`, put it under NLTK_DATA, and run `pairwright doctor --fix` again."
        )
    progress(f"downloading Debian's packages {' and '.join(_PACKAGES)} (8 MB)")
    apt = ["apt-get", "-q", "-o", "APT::Sandbox::User="]
    if not _run_command([*apt, "download", *_PACKAGES], scratch):
        progress("refreshing apt's package lists in a temporary folder")
        apt += _apt_options(scratch / "apt")
        for command in ([*apt, "update"], [*apt, "download", *_PACKAGES]):
            if not _run_command(command, scratch):
                raise MissingResourceError(
                    "apt-get cannot download wordnet-base and wordnet-sense-index: install them "
                    "(`apt-get install wordnet-base wordnet-sense-index`) and run `pairwright doctor --fix` again."
                )
    for package in sorted(scratch.glob("*.deb")):
        if not _run_command(["dpkg-deb", "-x", package.name, "unpacked"], scratch):
            raise MissingResourceError(f"dpkg-deb cannot unpack {package.name}: is the disk full?")
    return scratch / "unpacked" / "usr" / "share" / "wordnet"


def _apt_options(folder: Path) -> list[str]:
    """Return apt options that put lists and caches under ``folder``, so that root is not needed."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    settings = {"Dir::State": folder, "Dir::State::lists": folder / "lists", "Dir::Cache": folder / "cache"}
    return [part for name, value in settings.items() for part in ("-o", f"{name}={value}")]


def _run_command(command: list[str], folder: Path) -> bool:
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False, stdin=subprocess.DEVNULL)  # noqa: S603 - fixed commands
    return done.returncode == 0
