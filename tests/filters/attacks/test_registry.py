"""The table of attacks: every attack that runs has an entry, and every optional one can be named."""

import polars as pl
import pytest
from typer.testing import CliRunner

from pairwright.cli.main import app
from pairwright.datasets.errors import UsageError
from pairwright.filters.attacks.accuracy import measure_attacks
from pairwright.filters.attacks.registry import BUILT_IN, TRANSFER, describe_attack, list_optional_attacks, load_scorer
from pairwright.filters.refinement.general.refine import refine_against_all_attacks

WORDS = ("dog", "cat", "bus", "tree")
ROWS = pl.DataFrame(
    [
        {
            "id": str(number),
            "group": str(number // 2),
            "type": "replace",
            "positive": f"a {WORDS[number % 4]} near a {WORDS[number % 3]}",
            "negative": f"a {WORDS[(number + 1) % 4]} near a {WORDS[number % 3]}",
        }
        for number in range(120)
    ]
)


def test_every_attack_of_an_audit_and_of_a_refinement_is_described() -> None:
    refined = refine_against_all_attacks(ROWS)
    names = {*measure_attacks(ROWS), *refined.total.attacks, *refined.gaps.drop("id").columns}
    assert all(describe_attack(name) for name in names)
    assert names == {name for name, attack in BUILT_IN.items() if not attack.optional}
    assert TRANSFER not in BUILT_IN  # balanced, no attack


@pytest.mark.parametrize("verb", ["audit", "refine"])
def test_the_help_names_every_optional_attack(verb: str) -> None:
    text = CliRunner().invoke(app, [verb, "--help"]).output
    assert all(name in text for name in list_optional_attacks())


@pytest.mark.parametrize("name", ["length", "meaning", "llm", "words"])
def test_an_attack_that_is_no_loadable_scorer_is_an_error(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        load_scorer(name)


def test_an_unknown_scorer_is_an_error_that_suggests_names() -> None:
    with pytest.raises(UsageError, match="vera"):
        load_scorer("veras")
