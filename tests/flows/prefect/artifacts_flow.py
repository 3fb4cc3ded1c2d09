"""A flow that tells Prefect of a build, for `test_artifacts.py`: prints as JSON what Prefect's page has of it.

And which threads beside the main one have parsed Python's grammar meanwhile.

In a process of its own: whoever has run a flow cannot fork any more (Prefect's temporary server), and data loaders do.
"""

import ast
import asyncio
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pairwright.flows.prefect import artifacts
from pairwright.flows.prefect.artifacts import FlowArtifacts
from pairwright.flows.prefect.flow_reports import FlowReports

STAGE = {"unit": "pair", "candidates": 3, "kept": 2, "rejected": {"bad_image": 1}, "parts": 1, "seconds": 0.1}
MANIFEST = {
    "stages": {"pairs": STAGE, "shards": STAGE},
    "types": {"negatives: swap-object": {"made": 4, "kept": 1, "rejected": {"no_edit": 3}}},
}


async def told(folder: Path) -> dict[str, Any]:
    """Tell a build of two stages, and return what the page has: the bar at three times, and the artifacts."""
    from prefect.artifacts import Artifact

    reports = FlowReports()
    reports.open()
    story = FlowArtifacts("My_Birds", ["pairs", "shards"], reports)
    shares: list[float] = []

    async def share() -> None:
        await reports.close()
        artifact = await Artifact.aget(story.key("progress"))
        shares.append(float(artifact.data))  # type: ignore[union-attr,arg-type]

    story.begin("pairs", 2)
    await share()
    story.advance("pairs")
    story.begin("shards", 1)
    await share()
    await story.end(MANIFEST, folder)
    await share()
    kinds = ("stages", "types", "card", "report")
    made = {kind: (await Artifact.aget(f"my-birds-{kind}")).data for kind in kinds}  # type: ignore[union-attr]
    return {"shares": shares, **made}


if __name__ == "__main__":
    from pairwright.flows.prefect.api import flow  # not for the test, which reads of this file what was told

    parse: Callable[..., Any] = ast.parse
    parsing: set[str] = set()

    def parse_and_tell(*given: object, **named: object) -> object:
        parsing.add(threading.current_thread().name)
        return parse(*given, **named)

    with patch.object(ast, "parse", parse_and_tell), patch.object(artifacts, "_UPDATE_SECONDS", 0.0):
        found = asyncio.run(flow(name="story")(told)(Path(sys.argv[1])))
    print(json.dumps({**found, "parsing": sorted(parsing - {"MainThread"})}))  # noqa: T201 - what the test reads
