"""Estimates of requests, tokens, cost and time of a stage, from a sample of its rows, without sending requests.

    sample = sample_rows(pairs, 200, seed=0)
    rows = [LLMRow(pair.key, partial(describe, pair)) for pair in sample.items]
    plan = plan_stage("negatives", rows, sample.total, settings=settings, prices=Prices.of(), cache=cache)
    print(plan.requests, plan.cost)

The step of each sampled row receives, for each request, the answer in the cache, else `Request.expects` as a `Reply` with
the finish reason ``planned``. Tokens of the requests are estimated, and the sums are scaled up to all rows.

An invalid answer is requested once more (`answers.request_answers`), an item of several alone (`grouping`), a wrong choice
in the other order (`MistakeFinder`).
`StagePlan.repairs` counts these requests, which are
part of ``requests``, ``tokens_in``, ``tokens_out`` and ``cost``: their values contain the expected number, `REPAIR_RATE`
of the answers or the share that the cache shows (of items that are requested alone, the same share is repaired), and their
``high`` one repair for every request. ``low`` contains no repair, and of a step that depends on its answers only the requests sent when no answer is valid.

In addition, `EstimatedRange.low` and ``high`` are two standard errors of the sample around the value, plus the error of
the token estimate (`TOKEN_ERROR`, `ANSWER_ERROR`). They do not cover what is unknown here:
- Retries after errors of the server or the network, which usually are not billed.
- Steps of third-party generators without `answers.request_answers` that take more rounds than expected answers do.
- Prompts in the server's own cache, which are billed for less, so that the estimated cost is rather too high.
- Equal requests of different rows outside the sample, which are sent once; inside the sample they count once.

Time is the longest of: the limits per minute; concurrent requests, each taking `FIRST_TOKEN_S` and `TOKEN_S` per token of
its answer; the rounds of one row, one after another. In batch mode it is up to a day per round.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pairwright.datasets.errors import PairwrightError, UsageError
from pairwright.datasets.rng import make_rng
from pairwright.generators.llm.cache.store import Cache
from pairwright.generators.llm.client.messages import Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.client.steps import RequestOutcome
from pairwright.generators.llm.output.answers import PLANNED_FINISH_REASON
from pairwright.generators.llm.prices import Price, Prices
from pairwright.generators.llm.runner import LLMRow
from pairwright.generators.llm.token_estimate import (
    estimate_answer_tokens,
    estimate_image_tokens,
    estimate_prompt_tokens,
)

T = TypeVar("T")

SAMPLE_SIZE = 200  # rows: a standard error of about 2 % where rows differ by a third
MAX_ROUNDS = 20  # rounds of a step: one that repeats a request until an answer is valid would never end

FIRST_TOKEN_S, TOKEN_S = 0.6, 0.015  # seconds to the first token of an answer and per token: a small hosted model
BATCH_S = 86_400.0  # maximum seconds of a batch
TOKEN_ERROR = 0.1  # relative error of prompt tokens; see `token_estimate`
ANSWER_ERROR = 0.3  # relative error of answer tokens: one expected answer represents all
REPAIR_RATE = 0.05  # share of answers that are repaired, where the cache shows no share
MIN_CACHED_ANSWERS = 50  # cached answers from which their share of repairs is used
FEEDBACK_TOKENS = 60  # tokens of a repair request besides the repeated answer

_NO_TOKENS = Usage(0, 0)


@dataclass(frozen=True, slots=True)
class EstimatedRange:
    """An estimated number and its bounds."""

    value: float = 0.0
    low: float = 0.0
    high: float = 0.0

    def __add__(self, other: "EstimatedRange") -> "EstimatedRange":
        # Errors of stages have common causes, so they do not cancel out.
        return EstimatedRange(self.value + other.value, self.low + other.low, self.high + other.high)

    def widened(self, error: float) -> "EstimatedRange":
        """Return the range widened by a further, independent error in the same unit."""
        below, above = (math.hypot(side, error) for side in (self.value - self.low, self.high - self.value))
        return EstimatedRange(self.value, max(0.0, self.value - below), self.value + above)


@dataclass(frozen=True, slots=True)
class StagePlan:
    """Estimate of a stage, or the sum of several.

    Attributes:
        stage: name of the stage.
        rows: number of all rows.
        sampled: number of sampled rows; a step about several counts as so many.
        requests: billed requests, repairs included.
        repairs: requests that repair an invalid answer; ``high``: one for every request.
        cached: requests that need no answer of their own: the cache has it, or an equal request gets it.
        rounds: requests sent in the first round of the steps, the second, and so on.
        tokens_in, tokens_out: tokens of prompts and answers that are sent.
        cost: USD; None if the price of a model is unknown.
        seconds: total time; in batch mode at most a day per round.
        failed: sampled rows whose step raised an error; their requests before it are counted.
        unpriced: models without a known price.
        kept_rows: rows that are expected to pass the checks; None if the generator does not say so.
        image_tokens: part of ``tokens_in`` that images take.
        image_cost: USD of these; None if the price of a model is unknown.
    """

    stage: str
    rows: int
    sampled: int
    requests: EstimatedRange
    cached: EstimatedRange
    rounds: tuple[float, ...]
    tokens_in: EstimatedRange
    tokens_out: EstimatedRange
    cost: EstimatedRange | None
    seconds: EstimatedRange
    failed: int = 0
    unpriced: tuple[str, ...] = ()
    repairs: EstimatedRange = EstimatedRange()
    image_tokens: EstimatedRange = EstimatedRange()
    image_cost: EstimatedRange | None = EstimatedRange()
    kept_rows: float | None = None

    @property
    def tokens_per_kept_row(self) -> float | None:
        """Tokens of prompts and answers for each kept row; None if that is unknown."""
        return (self.tokens_in.value + self.tokens_out.value) / self.kept_rows if self.kept_rows else None

    @property
    def cached_share(self) -> float:
        """Share of all requests that the cache answers, 0-1."""
        asked = self.requests.value + self.cached.value
        return self.cached.value / asked if asked else 0.0

    def described(self) -> dict[str, Any]:
        """Return the estimate as JSON values."""
        names = ("requests", "repairs", "cached", "tokens_in", "image_tokens", "tokens_out", "seconds")
        ranges = {name: getattr(self, name) for name in names}
        shown = {name: _shown(value) for name, value in ranges.items()}
        return {
            "stage": self.stage,
            "rows": self.rows,
            "sampled": self.sampled,
            **shown,
            "rounds": [round(each, 1) for each in self.rounds],
            "tokens_per_kept_row": None if self.tokens_per_kept_row is None else round(self.tokens_per_kept_row, 1),
            "cost": None if self.cost is None else _shown(self.cost),
            "image_cost": None if self.image_cost is None else _shown(self.image_cost),
            "cached_share": round(self.cached_share, 4),
            "failed": self.failed,
            "unpriced": list(self.unpriced),
        }


def _shown(found: EstimatedRange) -> dict[str, float]:
    return {name: round(getattr(found, name), 6) for name in ("value", "low", "high")}


@dataclass(frozen=True, slots=True)
class RowSample(Generic[T]):
    """A sample of rows in order, and the number of all rows."""

    items: list[T]
    total: int


def sample_rows(items: Iterable[T], size: int = SAMPLE_SIZE, *, seed: int = 0) -> RowSample[T]:
    """Return a uniform random sample, drawn in one pass with at most ``size`` items in memory.

    Args:
        items: read once.
        size: sample size, at least 1; smaller if there are fewer items.
        seed: the same seed and items give the same sample.

    Raises:
        UsageError: ``size`` is less than 1.
    """
    if size < 1:
        raise UsageError(f"a sample needs 1 row or more, not {size}.")
    rng, chosen, seen = make_rng(seed, "plan"), list[tuple[int, T]](), 0
    for item in items:
        seen += 1
        if len(chosen) < size:
            chosen.append((seen, item))
        elif (place := rng.randrange(seen)) < size:  # Algorithm R (Vitter, 1985)
            chosen[place] = (seen, item)
    return RowSample([item for _, item in sorted(chosen, key=lambda each: each[0])], seen)


@dataclass(slots=True)
class _RepairEstimate:
    """One repair of every answer of a row."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: tuple[float, float] = (0.0, 0.0)
    image_tokens: int = 0
    image_cost: float = 0.0
    later: bool = False  # whether some are of requests after the first round


@dataclass(slots=True)
class _RowEstimate:
    """Requests of one row."""

    sent: list[int]  # by round
    cached: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: tuple[float, float] = (0.0, 0.0)  # USD, of prompts and of answers
    image_tokens: int = 0
    image_cost: float = 0.0
    failed: bool = False
    repairs: _RepairEstimate = field(default_factory=_RepairEstimate)
    of_repairs: _RepairEstimate = field(default_factory=_RepairEstimate)  # repairs of items that are requested alone
    least: int = 0  # requests sent whatever the answers are

    def sent_in(self, number: int) -> int:
        """Return the requests sent in a round."""
        return self.sent[number] if number < len(self.sent) else 0


def plan_stage(  # noqa: PLR0913 - keywords
    stage: str,
    rows: Iterable[LLMRow[Any]],
    total: int | None,
    *,
    settings: LLMSettings,
    prices: Prices,
    cache: Cache | None = None,
    batch: bool = False,
) -> StagePlan:
    """Return an estimate of a stage, without sending requests.

    Args:
        stage: name of the stage.
        rows: the sample.
        total: number of all rows; None: that of the sample.
        settings: name of the server in the cache, limits per minute, concurrent requests.
        prices: by model; in batch mode those of the Batch API (`Prices.of`).
        cache: response cache, read only; None: there is none yet.
        batch: whether requests use the Batch API.

    Raises:
        StorageError: the cache cannot be read.
    """
    planner = _Planner(prices, cache, settings.cache_endpoint)
    given = list(rows)
    sample = [planner.run(row) for row in given]
    sizes = [row.size for row in given]
    sampled = sum(sizes)
    size = sampled if total is None else total

    def scaled(value: Callable[[_RowEstimate], float]) -> EstimatedRange:
        return _extrapolate([value(row) for row in sample], sizes, size)

    requests, share = scaled(lambda row: sum(row.sent)), planner.repaired
    certain = scaled(lambda row: row.least).low / requests.low if requests.low else 1.0

    def repairs(value: Callable[[_RepairEstimate], float]) -> EstimatedRange:
        first, second = scaled(lambda row: value(row.repairs)), scaled(lambda row: value(row.of_repairs))
        return EstimatedRange(share * (first.value + share * second.value), 0.0, first.high + second.high)

    def repaired(first: EstimatedRange, value: Callable[[_RepairEstimate], float]) -> EstimatedRange:
        more = repairs(value)
        # Of a step that depends on its answers, only ``certain`` is sent whatever they are.
        return EstimatedRange(first.value + more.value, first.low * certain, first.high + more.high)

    tokens_in, tokens_out = scaled(lambda row: row.tokens_in), scaled(lambda row: row.tokens_out)
    cost_in, cost_out = (scaled(lambda row, at=at: row.cost[at]).value for at in (0, 1))  # type: ignore[misc]  # at
    cost = scaled(lambda row: sum(row.cost)).widened(math.hypot(TOKEN_ERROR * cost_in, ANSWER_ERROR * cost_out))
    depth = max((len(row.sent) for row in sample), default=0)
    plan = StagePlan(
        stage,
        size,
        sampled,
        repaired(requests, lambda repair: repair.requests),
        scaled(lambda row: row.cached),
        tuple(scaled(lambda row, at=at: row.sent_in(at)).value for at in range(depth)),  # type: ignore[misc]  # at
        repaired(tokens_in.widened(TOKEN_ERROR * tokens_in.value), lambda repair: repair.tokens_in),
        repaired(tokens_out.widened(ANSWER_ERROR * tokens_out.value), lambda repair: repair.tokens_out),
        None if planner.unpriced else repaired(cost, lambda repair: sum(repair.cost)),
        EstimatedRange(),
        sum(row.failed for row in sample),
        tuple(sorted(planner.unpriced)),
        repairs(lambda repair: repair.requests),
        repaired(scaled(lambda row: row.image_tokens), lambda repair: repair.image_tokens),
        None if planner.unpriced else repaired(scaled(lambda row: row.image_cost), lambda repair: repair.image_cost),
    )
    return replace(plan, seconds=_seconds(plan, settings, batch=batch))


def sum_plans(plans: Sequence[StagePlan]) -> StagePlan:
    """Return the sum of stages that run one after another, rows included."""
    zero = EstimatedRange()
    costs = [plan.cost for plan in plans if plan.cost is not None]
    image_costs = [plan.image_cost for plan in plans if plan.image_cost is not None]
    depth = max((len(plan.rounds) for plan in plans), default=0)
    return StagePlan(
        "total",
        sum(plan.rows for plan in plans),
        sum(plan.sampled for plan in plans),
        sum((plan.requests for plan in plans), zero),
        sum((plan.cached for plan in plans), zero),
        tuple(sum(plan.rounds[at] for plan in plans if at < len(plan.rounds)) for at in range(depth)),
        sum((plan.tokens_in for plan in plans), zero),
        sum((plan.tokens_out for plan in plans), zero),
        sum(costs, zero) if len(costs) == len(plans) else None,
        sum((plan.seconds for plan in plans), zero),
        sum(plan.failed for plan in plans),
        tuple(sorted({model for plan in plans for model in plan.unpriced})),
        sum((plan.repairs for plan in plans), zero),
        sum((plan.image_tokens for plan in plans), zero),
        sum(image_costs, zero) if len(image_costs) == len(plans) else None,
        sum(plan.kept_rows or 0.0 for plan in plans) if all(plan.kept_rows for plan in plans) else None,
    )


class _Planner:
    """Runs steps with answers from the cache and expected ones."""

    def __init__(self, prices: Prices, cache: Cache | None, endpoint: str) -> None:
        self._prices, self._cache, self._endpoint = prices, cache, endpoint
        self._seen_keys: set[str] = set()  # cache keys of the sample so far; equal requests are cached
        self.unpriced: set[str] = set()
        self._answered, self._repairs = 0, 0  # in the cache: answers that could be repaired, and repairs

    @property
    def repaired(self) -> float:
        """Share of answers that are repaired, 0-1, from the cache if it has enough answers."""
        enough = self._answered >= MIN_CACHED_ANSWERS
        return min(1.0, self._repairs / self._answered) if enough else REPAIR_RATE

    def run(self, row: LLMRow[Any]) -> _RowEstimate:
        """Run the step of a row; an error of the row ends it, and its requests until then count."""
        asked = _RowEstimate([])
        step = row.step(row.attempt)
        try:
            requests = next(step)
            while len(asked.sent) < MAX_ROUNDS:
                asked.sent.append(0)
                requests = step.send([self._answer(request, asked) for request in requests])
            step.close()
            asked.failed = True
        except StopIteration:
            pass
        except PairwrightError:
            asked.failed = True
        while asked.sent and not asked.sent[-1]:
            asked.sent.pop()  # the cache answered these rounds
        asked.least = min(self._least(row), sum(asked.sent)) if asked.repairs.later else sum(asked.sent)
        return asked

    def _least(self, row: LLMRow[Any]) -> int:
        """Return how many requests a row sends when no answer is valid except those in the cache."""
        sent = 0
        step = row.step(row.attempt)
        try:
            requests = next(step)
            for _ in range(MAX_ROUNDS):
                outcomes = [self._cached(request) or RequestError("timeout") for request in requests]
                sent += sum(isinstance(outcome, RequestError) for outcome in outcomes)
                requests = step.send(outcomes)
            step.close()
        except (StopIteration, PairwrightError):
            pass
        return sent

    def _cached(self, request: Request) -> Reply | None:
        try:
            return self._cache.get(request.key(self._endpoint)) if self._cache is not None else None
        except RequestError:
            return None

    def _answer(self, request: Request, asked: _RowEstimate) -> RequestOutcome:
        price = self._prices.find(request.model)
        try:
            key = request.key(self._endpoint)
            found = self._cache.get(key) if self._cache is not None else None
            if found is None:
                rule = self._prices.image_rule(request.model)
                tokens_in = estimate_prompt_tokens(request, rule)
        except RequestError as failure:  # a request that cannot be sent costs nothing
            return failure
        self._repairs += request.repair == "this"
        if found is not None:
            self._answered += request.repair == "possible"
            asked.cached += 1
            return found
        usage = Usage(tokens_in, estimate_answer_tokens(request))
        reply = Reply(request.expects, PLANNED_FINISH_REASON, "", usage, request.model, key)
        if key in self._seen_keys:
            asked.cached += 1
            return reply
        self._seen_keys.add(key)
        asked.sent[-1] += 1
        asked.tokens_in += usage.prompt_tokens
        asked.tokens_out += usage.completion_tokens
        if price is None:
            self.unpriced.add(request.model)
        asked.cost = _sum(asked.cost, _cost(price, usage))
        of_images = Usage(estimate_image_tokens(request, rule), 0)
        asked.image_tokens += of_images.prompt_tokens
        asked.image_cost += _cost(price, of_images)[0]
        if request.repair == "possible":
            _add_repair(asked, asked.repairs, price, _repair_usage(usage), of_images)
        for single in request.alone:
            alone = Usage(estimate_prompt_tokens(single, rule), estimate_answer_tokens(single))
            _add_repair(asked, asked.repairs, price, alone, Usage(estimate_image_tokens(single, rule), 0))
            if single.repair == "possible":
                _add_repair(asked, asked.of_repairs, price, _repair_usage(alone))
        return reply


def _add_repair(
    asked: _RowEstimate, repairs: _RepairEstimate, price: Price | None, again: Usage, of_images: Usage = _NO_TOKENS
) -> None:
    """Count one repair: a request with the answer and what is wrong with it, or about one item of several."""
    repairs.requests += 1
    repairs.tokens_in += again.prompt_tokens
    repairs.tokens_out += again.completion_tokens
    repairs.cost = _sum(repairs.cost, _cost(price, again))
    repairs.image_tokens += of_images.prompt_tokens
    repairs.image_cost += _cost(price, of_images)[0]
    repairs.later |= len(asked.sent) > 1


def _repair_usage(first: Usage) -> Usage:
    """Return the tokens of a request with an answer and what is wrong with it."""
    return Usage(first.prompt_tokens + first.completion_tokens + FEEDBACK_TOKENS, first.completion_tokens)


def _cost(price: Price | None, usage: Usage) -> tuple[float, float]:
    """Return the USD of a prompt and of its answer; 0 if the price is unknown."""
    if price is None:
        return 0.0, 0.0
    return price.cost(replace(usage, completion_tokens=0)), price.cost(replace(usage, prompt_tokens=0))


def _sum(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return one[0] + other[0], one[1] + other[1]


def _extrapolate(sample: Sequence[float], sizes: Sequence[int], total: int) -> EstimatedRange:
    """Return the expected sum over all rows, and two standard errors around it (ratio estimator).

    Args:
        sample: value of each step.
        sizes: rows of each step.
        total: number of all rows.
    """
    count, sampled = len(sample), sum(sizes)
    if not sampled:
        return EstimatedRange()
    ratio = sum(sample) / sampled
    value = ratio * total
    if sampled >= total:
        return EstimatedRange(value, value, value)
    residuals = (each - ratio * size for each, size in zip(sample, sizes, strict=True))
    # The spread of a sample of one is unknown: as large as the value itself.
    variance = sum(each**2 for each in residuals) / (count - 1) if count > 1 else sample[0] ** 2
    error = 2 * total / sampled * math.sqrt(count * variance * (1 - sampled / total))
    return EstimatedRange(value, max(0.0, value - error), value + error)


def _seconds(plan: StagePlan, settings: LLMSettings, *, batch: bool) -> EstimatedRange:
    if not plan.requests.value:
        return EstimatedRange()
    if batch:
        days = BATCH_S * len(plan.rounds) * (2 if plan.repairs.high else 1)  # a repair is a batch of its own
        return EstimatedRange(days, 0.0, days)
    value, low, high = (
        (getattr(plan.requests, which), getattr(plan.tokens_in, which), getattr(plan.tokens_out, which))
        for which in ("value", "low", "high")
    )
    expected = _time(plan, *value, settings)
    # What is requested in addition, alone and in repairs, follows the expected answers, which it waits for.
    more = (max(0.0, high[0] - value[0]), max(0.0, high[1] - value[1]), max(0.0, high[2] - value[2]))
    further = _time(plan, *more, settings)
    longest = max(expected + further, _time(plan, *high, settings))
    return EstimatedRange(expected, min(expected, _time(plan, *low, settings)), longest)


def _time(plan: StagePlan, requests: float, tokens_in: float, tokens_out: float, settings: LLMSettings) -> float:
    """Return the seconds that requests with this number of tokens take."""
    if not requests:
        return 0.0
    answer = FIRST_TOKEN_S + TOKEN_S * tokens_out / requests
    longest = max(answer * len(plan.rounds), (requests * answer) / settings.max_concurrency)
    if settings.requests_per_minute:
        longest = max(longest, 60 * requests / settings.requests_per_minute)
    if settings.tokens_per_minute:
        longest = max(longest, 60 * (tokens_in + tokens_out) / settings.tokens_per_minute)
    return longest
