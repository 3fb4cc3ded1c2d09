"""Text-only accuracy of published benchmarks: what `pairwright audit` finds in each set below a folder.

    python -m benchmarks.layouts DIR [--corpus CAPTIONS] [--page docs/benchmarks.md]

A set is a folder of files that `audit` reads (``sugarcrepe_plusplus/swap_att.json``, ``valse/existence.json``). A set
with two captions is attacked on each side: its negative against the first caption, and against the second. With
``--page``, the table replaces the text between ``<!-- audits -->`` and ``<!-- end -->``.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from pairwright.datasets.atomic_files import write_text
from pairwright.filters.attacks.registry import load_scorer
from pairwright.filters.candidates.files import find_row_files, layout_of
from pairwright.filters.candidates.rows import edit_type_name
from pairwright.flows.commands.audit import AuditRequest, audit_rows, rows_to_audit

ATTACKS = {"length": "length", "trigram": "likelihood", "words": "words", "letters": "letters", "format": "format"}
_START, _END = "<!-- audits -->", "<!-- end -->"


def main() -> None:
    """Print the table, and write it into a page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--corpus", default="", help="captions that train the language models")
    parser.add_argument("--page", type=Path)
    asked = parser.parse_args()
    sets = [path for path in sorted(asked.folder.iterdir()) if find_row_files(path)]
    head = ["set", "type", "against", "rows", "skipped", *ATTACKS, "cloze", "all of them"]
    rows = [row for path in sets for row in _audit(path, asked.corpus)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rows])
    print(table)
    if asked.page:
        before, _, rest = asked.page.read_text(encoding="utf-8").partition(_START)
        write_text(asked.page, f"{before}{_START}\n{table}\n{_END}{rest.partition(_END)[2]}")


def _audit(folder: Path, corpus: str) -> Iterator[list[str]]:
    """Yield a line per type of a set, and side."""
    frame, _ = rows_to_audit(folder)
    sides = {"caption": frame.with_columns(positive=pl.lit(""))}
    if (frame["positive"] != "").any():
        sides["second caption"] = frame
    types = frame.select("form", "target", "status").with_columns(
        type=pl.struct("form", "target").map_elements(
            lambda row: edit_type_name(row["form"], row["target"]), return_dtype=pl.String
        )
    )
    for side, rows in sides.items():
        print(f"{folder.name}: {side}", file=sys.stderr)
        found, _ = audit_rows(rows, AuditRequest(corpus), [load_scorer("cloze", "")], _note)
        columns = [*ATTACKS.values(), "cloze", "combined"]
        for kind in sorted(found.attacks["length"].by_type):
            of_type = types.filter(type=kind)
            kept = of_type.filter(status="kept").height
            shares = [f"{found.attacks[name].by_type[kind].accuracy:.1%}" for name in columns]
            name = f"{folder.name} ({layout_of(folder).name})"
            yield [name, kind, side, f"{kept:,}", f"{of_type.height - kept:,}", *shares]


def _note(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
