"""Options of a model: invalid values are refused, and no message shows a secret."""

from pathlib import Path

import pytest

from pairwright.cli.build import build
from pairwright.cli.options.model import ModelOptions
from pairwright.datasets.errors import UsageError


def test_an_address_with_a_password_is_refused_without_showing_it() -> None:
    with pytest.raises(UsageError, match=r"--base-url: .*OPENAI_BASE_URL") as refusal:
        ModelOptions(model="m", base_url="http://me:hunter22@host/v1").section()
    assert "hunter22" not in str(refusal.value)


def test_a_value_that_cannot_be_is_shown_with_its_option() -> None:
    with pytest.raises(UsageError, match="--max-cost -1"):
        ModelOptions(model="m", max_cost=-1).section()


@pytest.mark.parametrize("most", [0.0, -1.0, float("nan")])
def test_a_build_without_money_to_spend_is_refused_and_not_run_without_a_limit(tmp_path: Path, most: float) -> None:
    config = tmp_path / "build.yaml"
    config.write_text("name: t\ninput: {path: in.jsonl}\nllm: {model: m}\n")
    with pytest.raises(UsageError, match="--max-cost"):
        build(config, out=tmp_path / "build", max_cost=most)
