"""Option names in messages: ``--columns key=id`` for the command line, ``columns: {key: id}`` for a config.

`ReadOptions.option_names` says which, and messages are composed with it where the error is found. Names are those of a
config, such as ``on_error``.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OptionNames:
    """How messages name options.

    Attributes:
        section: place of the keys in a config, such as "under input"; empty for options of a command.
        no_options: for files that are read without options (a pool, queries), so that only the file can be changed.
    """

    section: str = ""
    no_options: bool = False

    def option(self, name: str) -> str:
        """Return ``--format``, or ```format` under input``."""
        return f"`{name}` {self.section}" if self.section else f"--{name.replace('_', '-')}"

    def choice(self, name: str, known: Iterable[str]) -> str:
        """Return ``--format csv | tsv``, or ```format` under input, one of csv | tsv``."""
        return f"{self.option(name)}{', one of' if self.section else ''} {' | '.join(known)}"

    def setting(self, name: str, value: str) -> str:
        """Return ``--format csv (in a config, format: csv)``, or ```format: csv` under input``."""
        key = f"{name}: {value}"
        return f"`{key}` {self.section}" if self.section else f"{self.option(name)} {value} (in a config, {key})"

    def flag(self, name: str, section: str = "") -> str:
        """Return ``--both-sides``, or ```both_sides: true` under negatives``; ``section`` overrides that of the object."""
        return f"`{name}: true` {section or self.section}" if self.section else self.option(name)

    def column(self, part: str, column: str) -> str:
        """Return ``--columns key=id``, or ```columns: {key: id}` under input``."""
        key = f"`columns: {{{part}: {column}}}` {self.section}"
        return key if self.section else f"--columns {part}={column}"

    def suggest_suffix(self, ending: str) -> str:
        """Return ``Name it .csv, or give --format csv (...).``; without the second part if there are no options."""
        other = "" if self.no_options else f", or give {self.setting('format', ending)}"
        return f"Name it .{ending}{other}."


COMMAND_LINE = OptionNames()
WITHOUT_OPTIONS = OptionNames(no_options=True)
