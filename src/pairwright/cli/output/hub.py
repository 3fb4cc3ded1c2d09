"""Models that are no folder here, and so come from the Hugging Face hub."""

import logging
from collections.abc import Sequence
from pathlib import Path

from pairwright.cli.output.console import note


def note_hub_models(models: Sequence[str]) -> None:
    """Say which models the hub is asked for; its client's own lines, one for each of its tries, are left out."""
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    for name in models:
        if not Path(name).exists() and not Path(name).is_absolute() and not name.startswith((".", "~")):
            note(f"{name}: no such folder here. Asking the Hugging Face hub ...")
