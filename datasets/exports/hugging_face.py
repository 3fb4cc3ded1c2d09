"""A folder ready for the Hugging Face Hub: ``README.md`` (the card with its metadata) and ``data/`` with the shards.

``datasets.load_dataset(folder)`` opens it: the metadata says where the shards are and of what type each member is, so
nothing has to be guessed from the first samples.
"""

from pathlib import Path

from pairwright.datasets.atomic import write_text
from pairwright.datasets.card import card
from pairwright.datasets.contents import survey
from pairwright.datasets.exports.source import Source
from pairwright.datasets.exports.webdataset_folder import files_of, write_folder
from pairwright.datasets.exports.writing import Exported, ExportOptions
from pairwright.datasets.shards import shard_summary


def write(source: Source, out: Path, options: ExportOptions) -> Exported:
    """Write card and shards of ``source`` into the folder ``out``."""
    shards = write_folder(source, out / "data", options)
    manifest = {
        "name": out.name,
        **source.manifest,
        "contents": survey(source.samples()),
        "shards": shard_summary(shards) | {"folder": "data"},
    }
    readme = out / "README.md"
    write_text(readme, card(manifest))
    return Exported(shards.count, (readme, *files_of(shards)))
