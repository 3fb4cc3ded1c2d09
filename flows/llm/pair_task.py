"""The task of an LLM generator over pairs.

A row failed when its step raised an error, when a request got no answer, or when nothing was kept for a reason that lies
in the answers: such a row can be retried. A caption without anything to edit did not fail, nor did a row about which a
model gave its verdict, whatever that is.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id
from pairwright.datasets.rng import hash_to_int
from pairwright.flows.llm.answer_checks import AnswerChecks, completed
from pairwright.flows.llm.context import ModelRow
from pairwright.flows.llm.estimate import estimate_all
from pairwright.flows.llm.failed_rows import read_attempts
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.generators.llm.client.parameter_overrides import as_resampled
from pairwright.generators.llm.client.request_errors import REQUEST_ERROR_CODES
from pairwright.generators.llm.client.steps import LLMStep, gather, map_requests
from pairwright.generators.llm.cost_estimate import StagePlan
from pairwright.generators.llm.grouping import group_steps
from pairwright.generators.llm.runner import RowResult, run_item
from pairwright.generators.protocols import AnyLLMGenerator, CheckedLLMGenerator, pair_rng

# Reasons that lie in the caption or the settings, so that another answer would not help.
FINAL_REASONS = frozenset(
    {
        "no_edit", "no_candidate", "no_and", "no_image", "image_url", "not_english", "no_context", "no_positive",
        "over_quota",
    }
)  # fmt: skip


VERDICT = "verdict"  # kind of the annotations that are a verdict on a row
KEPT_SHARE = 0.72  # of the texts of recorded answers, as in docs/concepts/costs-and-cache.md
_GROUPS_PER_EARLY_END = 4  # about: costs a tenth of the size of a group


@dataclass(frozen=True)
class PairTask:
    """The task of one generator (`flows.llm.row_run.RowTask`).

    Attributes:
        generator: yields the requests about a pair.
        access: the model.
        seed: seed of the run.
        options: options of the generator, which are part of the identity.
        workers: where a `CheckedLLMGenerator` checks answers; None: in this process.
    """

    generator: AnyLLMGenerator
    access: ModelAccess
    seed: int
    options: Mapping[str, Any] = field(default_factory=dict)
    workers: AnswerChecks | None = None

    @cached_property
    def identity(self) -> str:
        """Hash over everything that shapes the requests, except the pairs."""
        return self.access.identity(self.generator, self.options, self.seed)

    @cached_property
    def checks(self) -> AnswerChecks | None:
        """Where answers are checked; None if the generator has no check."""
        if not isinstance(self.generator, CheckedLLMGenerator):
            return None
        return self.workers or AnswerChecks(completed(self.generator.check))

    def rows(self, pairs: Iterable[Pair]) -> Iterator[ModelRow[Pair, Any]]:
        """Yield the rows of pairs, in order; a row holds as many pairs as the generator puts into one request."""
        for group in _groups(pairs, self._at_once):
            keys = [pair.key for pair in group]
            yield ModelRow(keys, group, partial(self._step, group), group[0].caption, group[0].key)

    @property
    def _at_once(self) -> int:
        """Pairs in one request, at most."""
        count: int = getattr(self.generator, "captions_per_request", 1)
        return count

    def _step(self, pairs: Sequence[Pair], attempts: Sequence[int]) -> LLMStep[Sequence[Any]]:
        if len(pairs) == 1:
            return [(yield from self._ask(pairs[0], attempts[0]))]
        # Retried pairs remain in the request of the first attempt, which then is in the cache, and are asked again alone.
        first = yield from group_steps([run_item(self._ask(pair, 0)) for pair in pairs])
        again = [at for at, attempt in enumerate(attempts) if attempt]
        steps = (run_item(self._ask(pairs[at], attempts[at])) for at in again)
        retried = yield from gather(*(map_requests(step, as_resampled) for step in steps))
        return [dict(zip(again, retried, strict=True)).get(at, found) for at, found in enumerate(first)]

    def _ask(self, pair: Pair, attempt: int) -> LLMStep[Any]:
        return self._asks(pair, pair_rng(self.generator, self.seed, pair), attempt=attempt)

    @cached_property
    def _asks(self) -> Callable[..., LLMStep[Any]]:
        generator = self.generator
        return generator.ask if isinstance(generator, CheckedLLMGenerator) else generator.annotate

    def finish(self, item: Pair, done: RowResult[list[Annotation]]) -> tuple[list[Annotation], str]:
        """Return the annotations of a pair, one rejected one after an error, and the reason if the row failed."""
        if done.error is not None:
            return [self._rejected(item, done.error_code)], done.error_code
        rows = done.result or []
        judged = self.generator.kind == VERDICT and not done.requests.unanswered
        some = getattr(self.generator, "retries_texts", False)
        return rows, "" if judged else _failure_reason(rows, done.requests.unanswered, some=some)

    def _rejected(self, pair: Pair, reason: str) -> Annotation:
        generator = self.generator
        origin = Origin(generator.name, generator.version, self.seed)
        id_ = annotation_id(pair.key, generator.kind, origin, "broken-off", "")
        return Annotation(
            id_, pair.key, generator.kind, origin, source_text=pair.caption, status="rejected", reason=reason
        )

    def estimate(self, pairs: Iterable[Pair], out: Path | None = None) -> StagePlan:
        """Return an estimate over all pairs, of which a sample is used.

        Args:
            pairs: of the run.
            out: output of the run, next to which the rows that are retried are named; None: nothing is retried.

        Raises:
            PairwrightError: as in `estimate_all` and `read_attempts`.
        """
        rows, most, retry = self.rows(pairs), self._at_once, self.access.retry_failed
        attempts = {"attempt": read_attempts(out, run=self.identity, retry=retry)} if out is not None else {}
        plan = estimate_all(self.generator.name, rows, self.access, items_per_row=most, seed=self.seed, **attempts)
        texts: int = getattr(self.generator, "texts_per_pair", 0)
        return replace(plan, kept_rows=plan.rows * texts * KEPT_SHARE) if texts else plan


def _groups(pairs: Iterable[Pair], most: int) -> Iterator[list[Pair]]:
    """Yield runs of at most ``most`` pairs.

    Some end earlier, by the hash of their last caption, so that pairs that are added or removed change the groups, and so
    the requests, near them and not behind them all. Keys would not do: the same captions in another file have others.
    """
    group: list[Pair] = []
    for pair in pairs:
        group.append(pair)
        if len(group) == most or hash_to_int(pair.caption) % (most * _GROUPS_PER_EARLY_END) == 0:
            yield group
            group = []
    if group:
        yield group


def _failure_reason(rows: Sequence[Annotation], unanswered: int, *, some: bool) -> str:
    """Return the most frequent reason if a retry can help, else "".

    Where requests got no answer, that is the reason, however many of the other texts were rejected.

    Args:
        rows: of a pair.
        unanswered: number of requests without an answer.
        some: whether a retry helps where only some of the texts were rejected.
    """
    reasons = Counter(row.reason for row in rows if row.status == "rejected" and row.reason not in FINAL_REASONS)
    if unanswered:
        reasons = Counter({code: count for code, count in reasons.items() if code in REQUEST_ERROR_CODES}) or reasons
    kept = any(row.status == "kept" for row in rows)
    return reasons.most_common(1)[0][0] if reasons and (unanswered or some or not kept) else ""
