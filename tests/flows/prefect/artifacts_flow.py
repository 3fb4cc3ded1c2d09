"""A flow that tells Prefect of a build, for `test_story.py`: prints as JSON what Prefect's page has of it.

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

from pairwright.flows.prefect.artifacts import FlowArtifacts

STAGE = {"unit": "pair", "candidates": 3, "kept": 2, "rejected": {"bad_image": 1}, "parts": 1, "seconds": 0.1}
MANIFEST = {
    "stages": {"pairs": STAGE, "shards": STAGE},
    "types": {"negatives: swap-object": {"made": 4, "kept": 1, "rejected": {"no_edit": 3}}},
}


async def told(folder: Path) -> dict[str, Any]:
    """Tell a build of two stages, and return what the page has: the bar at three times, and the artifacts."""
    from prefect.artifacts import Artifact

    story = FlowArtifacts("My_Birds", ["pairs", "shards"])
    shares: list[float] = []

    async def share() -> None:
        artifact = await Artifact.aget(story.key("progress"))
        shares.append(float(artifact.data))  # type: ignore[union-attr,arg-type]

    await story.begin("pairs", 2)
    await share()
    await story.advance("pairs")
    await story.begin("shards", 1)
    await share()
    await story.end(MANIFEST, folder)
    await share()
    kinds = ("stages", "types", "card", "report")
    artifacts = {kind: (await Artifact.aget(f"my-birds-{kind}")).data for kind in kinds}  # type: ignore[union-attr]
    return {"shares": shares, **artifacts}


if __name__ == "__main__":
    from pairwright.flows.prefect.api import flow  # not for the test, which reads of this file what was told

    parse: Callable[..., Any] = ast.parse
    parsing: set[str] = set()

    def parse_and_tell(*given: object, **named: object) -> object:
        parsing.add(threading.current_thread().name)
        return parse(*given, **named)

    with patch.object(ast, "parse", parse_and_tell):
        found = asyncio.run(flow(name="story")(told)(Path(sys.argv[1])))
    print(json.dumps({**found, "parsing": sorted(parsing - {"MainThread"})}))  # noqa: T201 - what the test reads
