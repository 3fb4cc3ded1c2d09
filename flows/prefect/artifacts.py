"""Artifacts of a build on Prefect's page.

During the build a progress bar over stages and parts; at its end a table of stages, a table of types of texts, for an
increment the audit of all versions, the dataset card, and links to report and card. Their keys begin with the name of
the dataset, so that the page shows their history over the runs of a schedule. Outside of a flow there are none.
"""

import asyncio
import re
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from pairwright.datasets.rejects import list_reasons
from pairwright.flows.prefect.flow_reports import FlowReports

_UPDATE_SECONDS = 2.0  # between updates of the bar: a build may have a thousand parts


class FlowArtifacts:
    """Artifacts of one build.

    Args:
        name: of the dataset.
        stages: names of the stages, in order.
        reports: of the build.
    """

    def __init__(self, name: str, stages: Sequence[str], reports: FlowReports) -> None:
        self._name = name
        self._stages = stages
        self._reports = reports
        self._bar: UUID | None = None
        self._shown: tuple[float, str] = (0.0, "")
        self._drawing: asyncio.Task[None] | None = None
        self._updated = 0.0
        self._jobs, self._done = 0, 0

    def key(self, what: str) -> str:
        """Return the key of an artifact; Prefect allows lower-case letters, digits and dashes."""
        slug = re.sub(r"[^a-z0-9]+", "-", self._name.lower()).strip("-")
        return f"{slug}-{what}"

    def begin(self, stage: str, jobs: int) -> None:
        """Begin a stage of so many jobs."""
        self._jobs, self._done = jobs, 0
        self._draw_at_times(stage)

    def advance(self, stage: str) -> None:
        """Count a job of the stage as done."""
        self._done += 1
        self._draw_at_times(stage)

    async def end(self, manifest: Mapping[str, Any], out: Path) -> None:
        """Create the artifacts of a finished build."""
        if not self._reports.expected:
            return
        if self._drawing is not None:
            await asyncio.wait([self._drawing])
        self._shown = 100.0, f"{self._name}: done"
        await self._reports.send(self._draw)
        await self._reports.send(partial(self._create, manifest, out))

    async def _create(self, manifest: Mapping[str, Any], out: Path) -> None:
        from pairwright.flows.prefect.api import (
            acreate_link_artifact,
            acreate_markdown_artifact,
            acreate_table_artifact,
        )

        await acreate_table_artifact(_stage_rows(manifest), self.key("stages"), f"Stages of {self._name}, in order")
        if manifest["types"]:
            await acreate_table_artifact(_type_rows(manifest), self.key("types"), f"Types of texts in {self._name}")
        if manifest.get("audit"):
            title = f"Audit of {self._name}, all versions: {manifest['audit']['verdict']}"
            await acreate_table_artifact(_audit_rows(manifest), self.key("audit"), title)
        await acreate_markdown_artifact(_body(out / "README.md"), self.key("card"), f"Dataset card of {self._name}")
        for what in ("report.html", "README.md"):
            place = (out / what).absolute()
            key = self.key("report" if what == "report.html" else "card-file")
            await acreate_link_artifact(place.as_uri(), str(place), key, f"{what} of {self._name}, where it was built")

    def _draw_at_times(self, stage: str) -> None:
        """Draw the bar beside the build, unless it was drawn a moment ago or its last state is still to be drawn."""
        if not self._reports.expected:
            return
        within = self._done / self._jobs if self._jobs else 0.0
        share = 100.0 * (self._stages.index(stage) + within) / len(self._stages)
        self._shown = share, f"{self._name}: {stage}, {self._done} of {self._jobs} parts"
        is_drawn = self._drawing is None or self._drawing.done()
        if is_drawn and time.monotonic() - self._updated >= _UPDATE_SECONDS:
            self._updated = time.monotonic()
            self._drawing = self._reports.send(self._draw)

    async def _draw(self) -> None:
        from pairwright.flows.prefect.api import acreate_progress_artifact, aupdate_progress_artifact

        share, text = self._shown
        if self._bar is None:
            self._bar = await acreate_progress_artifact(share, self.key("progress"), text)
        else:
            await aupdate_progress_artifact(self._bar, share, text)


def _stage_rows(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "stage": name,
            **{column: stage[column] for column in ("unit", "candidates", "kept")},
            "rejected": list_reasons(stage["rejected"]),
            **{column: stage[column] for column in ("parts", "seconds")},
        }
        for name, stage in manifest["stages"].items()
    ]


def _type_rows(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": name, "made": counts["made"], "kept": counts["kept"], "rejected": list_reasons(counts["rejected"])}
        for name, counts in manifest["types"].items()
    ]


def _audit_rows(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    attacks = manifest["audit"]["attacks"].items()
    return [
        {"attack": name, **{key: round(result[key], 4) for key in ("accuracy", "low", "high")}}
        for name, result in attacks
    ]


def _body(card: Path) -> str:
    """Return the text of a dataset card without the metadata at its head."""
    text = card.read_text(encoding="utf-8")
    return text.partition("\n---\n")[2].lstrip() if text.startswith("---\n") else text
