"""What Prefect's page is told of a build."""

import asyncio
import json
from pathlib import Path
from typing import Any

from prefect.artifacts import Artifact

from pairwright.flows.prefect_api import flow
from pairwright.flows.story import Story

STAGE = {"unit": "pair", "candidates": 3, "kept": 2, "rejected": {"bad_image": 1}, "parts": 1, "seconds": 0.1}
MANIFEST = {
    "stages": {"pairs": STAGE, "shards": STAGE},
    "types": {"negatives: swap-object": {"made": 4, "kept": 1, "rejected": {"no_edit": 3}}},
}


def test_a_build_leaves_bar_tables_card_and_links_under_the_name_of_its_dataset(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n\n# Birds\n")
    shares: list[float] = []

    @flow(name="story")
    async def told() -> dict[str, Any]:
        story = Story("My_Birds", ["pairs", "shards"])

        async def share() -> None:
            artifact = await Artifact.aget(story.key("progress"))
            shares.append(float(artifact.data))  # type: ignore[union-attr,arg-type]

        await story.begin("pairs", 2)
        await share()
        await story.advance("pairs")
        await story.begin("shards", 1)
        await share()
        await story.end(MANIFEST, tmp_path)
        await share()
        kinds = ("stages", "types", "card", "report")
        return {kind: (await Artifact.aget(f"my-birds-{kind}")).data for kind in kinds}  # type: ignore[union-attr]

    found = asyncio.run(told())
    assert shares == [0.0, 50.0, 100.0]
    assert [row["stage"] for row in json.loads(found["stages"])] == ["pairs", "shards"]
    assert json.loads(found["stages"])[0]["rejected"] == "bad_image 1"
    assert json.loads(found["types"])[0]["kept"] == 1
    assert found["card"] == "# Birds\n"
    assert (tmp_path / "report.html").as_uri() in found["report"]


def test_outside_of_a_flow_nobody_is_told(tmp_path: Path) -> None:
    async def untold() -> None:
        story = Story("birds", ["pairs"])
        await story.begin("pairs", 1)
        await story.advance("pairs")
        await story.end(MANIFEST, tmp_path)

    asyncio.run(untold())
