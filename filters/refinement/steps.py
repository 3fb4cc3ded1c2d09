"""Steps of a refinement: work on the files of one folder, planned in groups whose steps do not depend on each other.

A plan is a generator: it yields a group of steps and is sent the facts of each. What a step leaves for another one is in
files; facts are a few numbers. So a plan can run in one process (`take_steps`) or as jobs of a build, with the same bytes.
A plan of many short steps can be one step itself (`take_together`).
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from pairwright.datasets.progress import track
from pairwright.datasets.worker_processes import available_cores

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
        multi_core: whether it uses several cores.
        after: names of the steps whose files it reads; None: all before it.
    """

    name: str
    run: Callable[..., StepResult]
    args: tuple[Any, ...] = ()
    multi_core: bool = False
    after: tuple[str, ...] | None = None


Plan: TypeAlias = Generator[Sequence[Step], Sequence[Facts], Result]


def take_steps(folder: Path, plan: Plan[Result]) -> Result:
    """Take the steps of a plan in this process and return its result."""
    return _follow(plan, lambda group: [step.run(folder, *step.args)[1] for step in _tracked(group)])


def take_together(folder: Path, plan: Plan[Any]) -> StepResult:
    """Take the steps of a plan as one step, those of a group in threads; from its facts `repeat` finds the plan's result."""
    files: list[Path] = []
    taken: list[list[Facts]] = []
    with ThreadPoolExecutor(available_cores()) as threads:

        def take(group: Sequence[Step]) -> Sequence[Facts]:
            results = threads.map(lambda step: step.run(folder, *step.args), group)
            taken.append([])
            for _, (outputs, facts) in zip(_tracked(group), results, strict=True):
                files.extend(outputs)
                taken[-1].append(facts)
            return taken[-1]

        _follow(plan, take)
    return files, {"taken": taken}


def repeat(plan: Plan[Result], facts: Facts) -> Result:
    """Return the result of a plan that `take_together` took, from the facts of that step."""
    taken = iter(facts["taken"])
    return _follow(plan, lambda _: next(taken))


def _follow(plan: Plan[Result], take: Callable[[Sequence[Step]], Sequence[Facts]]) -> Result:
    facts: Sequence[Facts] | None = None
    try:
        while True:
            facts = take(next(plan) if facts is None else plan.send(facts))
    except StopIteration as end:
        result: Result = end.value
        return result


def _tracked(group: Sequence[Step]) -> Iterable[Step]:
    return track(group, "refining", unit="steps")
