"""Image files are looked at by the workers, and by each share of a build once."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from pairwright.datasets.shards.layout import find_shards
from pairwright.datasets.shards.reading import read_shard
from pairwright.flows.build import build
from pairwright.flows.stage_selection import Share, StageSelection
from pairwright.flows.stages import image_states
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import ServerScript
from pairwright.generators.llm.testing.serving import serve_in_thread
from tests.flows.conftest import checked
from tests.flows.runners.test_ray_pool import contents

WORDS = ("dog", "cat", "horse", "bird", "cow", "sheep")
ANSWER = "It says what is known. So the answer is yes."


def settings(folder: Path, **sections: Any) -> dict[str, Any]:
    """Return the settings of a build of six images in three parts."""
    for number, word in enumerate(WORDS):
        Image.new("RGB", (16, 16), (40 * number, 0, 0)).save(folder / f"{word}.png")
    lines = [json.dumps({"image": f"{word}.png", "caption": f"A {word} sits on a red bed."}) for word in WORDS]
    (folder / "in.jsonl").write_text("\n".join(lines))
    given = {"path": str(folder / "in.jsonl")}
    return {"name": "t", "input": given, "part_size": 2, "workers": 1, "shards": {"samples": 4}, **sections}


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """The parts whose images are looked at, each with whether that is in the thread that plans the build."""
    seen = list[tuple[str, bool]]()
    find = image_states.survey_parts

    def noted(parts: list[str], *given: Any, **options: Any) -> Any:
        seen.extend((part, threading.current_thread() is threading.main_thread()) for part in parts)
        return find(parts, *given, **options)

    monkeypatch.setattr(image_states, "survey_parts", noted)
    return seen


@pytest.mark.parametrize("batch", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_of_many_pairs_the_workers_look_at_what_is_packed_and_shown_to_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: list[tuple[str, bool]], *, batch: bool
) -> None:
    sections: dict[str, Any] = {"negatives": {"types": ["replace-object"]}, "rationales": {"see_image": True}}
    config = settings(tmp_path, **sections, llm={"model": "small", "batch": batch})
    with serve_in_thread(ServerApp(ServerScript(rules=[{"matches": "", "text": ANSWER}]))) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        build(checked(config), tmp_path / "few", prefect=False)
        assert looks == [(part, True) for part in ("00000", "00001", "00002")] * 2
        looks.clear()
        monkeypatch.setattr(image_states, "_MAX_LOCAL_PAIRS", 0)
        made = build(checked(config), tmp_path / "many", prefect=False)
        assert looks == [(part, False) for part in ("00000", "00001", "00002")] * 2
        asked = server.stats()["requests"]
        build(checked(config), tmp_path / "many", prefect=False)
        assert server.stats()["requests"] == asked
    assert made["stages"]["rationales"]["kept"]
    assert contents(tmp_path / "many") == contents(tmp_path / "few")


def test_shares_look_at_their_share_of_the_images_and_a_finishing_run_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looks: list[tuple[str, bool]]
) -> None:
    monkeypatch.setattr(image_states, "_MAX_LOCAL_PAIRS", 0)
    config, out = checked(settings(tmp_path)), tmp_path / "parts"

    def run(part: str) -> Any:
        return build(config, out, prefect=False, selection=StageSelection(share=Share.parse(part)))["left"]

    left = [run(part) for part in ("1/2", "2/2") * 5]
    assert left[-1] is left[-2] is None
    assert sorted(looks) == [(part, False) for part in ("00000", "00001", "00002")]
    Image.new("RGB", (16, 16), "yellow").save(tmp_path / "cow.png")
    build(config, out, prefect=False)
    assert len(looks) == 6
    build(config, tmp_path / "one", prefect=False)
    assert contents(out) == contents(tmp_path / "one")
    images = [sample.image for tar in find_shards(out / "shards") for sample in read_shard(tar)]
    assert (tmp_path / "cow.png").read_bytes() in images
    assert not list(out.glob("receipts/*/images-*"))
