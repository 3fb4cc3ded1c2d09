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
from pairwright.generators.llm.image_tokens import ImageRule
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


_RANGES = ("requests", "repairs", "cached", "tokens_in", "image_tokens", "tokens_out", "seconds")


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
        return {
            "stage": self.stage,
            "rows": self.rows,
            "sampled": self.sampled,
            **{name: _shown(getattr(self, name)) for name in _RANGES},
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


class RowSampler(Generic[T]):
    """Draws a uniform random sample in one pass, with at most ``size`` items in memory.

    Args:
        size: sample size, at least 1; smaller if there are fewer items.
        seed: the same seed and items give the same sample.

    Raises:
        UsageError: ``size`` is less than 1.
    """

    def __init__(self, size: int = SAMPLE_SIZE, *, seed: int = 0) -> None:
        if size < 1:
            raise UsageError(f"a sample needs 1 row or more, not {size}.")
        self._size, self._rng = size, make_rng(seed, "plan")
        self._chosen, self._seen = list[tuple[int, T]](), 0

    def add(self, item: T) -> None:
        """Read the next item."""
        self._seen += 1
        if len(self._chosen) < self._size:
            self._chosen.append((self._seen, item))
        elif (place := self._rng.randrange(self._seen)) < self._size:  # Algorithm R (Vitter, 1985)
            self._chosen[place] = (self._seen, item)

    def sample(self) -> RowSample[T]:
        """Return the sample of the items so far."""
        return RowSample([item for _, item in sorted(self._chosen, key=lambda each: each[0])], self._seen)


def sample_rows(items: Iterable[T], size: int = SAMPLE_SIZE, *, seed: int = 0) -> RowSample[T]:
    """Return a uniform random sample of items that are read once; arguments and errors as of `RowSampler`."""
    sampler = RowSampler[T](size, seed=seed)
    for item in items:
        sampler.add(item)
    return sampler.sample()


@dataclass(slots=True)
class _Requests:
    """Requests and their tokens and USD: of prompts, of the images in these, and of answers."""

    number: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    image_tokens: int = 0
    cost_in: float = 0.0
    cost_out: float = 0.0
    image_cost: float = 0.0

    def add(self, usage: Usage, image_tokens: int, price: Price | None) -> None:
        """Count a request; its cost is 0 if the price is unknown."""
        self.number += 1
        self.tokens_in += usage.prompt_tokens
        self.tokens_out += usage.completion_tokens
        self.image_tokens += image_tokens
        if price is not None:
            self.cost_in += price.cost(replace(usage, completion_tokens=0))
            self.cost_out += price.cost(replace(usage, prompt_tokens=0))
            self.image_cost += price.cost(Usage(image_tokens, 0))


@dataclass(slots=True)
class _RowEstimate:
    """Requests of one row.

    Attributes:
        rounds: number of requests sent in each round.
        cached: requests without an answer of their own.
        sent: requests that are sent.
        repairs: one repair for each of them that may need one.
        of_repairs: repairs of items that are requested alone.
        repaired_later: whether some of ``repairs`` are of requests after the first round.
        failed: whether the step raised an error.
        least: requests sent whatever the answers are.
    """

    rounds: list[int] = field(default_factory=list)
    cached: int = 0
    sent: _Requests = field(default_factory=_Requests)
    repairs: _Requests = field(default_factory=_Requests)
    of_repairs: _Requests = field(default_factory=_Requests)
    repaired_later: bool = False
    failed: bool = False
    least: int = 0


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

    def repairs(value: Callable[[_Requests], float]) -> EstimatedRange:
        first, second = scaled(lambda row: value(row.repairs)), scaled(lambda row: value(row.of_repairs))
        share = planner.repaired
        return EstimatedRange(share * (first.value + share * second.value), 0.0, first.high + second.high)

    requests = scaled(lambda row: row.sent.number)
    certain = scaled(lambda row: row.least).low / requests.low if requests.low else 1.0

    def whole(value: Callable[[_Requests], float], error: float = 0.0) -> EstimatedRange:
        first, more = scaled(lambda row: value(row.sent)), repairs(value)
        first = first.widened(error) if error else first
        # Of a step that depends on its answers, only ``certain`` is sent whatever they are.
        return EstimatedRange(first.value + more.value, first.low * certain, first.high + more.high)

    def in_round(at: int) -> float:
        return scaled(lambda row: row.rounds[at] if at < len(row.rounds) else 0).value

    error_in, error_out = (
        TOKEN_ERROR * scaled(lambda row: row.sent.tokens_in).value,
        ANSWER_ERROR * scaled(lambda row: row.sent.tokens_out).value,
    )
    cost_error = math.hypot(
        TOKEN_ERROR * scaled(lambda row: row.sent.cost_in).value,
        ANSWER_ERROR * scaled(lambda row: row.sent.cost_out).value,
    )
    plan = StagePlan(
        stage,
        size,
        sampled,
        requests=whole(lambda each: each.number),
        cached=scaled(lambda row: row.cached),
        rounds=tuple(map(in_round, range(max((len(row.rounds) for row in sample), default=0)))),
        tokens_in=whole(lambda each: each.tokens_in, error_in),
        tokens_out=whole(lambda each: each.tokens_out, error_out),
        cost=None if planner.unpriced else whole(lambda each: each.cost_in + each.cost_out, cost_error),
        seconds=EstimatedRange(),
        failed=sum(row.failed for row in sample),
        unpriced=tuple(sorted(planner.unpriced)),
        repairs=repairs(lambda each: each.number),
        image_tokens=whole(lambda each: each.image_tokens),
        image_cost=None if planner.unpriced else whole(lambda each: each.image_cost),
    )
    return replace(plan, seconds=_seconds(plan, settings, batch=batch))


def sum_plans(plans: Sequence[StagePlan]) -> StagePlan:
    """Return the sum of stages that run one after another, rows included."""

    def total(name: str) -> Any:
        ranges = [getattr(plan, name) for plan in plans]
        return sum(ranges, EstimatedRange()) if None not in ranges else None

    depth = max((len(plan.rounds) for plan in plans), default=0)
    return StagePlan(
        "total",
        sum(plan.rows for plan in plans),
        sum(plan.sampled for plan in plans),
        rounds=tuple(sum(plan.rounds[at] for plan in plans if at < len(plan.rounds)) for at in range(depth)),
        failed=sum(plan.failed for plan in plans),
        unpriced=tuple(sorted({model for plan in plans for model in plan.unpriced})),
        kept_rows=sum(plan.kept_rows or 0.0 for plan in plans) if all(plan.kept_rows for plan in plans) else None,
        **{name: total(name) for name in (*_RANGES, "cost", "image_cost")},
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
        asked = _RowEstimate()

        def answer(requests: Sequence[Request]) -> list[RequestOutcome]:
            asked.rounds.append(0)
            return [self._answer(request, asked) for request in requests]

        asked.failed = not _finishes(row, answer)
        while asked.rounds and not asked.rounds[-1]:
            asked.rounds.pop()  # the cache answered these rounds
        sent = asked.sent.number
        asked.least = min(self._least(row), sent) if asked.repaired_later else sent
        return asked

    def _least(self, row: LLMRow[Any]) -> int:
        """Return how many requests a row sends when no answer is valid except those in the cache."""
        sent: list[RequestError] = []

        def answer(requests: Sequence[Request]) -> list[RequestOutcome]:
            outcomes = [self._cached(request) or RequestError("timeout") for request in requests]
            sent.extend(outcome for outcome in outcomes if isinstance(outcome, RequestError))
            return outcomes

        _finishes(row, answer)
        return len(sent)

    def _cached(self, request: Request) -> Reply | None:
        try:
            return self._cache.get(request.key(self._endpoint)) if self._cache is not None else None
        except RequestError:
            return None

    def _answer(self, request: Request, asked: _RowEstimate) -> RequestOutcome:
        price, rule = self._prices.find(request.model), self._prices.image_rule(request.model)
        try:
            key = request.key(self._endpoint)
            found = self._cache.get(key) if self._cache is not None else None
            usage = found.usage if found is not None else _usage(request, rule)
        except RequestError as failure:  # a request that cannot be sent costs nothing
            return failure
        self._repairs += request.repair == "this"
        if found is not None:
            self._answered += request.repair == "possible"
            asked.cached += 1
            return found
        reply = Reply(request.expects, PLANNED_FINISH_REASON, "", usage, request.model, key)
        if key in self._seen_keys:
            asked.cached += 1
            return reply
        self._seen_keys.add(key)
        if price is None:
            self.unpriced.add(request.model)
        images = estimate_image_tokens(request, rule)
        asked.rounds[-1] += 1
        asked.sent.add(usage, images, price)
        if request.repair == "possible":
            asked.repairs.add(_repair_usage(usage), images, price)
        for single in request.alone:
            alone = _usage(single, rule)
            asked.repairs.add(alone, estimate_image_tokens(single, rule), price)
            if single.repair == "possible":
                asked.of_repairs.add(_repair_usage(alone), 0, price)
        asked.repaired_later |= len(asked.rounds) > 1 and bool(request.alone or request.repair == "possible")
        return reply


def _finishes(row: LLMRow[Any], answer: Callable[[Sequence[Request]], Sequence[RequestOutcome]]) -> bool:
    """Run the step of a row; return whether it ends within `MAX_ROUNDS`, without an error."""
    step = row.step(row.attempt)
    try:
        requests = next(step)
        for _ in range(MAX_ROUNDS):
            requests = step.send(answer(requests))
    except StopIteration:
        return True
    except PairwrightError:
        return False
    step.close()
    return False


def _usage(request: Request, rule: ImageRule) -> Usage:
    """Return the estimated tokens of a request and of its answer."""
    return Usage(estimate_prompt_tokens(request, rule), estimate_answer_tokens(request))


def _repair_usage(first: Usage) -> Usage:
    """Return the tokens of a request with an answer and what is wrong with it."""
    return Usage(first.prompt_tokens + first.completion_tokens + FEEDBACK_TOKENS, first.completion_tokens)


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
