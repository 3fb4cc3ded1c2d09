"""Plans that are taken step by step, or as one step whose facts tell their result."""

from pathlib import Path

import orjson
import pytest

from pairwright.datasets.errors import UsageError
from pairwright.filters.refinement.steps import Plan, Step, StepResult, repeat, take_steps, take_together


def double(folder: Path, name: str, number: int) -> StepResult:
    path = folder / name
    path.write_text(str(2 * number))
    return [path], {"doubled": 2 * number}


def refuse(_: Path) -> StepResult:
    raise UsageError("no")


def grow(until: int) -> Plan[list[int]]:
    """Groups of one, two and more steps, each made from the facts of the group before."""
    numbers = [1]
    while max(numbers) < until:
        group = [
            Step(f"{len(numbers)}-{place}", double, (f"{len(numbers)}-{place}", each))
            for place, each in enumerate(numbers)
        ]
        facts = yield group
        numbers = [1, *(each["doubled"] for each in facts)]
    return numbers


def test_a_plan_that_is_one_step_has_the_files_and_the_result_of_its_steps(tmp_path: Path) -> None:
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
    expected = take_steps(tmp_path / "one", grow(30))
    files, facts = take_together(tmp_path / "other", grow(30))
    assert repeat(grow(30), orjson.loads(orjson.dumps(facts))) == expected
    written = {path.name: path.read_text() for path in (tmp_path / "one").iterdir()}
    assert written == {path.name: path.read_text() for path in files}
    assert len(files) == len(written) == 15


def test_an_error_of_a_step_is_that_of_the_plan(tmp_path: Path) -> None:
    def plan() -> Plan[None]:
        yield [Step("a", double, ("a", 1)), Step("b", refuse)]

    with pytest.raises(UsageError, match="no"):
        take_together(tmp_path, plan())
