"""``pairwright plugins``: the list of generators, attacks, encoders, readers, exports and layouts."""

from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import columns, emit


def plugins(*, as_json: JsonOption = False) -> None:
    """List generators, attacks, encoders, readers, exports and layouts.

    Installed third-party plugins are included.

    \b
    Example:
      pairwright plugins
    """
    from pairwright.datasets.exports.formats import EXPORTS
    from pairwright.datasets.readers.formats import READERS
    from pairwright.filters.attacks.registry import ATTACKS
    from pairwright.filters.candidates.layouts import LAYOUTS
    from pairwright.generators.registry import GENERATORS
    from pairwright.indexes.encoders.registry import ENCODERS

    found = [*GENERATORS.rows(), *ATTACKS.rows(), *ENCODERS.rows(), *READERS.rows(), *EXPORTS.rows(), *LAYOUTS.rows()]
    rows = [{"kind": kind, "name": name, "from": origin, "about": about} for kind, name, origin, about in found]
    lines = columns([list(row.values()) for row in rows], indent="")
    emit({"plugins": rows}, lines, as_json=as_json)
