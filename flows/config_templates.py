"""Commented configs to start from: the files in ``templates/``, with the user's input and columns filled in."""

import os
from collections.abc import Mapping
from pathlib import Path
from string import Template

import yaml

from pairwright.datasets.errors import UsageError
from pairwright.flows.config import parse_config

FOLDER = Path(__file__).parent / "templates"


def template_names() -> list[str]:
    """Return the names of the templates."""
    return sorted(path.stem for path in FOLDER.glob("*.yaml"))


def render_template(name: str, *, input_path: str, columns: Mapping[str, str], beside: Path) -> str:
    """Return the text of a config that `flows.config.load_config` reads.

    Args:
        name: of the template.
        input_path: the user's data; empty leaves a placeholder to fill in.
        columns: our name to the name in the user's data.
        beside: the config file to be; paths are written relative to its folder.

    Raises:
        UsageError: when there is no such template.
    """
    if name not in template_names():
        raise UsageError(f"no template named {name!r}. There are: {', '.join(template_names())}.")
    shown = _relative(input_path, beside) if input_path else "path/to/captions.jsonl"
    mapping = yaml.safe_dump(dict(columns), default_flow_style=True, sort_keys=False, width=1000).strip()
    text = Template((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")).substitute(
        name=yaml.safe_dump(_dataset_name(input_path)).removesuffix("...\n").strip(),
        input=yaml.safe_dump(shown, width=1000).removesuffix("...\n").strip(),
        columns=mapping,
    )
    parse_config(yaml.safe_load(text), where=f"template {name}")
    return text


def _relative(input_path: str, beside: Path) -> str:
    return os.path.relpath(Path(input_path).expanduser().absolute(), beside.absolute().parent)


def _dataset_name(input_path: str) -> str:
    stem = Path(input_path).name.split(".")[0].split("{")[0]
    cleaned = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in stem).strip("-_")
    return cleaned or "my-dataset"
