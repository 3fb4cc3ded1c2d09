"""What `--only` and `--from` promise."""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pairwright.datasets.build_manifest import read_manifest
from pairwright.datasets.errors import UsageError
from pairwright.datasets.verification.checks import verify
from pairwright.flows.build import build as build_with_prefect
from pairwright.flows.graph import stage_names
from pairwright.flows.progress import BuildProgress
from pairwright.flows.stage_selection import StageSelection
from tests.flows.conftest import checked, settings

build = partial(build_with_prefect, prefect=False)


class Ran(BuildProgress):
    """Remembers which stages ran anew."""

    def __init__(self) -> None:
        self.stages: set[str] = set()

    def advance(self, stage: str, *, reused: bool) -> None:  # noqa: D102 - as the protocol says
        if not reused:
            self.stages.add(stage)


def config(corpus: Path, **changes: Any) -> Any:
    return checked(settings(corpus, **changes))


@pytest.fixture
def out(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "build")
    return tmp_path / "build"


def test_the_names_of_the_stages_are_those_that_run_in_their_order(corpus: Path, built: Path) -> None:
    assert list(stage_names(config(corpus))) == list(read_manifest(built)["stages"])
    plain = config(corpus, retrieve=None, negatives=None, positives=None, conversations=None, refine=None)
    assert stage_names(plain) == ("pairs", "tag", "words", "shards", "sizes")
    searchable = config(corpus, retrieve=None, index={})
    assert stage_names(searchable)[:3] == ("pairs", "index", "tag")


def test_from_makes_a_stage_and_all_that_follow_again_to_the_same_bytes(corpus: Path, out: Path) -> None:
    before, ran = read_manifest(out)["files"], Ran()
    build(config(corpus), out, ran, selection=StageSelection(begin="positives"))
    names = stage_names(config(corpus))
    assert ran.stages == set(names[names.index("positives") :])
    assert read_manifest(out)["files"] == before


def test_only_makes_one_stage_and_a_later_build_the_rest(corpus: Path, out: Path) -> None:
    other, ran = config(corpus, refine={"cells": 6}), Ran()
    told = build(other, out, ran, selection=StageSelection(only="refine"))
    assert ran.stages == {"refine"}
    assert list(told["stages"])[-1] == "refine"
    assert Path(told["place"]) == out / ".next"
    assert verify(out) == []  # the finished version is as it was
    rest = Ran()
    build(other, out, rest)
    assert rest.stages <= {"shards", "sizes"}
    assert read_manifest(out)["stages"]["refine"]["kept"] == told["stages"]["refine"]["kept"]


def test_only_refuses_when_what_comes_before_is_not_there(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="stage pairs is not done"):
        build(config(corpus), tmp_path / "new", selection=StageSelection(only="refine"))


@pytest.mark.parametrize(
    ("selection", "said"),
    [
        (StageSelection(only="polish"), "no such stage: polish. There are: pairs, index"),
        (StageSelection(begin="captions"), "no such stage"),
        (StageSelection(only="tag", begin="tag"), "mutually exclusive"),
    ],
)
def test_a_stage_that_the_build_has_not_is_refused_and_nothing_touched(
    corpus: Path, out: Path, selection: StageSelection, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        build(config(corpus), out, selection=selection)
    assert read_manifest(out)
