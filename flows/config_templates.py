"""Commented configs to start from, and a schedule for Prefect: the files in ``templates/``, with what the user gave."""

import os
from collections.abc import Mapping
from pathlib import Path
from string import Template

import yaml

from pairwright.datasets.choices import refuse_unknown
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
    refuse_unknown("no template named", [name], template_names())
    shown = _relative(input_path, beside) if input_path else "path/to/captions.jsonl"
    mapping = yaml.safe_dump(dict(columns), default_flow_style=True, sort_keys=False, width=1000).strip()
    text = Template((FOLDER / f"{name}.yaml").read_text(encoding="utf-8")).substitute(
        name=_scalar(_dataset_name(input_path)),
        input=_scalar(shown),
        columns=mapping,
    )
    parse_config(yaml.safe_load(text), where=f"template {name}")
    return text


def render_deployment(config_text: str, config: Path) -> str:
    """Return the text of a ``prefect.yaml`` that schedules the build of a config.

    Args:
        config_text: the config, as `render_template` gives it.
        config: the file it stands in; ``prefect.yaml`` stands beside it.
    """
    name = yaml.safe_load(config_text)["name"]
    text = (FOLDER / "deployment" / "prefect.yaml").read_text(encoding="utf-8")
    given = {"name": name, "folder": str(config.absolute().parent), "config": config.name, "out": f"build/{name}"}
    return Template(text).substitute({key: _scalar(value) for key, value in given.items()})


def _scalar(value: str) -> str:
    return yaml.safe_dump(value, width=1000).removesuffix("...\n").strip()


def _relative(input_path: str, beside: Path) -> str:
    return os.path.relpath(Path(input_path).expanduser().absolute(), beside.absolute().parent)


def _dataset_name(input_path: str) -> str:
    stem = Path(input_path).name.split(".")[0].split("{")[0]
    cleaned = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in stem).strip("-_")
    return cleaned or "my-dataset"
