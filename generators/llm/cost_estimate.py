"""What a stage will ask, cost and take, before anything is sent.

The talks of a sample of its rows are held with the answers that are expected.

    sample = sample_of(pairs, 200, seed=0)
    plan = plan_stage("negatives", (Row(pair.key, partial(describe, pair)) for pair in sample.items), sample.total,
                      settings=settings, prices=Prices.of(), cache=cache)
    print(plan.requests, plan.cost)

Each sampled row's talk is given, for each request, the answer that the cache holds, else `Request.expects` as a `Reply`
with the finish reason ``planned``. What it would send is counted with estimated tokens, and the sums are multiplied up
to all rows. Nothing is sent and nothing is written.

An answer that does not fit is asked for once more (`answers.asked`). `StagePlan.repairs` counts these requests, which
are part of ``requests``, ``tokens_in``, ``tokens_out`` and ``cost``: their values hold the expected number, `REPAIR_RATE` of
the requests or the share that the cache shows, and their ``high`` holds one repair for every request. ``low`` holds no
repair, and of a talk that depends on its answers only what is sent when no answer can be used.

Beside that, `Range.low` and ``high`` are two standard errors of the sample around the value, and the tokens' own error
(`TOKEN_ERROR`, `ANSWER_ERROR`). They do not hold for what a plan cannot see:
- Retries after errors of the server or the network, which are sent again and as a rule not billed.
- Talks of a generator of your own that asks without `answers.asked`, where they take more rounds than expected answers do.
- Prompts that the server has in its own cache and bills for less; so the cost is rather too high.
- Equal requests of different rows outside the sample, which are sent once; inside of it they are counted once.

Time is the longest of: what the user's ceilings a minute allow; requests at once, each taking `FIRST_S` and `TOKEN_S`
for each token of its answer; the rounds of one row, one after another. In batch mode it is up to a day a round.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pairwright.datasets.errors import PairwrightError, UsageError
from pairwright.datasets.rng import make_rng
from pairwright.generators.llm.cache.store import Cache
from pairwright.generators.llm.client.messages import Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.client.steps import RequestOutcome
from pairwright.generators.llm.prices import ImageRule, Price, Prices
from pairwright.generators.llm.runner import LLMRow
from pairwright.generators.llm.token_estimate import estimate_answer_tokens, estimate_prompt_tokens

T = TypeVar("T")

PLANNED_FINISH_REASON = "planned"  # the finish reason of an expected answer
SAMPLE_SIZE = 200  # rows that are enough: a standard error of some 2 % where rows differ by a third
SAMPLE_WINDOW = 100_000  # rows that are read to choose a sample from, where they need not be counted
MAX_ROUNDS = 20  # of a talk, at most: one that goes on until an answer pleases it would never end

FIRST_TOKEN_S, TOKEN_S = (
    0.6,
    0.015,
)  # seconds to the first token of an answer, and for each: a small model of a public service
BATCH_S = 86_400.0  # seconds that the batch API may take
TOKEN_ERROR = 0.1  # of the tokens of prompts; see `token_estimate`
ANSWER_ERROR = 0.3  # of the tokens of answers: an expected answer stands for all
REPAIR_RATE = 0.05  # of the answers, asked for once more, where the cache does not show how many
MIN_CACHED_ANSWERS = 50  # in the cache, from which their share of repairs counts
TOLD = 60  # tokens that a repair tells the model beside its own answer

_PLAIN = ImageRule()


@dataclass(frozen=True, slots=True)
class EstimatedRange:
    """A number that was estimated, and what it may as well be."""

    value: float = 0.0
    low: float = 0.0
    high: float = 0.0

    def __add__(self, other: "EstimatedRange") -> "EstimatedRange":
        # Errors of stages have causes in common, so they do not cancel out.
        return EstimatedRange(self.value + other.value, self.low + other.low, self.high + other.high)

    def off(self, error: float) -> "EstimatedRange":
        """Return it with an error of its own, in its unit, beside that of the sample."""
        below, above = (math.hypot(side, error) for side in (self.value - self.low, self.high - self.value))
        return EstimatedRange(self.value, max(0.0, self.value - below), self.value + above)


@dataclass(frozen=True, slots=True)
class StagePlan:
    """What a stage, or several, will ask and cost.

    Attributes:
        stage: its name.
        rows: all of them; ``sampled``: whose talks were held.
        requests: to be sent and paid for, the repairs included.
        repairs: requests that ask once more for an answer that did not fit; ``high``: one for every request.
        cached: requests that the cache answers.
        rounds: requests to be sent in the first round of the talks, the second, and so on.
        tokens_in, tokens_out: of prompts and answers, sent ones only.
        cost: USD; None when a model's price is unknown.
        seconds: from first to last; in batch mode a day a round at most.
        failed: sampled rows whose talk ended in an error before its end; what it had asked by then is counted.
        unpriced: models without a known price.
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

    @property
    def cached_share(self) -> float:
        """Of all requests, those that the cache answers; 0-1."""
        asked = self.requests.value + self.cached.value
        return self.cached.value / asked if asked else 0.0

    def described(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        names = ("requests", "repairs", "cached", "tokens_in", "tokens_out", "seconds")
        ranges = {name: getattr(self, name) for name in names}
        shown = {name: _shown(value) for name, value in ranges.items()}
        return {
            "stage": self.stage,
            "rows": self.rows,
            "sampled": self.sampled,
            **shown,
            "rounds": [round(each, 1) for each in self.rounds],
            "cost": None if self.cost is None else _shown(self.cost),
            "cached_share": round(self.cached_share, 4),
            "failed": self.failed,
            "unpriced": list(self.unpriced),
        }


def _shown(found: EstimatedRange) -> dict[str, float]:
    return {name: round(getattr(found, name), 6) for name in ("value", "low", "high")}


@dataclass(frozen=True, slots=True)
class RowSample(Generic[T]):
    """Rows that stand for all, in their order, and how many there are in all; None: nobody has counted."""

    items: list[T]
    total: int | None


def sample_rows(
    items: Iterable[T], size: int = SAMPLE_SIZE, *, seed: int = 0, within: int | None = None
) -> RowSample[T]:
    """Choose some of many in one pass, each with the same chance; no more than ``size`` are in memory.

    Args:
        items: read once.
        size: how many to choose, at least 1; fewer where there are fewer.
        seed: the same seed and items give the same sample.
        within: choose among the first so many and leave the rest unread, so that a huge file is not read only for its
            plan (`SAMPLE_WINDOW` is enough where it is in no order); None: read all.

    Raises:
        UsageError: when ``size`` is less than 1.
    """
    if size < 1:
        raise UsageError(f"a sample of {size} rows is none. Give 1 or more.")
    chance, chosen, seen = make_rng(seed, "plan"), list[tuple[int, T]](), 0
    for item in items:
        if seen == within:
            return RowSample(_in_order(chosen), None)
        seen += 1
        if len(chosen) < size:
            chosen.append((seen, item))
        elif (place := chance.randrange(seen)) < size:  # Algorithm R (Vitter, 1985)
            chosen[place] = (seen, item)
    return RowSample(_in_order(chosen), seen)


def _in_order(chosen: list[tuple[int, T]]) -> list[T]:
    return [item for _, item in sorted(chosen, key=lambda each: each[0])]


@dataclass(slots=True)
class _RepairEstimate:
    """What repairs of all answers of a row would take."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: tuple[float, float] = (0.0, 0.0)
    later: bool = False  # whether some are of requests behind the first round


@dataclass(slots=True)
class _RowEstimate:
    """What the talk of one row asks for."""

    sent: list[int]  # by round
    cached: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: tuple[float, float] = (0.0, 0.0)  # USD, of prompts and of answers
    failed: bool = False
    repairs: _RepairEstimate = field(default_factory=_RepairEstimate)
    least: int = 0  # requests that are sent whatever the answers are


def plan_stage(  # noqa: PLR0913 - keywords, each told of below
    stage: str,
    rows: Iterable[LLMRow[Any]],
    total: int | None,
    *,
    settings: LLMSettings,
    prices: Prices,
    cache: Cache | None = None,
    batch: bool = False,
) -> StagePlan:
    """Hold the talks of a sample without sending anything, and say what all rows will take.

    Args:
        stage: its name.
        rows: the sample.
        total: of all rows; None: the sample is all there is.
        settings: the server's name in the cache, its ceilings, and requests at once.
        prices: by model; for batch mode those of the batch API (`Prices.of`).
        cache: of answers, read only; None: there is none yet.
        batch: whether requests go through the batch API.

    Raises:
        StorageError: the cache cannot be read.
    """
    planner = _Planner(prices, cache, settings.cache_endpoint)
    asked = [planner.hold(row) for row in rows]
    of = len(asked) if total is None else total
    depth = max((len(each.sent) for each in asked), default=0)
    rounds = [
        _extrapolate([each.sent[at] if at < len(each.sent) else 0 for each in asked], of).value for at in range(depth)
    ]
    share = planner.repaired
    repairs = _extrapolate([each.repairs.requests for each in asked], of)
    requests = _extrapolate([sum(each.sent) for each in asked], of)
    tokens_in = _extrapolate([each.tokens_in for each in asked], of)
    tokens_out = _extrapolate([each.tokens_out for each in asked], of)
    cost_in, cost_out = (_extrapolate([each.cost[at] for each in asked], of).value for at in (0, 1))
    cost = _extrapolate([sum(each.cost) for each in asked], of).off(
        math.hypot(TOKEN_ERROR * cost_in, ANSWER_ERROR * cost_out)
    )
    certain = _extrapolate([each.least for each in asked], of).low / requests.low if requests.low else 1.0
    plan = StagePlan(
        stage,
        of,
        len(asked),
        _add_repairs(requests, repairs, share, certain),
        _extrapolate([each.cached for each in asked], of),
        tuple(rounds),
        _add_repairs(
            tokens_in.off(TOKEN_ERROR * tokens_in.value),
            _extrapolate([each.repairs.tokens_in for each in asked], of),
            share,
            certain,
        ),
        _add_repairs(
            tokens_out.off(ANSWER_ERROR * tokens_out.value),
            _extrapolate([each.repairs.tokens_out for each in asked], of),
            share,
            certain,
        ),
        None
        if planner.unpriced
        else _add_repairs(cost, _extrapolate([sum(each.repairs.cost) for each in asked], of), share, certain),
        EstimatedRange(),
        sum(each.failed for each in asked),
        tuple(sorted(planner.unpriced)),
        EstimatedRange(share * repairs.value, 0.0, repairs.high),
    )
    return replace(plan, seconds=_seconds(plan, settings, batch=batch))


def _add_repairs(first: EstimatedRange, repairs: EstimatedRange, share: float, certain: float) -> EstimatedRange:
    """Return a number with that of the repairs: the expected share of them, none at least, all at most.

    Args:
        first: of what is asked, in its unit.
        repairs: of one repair for every request.
        share: of the answers that are repaired, 0-1.
        certain: share of ``first`` that does not depend on answers, 0-1.
    """
    return EstimatedRange(first.value + share * repairs.value, first.low * certain, first.high + repairs.high)


def sum_plans(plans: Sequence[StagePlan]) -> StagePlan:
    """Return the sum of stages that run one after another; rows are added up, too."""
    zero = EstimatedRange()
    costs = [plan.cost for plan in plans if plan.cost is not None]
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
    )


class _Planner:
    """Holds talks with answers from the cache and expected ones."""

    def __init__(self, prices: Prices, cache: Cache | None, endpoint: str) -> None:
        self._prices, self._cache, self._endpoint = prices, cache, endpoint
        self._met: set[str] = set()  # keys that the sample asks for already; the cache has them when they come again
        self.unpriced: set[str] = set()
        self._answered, self._repairs = 0, 0  # in the cache: answers that could be repaired, and repairs

    @property
    def repaired(self) -> float:
        """The share of answers that are repaired, 0-1: that of the answers in the cache where there are enough."""
        enough = self._answered >= MIN_CACHED_ANSWERS
        return min(1.0, self._repairs / self._answered) if enough else REPAIR_RATE

    def hold(self, row: LLMRow[Any]) -> _RowEstimate:
        """Hold a row's talk; a row that raises what is its own concern has asked what it has asked."""
        asked = _RowEstimate([])
        talk = row.talk(row.attempt)
        try:
            requests = next(talk)
            while len(asked.sent) < MAX_ROUNDS:
                asked.sent.append(0)
                requests = talk.send([self._answer(request, asked) for request in requests])
            talk.close()
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
        """Return how many requests a row sends when no answer can be used; those in the cache are used."""
        sent = 0
        talk = row.talk(row.attempt)
        try:
            requests = next(talk)
            for _ in range(MAX_ROUNDS):
                outcomes = [self._cached(request) or RequestError("timeout") for request in requests]
                sent += sum(isinstance(outcome, RequestError) for outcome in outcomes)
                requests = talk.send(outcomes)
            talk.close()
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
                tokens_in = estimate_prompt_tokens(request, _PLAIN if price is None else price.image, measure=True)
        except RequestError as failure:  # what cannot be sent costs nothing
            return failure
        self._repairs += request.repair == "this"
        if found is not None:
            self._answered += request.repair == "possible"
            asked.cached += 1
            return found
        usage = Usage(tokens_in, estimate_answer_tokens(request))
        reply = Reply(request.expects, PLANNED_FINISH_REASON, "", usage, request.model, key)
        if key in self._met:
            asked.cached += 1
            return reply
        self._met.add(key)
        asked.sent[-1] += 1
        asked.tokens_in += usage.prompt_tokens
        asked.tokens_out += usage.completion_tokens
        if price is None:
            self.unpriced.add(request.model)
        asked.cost = _sum(asked.cost, _cost(price, usage))
        if request.repair == "possible":
            self._may_be_repaired(asked, price, usage)
        return reply

    @staticmethod
    def _may_be_repaired(asked: _RowEstimate, price: Price | None, usage: Usage) -> None:
        """Count one repair: it shows the model its answer again, and says what is wrong with it."""
        again = Usage(usage.prompt_tokens + usage.completion_tokens + TOLD, usage.completion_tokens)
        repairs = asked.repairs
        repairs.requests += 1
        repairs.tokens_in += again.prompt_tokens
        repairs.tokens_out += again.completion_tokens
        repairs.cost = _sum(repairs.cost, _cost(price, again))
        repairs.later |= len(asked.sent) > 1


def _cost(price: Price | None, usage: Usage) -> tuple[float, float]:
    """Return USD of a prompt and of its answer; nothing where the price is unknown."""
    if price is None:
        return 0.0, 0.0
    return price.cost(replace(usage, completion_tokens=0)), price.cost(replace(usage, prompt_tokens=0))


def _sum(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return one[0] + other[0], one[1] + other[1]


def _extrapolate(sample: Sequence[float], total: int) -> EstimatedRange:
    """Return the sum over all rows that a sample's rows let expect, two standard errors around it."""
    size = len(sample)
    if not size:
        return EstimatedRange()
    value = sum(sample) * total / size
    if size >= total:
        return EstimatedRange(value, value, value)
    mean = sum(sample) / size
    # Of a sample of one nothing is known about the spread: as much as the value itself.
    variance = sum((each - mean) ** 2 for each in sample) / (size - 1) if size > 1 else mean**2
    error = 2 * total * math.sqrt(variance / size * (1 - size / total))
    return EstimatedRange(value, max(0.0, value - error), value + error)


def _seconds(plan: StagePlan, settings: LLMSettings, *, batch: bool) -> EstimatedRange:
    if not plan.requests.value:
        return EstimatedRange()
    if batch:
        days = BATCH_S * len(plan.rounds) * (2 if plan.repairs.high else 1)  # a repair is a batch of its own
        return EstimatedRange(days, 0.0, days)
    return EstimatedRange(*(_time(plan, which, settings) for which in ("value", "low", "high")))


def _time(plan: StagePlan, which: str, settings: LLMSettings) -> float:
    requests: float = getattr(plan.requests, which)
    out: float = getattr(plan.tokens_out, which)
    tokens = getattr(plan.tokens_in, which) + out
    answer = FIRST_TOKEN_S + TOKEN_S * (out / requests if requests else 0.0)
    longest = max(answer * len(plan.rounds), (requests * answer) / settings.max_concurrency)
    if settings.requests_per_minute:
        longest = max(longest, 60 * requests / settings.requests_per_minute)
    if settings.tokens_per_minute:
        longest = max(longest, 60 * tokens / settings.tokens_per_minute)
    return longest
