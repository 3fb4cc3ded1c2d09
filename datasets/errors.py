"""The one tree of errors that pairwright raises on purpose.

Foreign exceptions are translated into these at the door (reader, codec, index file, config), and the
command line prints the message as one line and exits: 2 for wrong usage, 3 where nothing is kept, 1 for anything
else. A message
says what is wrong, where, and how to mend it.

    PairwrightError
    ├── UsageError          the call itself is wrong (exit 2)
    │   └── ConfigError     a build config is wrong
    ├── InputError          the user's data is wrong at a place
    │   └── NothingKept     the data is fine, and nothing of it is left (exit 3)
    ├── StorageError        a file of ours is missing, torn, or of another version
    └── MissingResource     something has to be installed first
"""


class PairwrightError(Exception):
    """Base of every error that pairwright raises on purpose."""

    exit_code = 1


class UsageError(PairwrightError):
    """The command or function was called in a way that can never work."""

    exit_code = 2


class ConfigError(UsageError):
    """A build config holds an unknown key or an impossible value."""


class InputError(PairwrightError):
    """The user's data is wrong: ``where`` names file and line (or row, or member), ``mend`` what to do."""

    def __init__(self, what: str, *, where: str, fix: str) -> None:
        super().__init__(f"{where}: {what}. {fix}")
        self.what, self.where, self.fix = what, where, fix

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions are rebuilt from positional arguments when they come back from a worker process.
        return _input_error, (type(self), self.what, self.where, self.fix)


class NothingKeptError(InputError):
    """All rows were read and judged, and none is left for what comes next."""

    exit_code = 3


def describe_write_error(error: OSError) -> str:
    """Return why a file or folder could not be written; the system's "File exists" tells nobody what stands in the way."""
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "a file stands where a folder is to be"
    return error.strerror or str(error)


def _input_error(kind: type[InputError], what: str, where: str, fix: str) -> InputError:
    return kind(what, where=where, fix=fix)


class StorageError(PairwrightError):
    """A file that pairwright wrote is missing, truncated or of another version."""


class MissingResourceError(PairwrightError):
    """An optional package or a language resource is not there; the message says how to get it."""
