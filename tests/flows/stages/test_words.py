"""Stage ``words``: the edit model of a pool, and the word balance of what its generators make."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from pairwright.flows.build import build
from pairwright.flows.config.build import parse_config
from pairwright.flows.state.receipts import read_receipts
from pairwright.generators.edits.edit_model import EditModel
from pairwright.generators.language.cloze.context import SLOT_KINDS

THINGS = ("glider", "barge", "tractor", "crane", "kayak", "turbine", "lathe", "anvil")  # few are in captions of COCO
PLACES = ("hangar", "quay", "barn", "quarry", "marsh", "foundry")


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """A pool of two captions an image that is large enough to learn from."""
    rng, path = random.Random(3), tmp_path / "captions.jsonl"
    texts = [f"A {rng.choice(THINGS)} near a {rng.choice(PLACES)} and a {rng.choice(PLACES)}." for _ in range(240)]
    path.write_text(
        "".join(json.dumps({"key": at, "captions": texts[at : at + 2]}) + "\n" for at in range(0, len(texts), 2))
    )
    return path


def built(folder: Path, captions: Path, **sections: Any) -> EditModel:
    config = {
        "name": "x",
        "input": {"path": str(captions), "columns": {"key": "key"}},
        "part_size": 60,
        "workers": 1,
        **sections,
    }
    build(parse_config(config, where="test"), folder, prefect=False)
    return EditModel.load(folder / "statistics")


def test_the_balance_is_learned_for_the_types_that_are_made(tmp_path: Path, captions: Path) -> None:
    model = built(tmp_path / "out", captions, negatives={"types": ["replace-object", "swap-object", "add-object"]})
    assert model.cloze.targets("noun")
    assert set(model.cloze.targets("noun")) <= {*THINGS, *PLACES}
    assert set(model.balance) == {"replace-object"}
    assert model.balance["replace-object"]
    parts = {receipt.part for receipt in read_receipts(tmp_path / "out") if receipt.stage == "words"}
    assert parts == {"counts", "slots", *(f"network-{kind}" for kind in SLOT_KINDS), "cloze", "proposals-00000", "all"}


def test_the_model_does_not_depend_on_the_number_of_parts(tmp_path: Path, captions: Path) -> None:
    few = built(tmp_path / "few", captions, positives={})
    many = built(tmp_path / "many", captions, positives={}, part_size=8)  # more than are merged at once
    assert len(list((tmp_path / "many" / "pairs").iterdir())) == 15
    assert many.cloze.digest == few.cloze.digest


def test_positives_need_no_balance_and_another_type_no_other_model(tmp_path: Path, captions: Path) -> None:
    first = built(tmp_path / "out", captions, positives={})
    assert first.balance == {}
    second = built(tmp_path / "out", captions, negatives={"types": ["replace-object"]}, positives={})
    assert second.cloze.digest == first.cloze.digest
    assert set(second.balance) == {"replace-object"}
    increment = captions.read_text() + json.dumps({"key": 999, "captions": ["A glider near a barge."]}) + "\n"
    captions.write_text(increment)
    sections = {"negatives": {"types": ["replace-object"]}, "positives": {}, "incremental": True}
    assert built(tmp_path / "out", captions, **sections).balance == second.balance
