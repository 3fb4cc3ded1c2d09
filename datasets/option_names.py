"""How a message names an option: as whoever gave it writes it, ``--columns key=id`` or ``columns: {key: id}`` in a config.

Who asks says so among what it gives (`reading.ReadOptions.wording`), and a message is made in these words where the flaw is
found: nothing is put into other words afterwards. Names are those of a config, such as ``on_error``.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OptionNames:
    """The words of one who asks.

    Attributes:
        section: where in a config the keys stand, such as "under input"; empty: they are options of a command.
        bare: of a file that is read as it is (a pool, queries): no option says how, so that it has to be mended itself.
    """

    section: str = ""
    bare: bool = False

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
        """Return ``--both-sides``, or ```both_sides: true` under negatives`` where ``section`` is that, or ours."""
        return f"`{name}: true` {section or self.section}" if self.section else self.option(name)

    def column(self, part: str, column: str) -> str:
        """Return ``--columns key=id``, or ```columns: {key: id}` under input``."""
        key = f"`columns: {{{part}: {column}}}` {self.section}"
        return key if self.section else f"--columns {part}={column}"

    def named(self, ending: str) -> str:
        """Return ``Name it .csv, or give --format csv (...).``, or what is left of it for a file that is read as it is."""
        other = "" if self.bare else f", or give {self.setting('format', ending)}"
        return f"Name it .{ending}{other}."


COMMAND_LINE = OptionNames()
WITHOUT_OPTIONS = OptionNames(bare=True)
