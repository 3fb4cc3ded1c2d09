"""What Prefect's page is told of a build."""

import asyncio
import json
from pathlib import Path

from pairwright.flows.prefect.artifacts import FlowArtifacts
from pairwright.flows.prefect.flow_reports import FlowReports
from tests.flows.conftest import Run
from tests.flows.prefect.artifacts_flow import MANIFEST


def test_a_build_leaves_bar_tables_card_and_links_under_the_name_of_its_dataset(
    tmp_path: Path, through_prefect: Run
) -> None:
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n\n# Birds\n")
    done = through_prefect("tests.flows.prefect.artifacts_flow", tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["shares"] == [0.0, 50.0, 100.0]
    assert [row["stage"] for row in json.loads(found["stages"])] == ["pairs", "shards"]
    assert json.loads(found["stages"])[0]["rejected"] == "bad_image 1"
    assert json.loads(found["types"])[0]["kept"] == 1
    assert found["card"] == "# Birds\n"
    assert (tmp_path / "report.html").as_uri() in found["report"]
    assert not found["parsing"], "a second thread parses Python while a build does: see `flows/prefect/api.py`"


def test_outside_of_a_flow_no_artifact_is_created(tmp_path: Path) -> None:
    async def untold() -> None:
        story = FlowArtifacts("birds", ["pairs"], FlowReports())
        story.begin("pairs", 1)
        story.advance("pairs")
        await story.end(MANIFEST, tmp_path)

    asyncio.run(untold())
