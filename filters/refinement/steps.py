"""Steps of a refinement: work on the files of one folder, planned in groups whose steps do not depend on each other.

A plan is a generator: it yields a group of steps and is sent the facts of each. What a step leaves for another one is in
files; facts are a few numbers. So a plan can run in one process (`take_steps`) or as jobs of a build, with the same bytes.
"""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from pairwright.datasets.progress import track

Facts = Mapping[str, Any]
StepResult: TypeAlias = tuple[list[Path], Facts]
Result = TypeVar("Result")


@dataclass(frozen=True)
class Step:
    """A step.

    Attributes:
        name: unique in the folder.
        run: called with the folder and ``args``; returns the files that it wrote, and its facts.
        args: whose ``repr`` states all of their content.
    """

    name: str
    run: Callable[..., StepResult]
    args: tuple[Any, ...] = ()


Plan: TypeAlias = Generator[Sequence[Step], Sequence[Facts], Result]


def take_steps(folder: Path, plan: Plan[Result], about: str = "refining") -> Result:
    """Take the steps of a plan in this process and return its result."""
    facts: Sequence[Facts] | None = None
    try:
        while True:
            group = next(plan) if facts is None else plan.send(facts)
            facts = [step.run(folder, *step.args)[1] for step in track(group, about, unit="steps")]
    except StopIteration as end:
        result: Result = end.value
        return result
