"""The check of an LLM generator in worker processes, each of which constructs the generator once.

with CheckWorkers(executor, workers) as checking:
task = PairTask(generator, access, seed, options, checking.checks("llm-negatives", options, materials))
"""

import gc
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self

from pairwright.datasets.records import Annotation, Pair
from pairwright.flows.llm.answer_checks import AnswerCheck, AnswerChecks, in_background
from pairwright.flows.runners.pickled_setup import SetupInFile
from pairwright.generators.protocols import CheckedLLMGenerator
from pairwright.generators.registry import LLMMaterials, build_llm_generator

PRELOADED: Final = "pairwright.flows.llm.check_preload"  # module that loads what all workers need


@dataclass(frozen=True)
class CheckSetup:
    """A generator before it is constructed: its name, its options, and its materials."""

    generator: str
    options: Mapping[str, Any]
    materials: LLMMaterials


class CheckWorkers:
    """Where the generators of a run check answers; use it in a ``with``, since it keeps files.

    Args:
        executor: worker processes; None: answers are checked in this process.
        workers: of the executor.
    """

    def __init__(self, executor: Executor | None = None, workers: int = 1) -> None:
        self._executor, self._workers = executor, workers
        self._folder = TemporaryDirectory(prefix="pairwright-")
        self._numbers = count()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def checks(self, generator: str, options: Mapping[str, Any], materials: "Future[LLMMaterials]") -> AnswerChecks:
        """Return the checks of a generator of the registry, whose materials may be known later."""
        path = Path(self._folder.name) / f"{next(self._numbers)}.pickle"

        def check() -> AnswerCheck:
            return GeneratorCheck(CheckSetup(generator, options, materials.result()), path)

        return AnswerChecks(in_background(check), self._executor, self._workers)


class GeneratorCheck(SetupInFile[CheckSetup]):
    """`CheckedLLMGenerator.check` of a generator."""

    @cached_property
    def _generator(self) -> CheckedLLMGenerator[Any]:
        made = build_llm_generator(self._setup.generator, self._setup.materials, self._setup.options)
        assert isinstance(made, CheckedLLMGenerator)
        gc.freeze()  # the tables live as long as the process; the collector need not visit them
        return made

    def __call__(self, batch: Sequence[tuple[Pair, Any]]) -> list[list[Annotation]]:
        """Return the annotations of each pair of a batch."""
        return self._generator.check(batch)
