"""``pairwright plugins``: the list of generators, encoders, readers and exports."""

from pairwright.cli.options.input import JsonOption
from pairwright.cli.output.console import columns, emit


def plugins(*, as_json: JsonOption = False) -> None:
    """List generators, readers, encoders and exports.

    Installed third-party plugins are included.

    \b
    Example:
      pairwright plugins
    """
    from pairwright.datasets.exports.formats import EXPORT_FORMATS
    from pairwright.datasets.readers.formats import FORMAT_DESCRIPTIONS
    from pairwright.generators.registry import list_generators
    from pairwright.indexes.encoders.registry import ENCODERS

    found = [("generator", *row) for row in list_generators()]
    found += ENCODERS.rows()
    found += [("reader", name, "pairwright", about) for name, about in FORMAT_DESCRIPTIONS.items()]
    found += [("export", name, "pairwright", one.summary) for name, one in EXPORT_FORMATS.items()]
    rows = [{"kind": kind, "name": name, "from": origin, "about": about} for kind, name, origin, about in found]
    lines = columns([list(row.values()) for row in rows], indent="")
    emit({"plugins": rows}, lines, as_json=as_json)
