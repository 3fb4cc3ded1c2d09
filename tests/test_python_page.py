"""The commands and the code of `docs/python.md` run as they stand."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app

PAGE = Path(__file__).parents[1] / "docs" / "python.md"


def test_the_commands_and_the_code_of_the_page_run_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = PAGE.read_text().replace("pairs=300", "pairs=30")  # few captions need no model of their own
    blocks = re.findall(r"```(python)?\n(.*?)```", page, re.DOTALL)
    names: dict[str, Any] = {}
    for language, block in blocks:
        if language:
            exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102 - our own page
            continue
        for command in block.replace("build build.yaml", "build build.yaml --workers 1").splitlines():
            result = CliRunner().invoke(app, command.split()[1:])
            assert result.exit_code == 0, result.output
    assert len(blocks) == 7
    assert names["pairs"].height == 30
    assert set(names["texts"]) == {"replace-object", "swap-object"}
    assert len(names["hits"]) == 4 * 5
    assert (tmp_path / "refined.jsonl").is_file()
