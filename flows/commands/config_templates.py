"""Config templates of `pairwright init`, and a deployment for Prefect: the files in ``templates/``, filled in."""

import json
import os
import re
import unicodedata
from pathlib import Path
from string import Template

import yaml

from pairwright.datasets.remote.object_store import is_remote
from pairwright.datasets.suggestions import require_known
from pairwright.flows.commands.input_survey import InputSettings
from pairwright.flows.config.build import parse_config

_COMMENTS_AT = 26  # column of a section's comments
TEMPLATE_FOLDER = Path(__file__).parents[1] / "templates"


def template_names() -> list[str]:
    """Return the names of the templates."""
    return sorted(path.stem for path in TEMPLATE_FOLDER.glob("*.yaml"))


_CAPTIONS = """
captions:                 # of the images that have none, by a model that sees them
  forms: [short]          # of short, long, tags
  per_image: 1
"""
_MODEL = """
llm:
  model: gpt-4o-mini      # its key: OPENAI_API_KEY; a server of your own: OPENAI_BASE_URL; on this machine: local:FOLDER
  # max_cost: 5           # USD at which the build stops; finished work is kept
"""
_COMMENTED_MODEL = re.compile(r"^# llm:.*\n(?:#   .*\n)*\n?", re.MULTILINE)  # would be a duplicate of `_MODEL`
_NO_SURVEY = InputSettings()
_HINTS = {
    "where": "# where: {split: [train]}              # rows to read: column and values; others are rejected",
    "instances": "# instances: instances_val2014.json    # boxes, when path is a COCO captions file",
    "image_root": "# image_root: images/                  # folder that relative image paths start from",
    "verify_images": "# verify_images: off                   # without image files, with `images: false` under shards",
    "encoding": "# encoding: cp1252                     # of rows of CSV, TSV and JSON Lines that are not UTF-8",
    "clean_captions": "# clean_captions: true                 # remove HTML, addresses, hashtags, emoji, 'stock photo'",
}


def render_template(name: str, *, input_path: str, survey: InputSettings = _NO_SURVEY, config: Path) -> str:
    """Return the text of a config, for `load_config`.

    Args:
        name: of the template.
        input_path: the user's data; empty for a placeholder.
        survey: settings for the data.
        config: path of the new config file; paths are written relative to its folder.

    Raises:
        UsageError: when there is no such template.
    """
    require_known("no template named", [name], template_names())
    shown = _relative(input_path, config) if input_path else "path/to/captions.jsonl"
    mapping = yaml.safe_dump(
        dict(survey.columns), default_flow_style=True, sort_keys=False, width=1000, allow_unicode=True
    ).strip()
    text = Template((TEMPLATE_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")).substitute(
        name=_scalar(_dataset_name(input_path)),
        input=_scalar(shown),
        columns=mapping,
        **_detected_lines(survey, config),
    )
    if survey.uncaptioned:
        more = _CAPTIONS if "llm" in yaml.safe_load(text) else _CAPTIONS + _MODEL
        text = _COMMENTED_MODEL.sub("", text) + more
    parse_config(yaml.safe_load(text), where=f"template {name}")
    return text


def _detected_lines(survey: InputSettings, config: Path) -> dict[str, str]:
    """Return the lines of a template that depend on the data: settings, or commented examples."""
    lines = dict(_HINTS)
    for name, path in (("instances", survey.instances), ("image_root", survey.image_root)):
        if path:
            lines[name] = f"{name}: {_scalar(_relative(path, config))}"
    if survey.texts_only:
        lines["verify_images"] = 'verify_images: "off"      # no image files'
    if survey.clean_captions:
        lines["clean_captions"] = (
            "clean_captions: true      # HTML, addresses, hashtags, emoji, 'stock photo' are removed"
        )
    if survey.encoding:
        lines["encoding"] = f"encoding: {_scalar(survey.encoding)}          # of the lines that are not UTF-8"
    packed = {"images": not survey.texts_only, "image_format": survey.image_format}
    return lines | {name: f"{name}: {_json(value)}".ljust(_COMMENTS_AT) for name, value in packed.items()}


def render_deployment(config_text: str, config: Path) -> str:
    """Return the text of a ``prefect.yaml`` that schedules the build of a config.

    Args:
        config_text: of the config, from `render_template`.
        config: path of the config file, in the folder of ``prefect.yaml``.
    """
    name = yaml.safe_load(config_text)["name"]
    text = (TEMPLATE_FOLDER / "deployment" / "prefect.yaml").read_text(encoding="utf-8")
    values = {"name": name, "folder": str(config.absolute().parent), "config": config.name, "out": f"build/{name}"}
    return Template(text).substitute({key: _scalar(value) for key, value in values.items()})


def _json(value: object) -> str:
    return json.dumps(value)


def _scalar(value: str) -> str:
    return yaml.safe_dump(value, width=1000, allow_unicode=True).removesuffix("...\n").strip()


def _relative(path: str, config: Path) -> str:
    if is_remote(path):
        return path
    return os.path.relpath(Path(path).expanduser().absolute(), config.absolute().parent)


def _dataset_name(input_path: str) -> str:
    """Return the name of a file or of its folder in the characters of a dataset's name; accents are removed."""
    path = Path(input_path)
    for name in (path.name.split(".")[0].split("{")[0], path.parent.name):
        letters = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
        cleaned = re.sub(r"[^A-Za-z0-9_-]+", "-", letters).strip("-_")
        if cleaned:
            return cleaned
    return "my-dataset"
