"""The exceptions that pairwright raises on purpose.

Foreign exceptions are translated into these at the boundary (reader, codec, index file, config). The command line prints
the message as one line and exits with the class's `exit_code`, 1 if nothing else is said below. A message says what is
wrong, where, and how to fix it.

    PairwrightError
    ├── UsageError             the call itself is wrong (exit 2)
    │   └── ConfigError        a build config is wrong
    ├── InputError             the user's data is wrong at a place
    │   └── NothingKeptError   the data is valid, and no row of it was kept (exit 3)
    ├── StorageError           a file of pairwright is missing, damaged or of another version
    ├── PluginError            a third-party component raised an exception
    ├── MissingResourceError   something has to be installed first
    └── TerminatedError        SIGTERM ended the work, and what is finished is kept (exit 143)
"""


class PairwrightError(Exception):
    """Base of every error that pairwright raises on purpose."""

    exit_code = 1


class UsageError(PairwrightError):
    """The command or function was called in a way that cannot work."""

    exit_code = 2


class ConfigError(UsageError):
    """A build config has an unknown key or an impossible value."""


class InputError(PairwrightError):
    """The user's data is wrong: ``where`` names file and line (or row, or member), ``fix`` what to do."""

    def __init__(self, what: str, *, where: str, fix: str) -> None:
        super().__init__(f"{where}: {what}. {fix}")
        self.what, self.where, self.fix = what, where, fix

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions from worker processes are rebuilt from positional arguments.
        return _input_error, (type(self), self.what, self.where, self.fix)


class NothingKeptError(InputError):
    """All rows were read and judged, and none was kept for the next step."""

    exit_code = 3


def describe_write_error(error: OSError) -> str:
    """Return why a file or folder could not be written; "File exists" alone does not say what is in the way."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "a file is in the place of a folder"
    if isinstance(error, IsADirectoryError):
        return "a folder is in the place of a file"
    return error.strerror or str(error)


def _input_error(kind: type[InputError], what: str, where: str, fix: str) -> InputError:
    return kind(what, where=where, fix=fix)


class StorageError(PairwrightError):
    """A file that pairwright wrote is missing, truncated or of another version."""


class PluginError(PairwrightError):
    """A third-party component raised an exception, or returned a wrong value."""


class MissingResourceError(PairwrightError):
    """An optional package or a language resource is missing; the message says how to install it."""


class TerminatedError(PairwrightError):
    """SIGTERM ended the work; what is finished is kept."""

    exit_code = 143
