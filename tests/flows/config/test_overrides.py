"""Settings in place of those of a config file."""

from pathlib import Path

import pytest
import yaml

from pairwright.datasets.errors import ConfigError
from pairwright.flows.config.build import load_config


def test_overrides_replace_single_keys_of_sections(tmp_path: Path) -> None:
    given = {"name": "x", "input": {"path": "in.jsonl", "max_caption": 99}, "llm": {"model": "m", "max_cost": 2}}
    (tmp_path / "build.yaml").write_text(yaml.safe_dump(given))
    config = load_config(tmp_path / "build.yaml", {"workers": 3, "llm": {"max_cost": 5.0}, "refine": None})
    assert config.llm is not None
    assert (config.workers, config.llm.max_cost, config.llm.model) == (3, 5.0, "m")
    assert config.input.max_caption == 99
    assert config.input.path == str(tmp_path / "in.jsonl")
    with pytest.raises(ConfigError, match=r"build.yaml, with overrides: unknown key `wrkers`"):
        load_config(tmp_path / "build.yaml", {"wrkers": 3})
