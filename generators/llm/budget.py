"""Limits of a run, in USD and in requests, that hold with any number of requests under way; and the bill so far.

    bill = Bill()
    model = Budget(model, Prices.of(), bill, max_cost=5.0)
    ...
    bill.cost

Before a request leaves, the most that it may cost is held back: its prompt by the byte, its answer by ``max_tokens``.
What it did cost is settled when the answer is there, by the server's own count. A request that does not fit waits for
those under way, which mostly cost less than was held; when none is left and it still does not fit, the run ends with
`Failure` ``over_budget``, it and all later ones unsent. So near the limit requests leave one by one, and the run ends
with less than one request's most unspent.

The limit in USD is kept, but where the server bills what nobody could know:
- A request without ``max_tokens``: held are twice the longest answer so far, at first `DEFAULT_HELD_TOKENS` tokens. The limit is
  overrun by no more than the answers under way are longer than that.
- Images, where the server counts them by a rule that is not the price table's. The first answers tell, and more is held
  for later ones.
- Requests that failed are taken to cost nothing. A server may bill an answer that did not arrive (timeout, reset).

The Batch API takes up to a day, so a run cannot wait for the answers under way and send a few more. There
(``by_estimate``) a request holds back a tenth more than it is expected to cost, in proportion to what earlier ones were
off by, and the run ends with 95 % of the limit spent. The limit may be overrun by as much as answers are longer than
expected.

``max_requests`` is about answers that were paid for: the server never gives more than so many. A request that failed
counts no more than its retries do, so a server that fails often receives more than it answers. What the cache answers
never comes here: put a budget inside the cache, so that a run that is taken up again pays for the rest only.

A server that does not count tokens is billed by estimate (`Bill.estimated`).
"""

import asyncio
from collections import deque
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.messages import Model, Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.prices import ImageRule, Price, Prices
from pairwright.generators.llm.token_estimate import (
    estimate_answer_tokens,
    estimate_prompt_tokens,
    estimate_usage,
    max_answer_tokens,
    max_prompt_tokens,
)

DEFAULT_HELD_TOKENS = 1024  # tokens held for an answer, before the first has come, where the request sets no limit
BATCH_SAFETY_FACTOR = 1.1  # times what a request is expected to cost, in batch mode
BUDGET_SPENT_SHARE = 0.95  # of a limit in USD, spent, that ends a run in batch mode
LONGEST_ANSWER_FACTOR = 2.0  # times the longest answer so far, afterwards

_PLAIN = ImageRule()


@dataclass(slots=True)
class SpendingTotals:
    """What has been paid for so far. Cheap to add to and to read.

    Attributes:
        requests: answered.
        prompt_tokens, completion_tokens: as the server counts them.
        cached_tokens: of the prompts', that it bills for less.
        failed: requests that ended without an answer, retries and all; taken to cost nothing.
        estimated: answers of which the server did not count the tokens.
        unpriced: answers of models without a known price.
        priced: USD of all others.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    failed: int = 0
    estimated: int = 0
    unpriced: int = 0
    priced: float = 0.0

    @property
    def cost(self) -> float | None:
        """USD; None when the price of any answer is unknown."""
        return None if self.unpriced else self.priced

    def add(self, usage: Usage, price: Price | None) -> None:
        """Count an answer."""
        self.requests += 1
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens
        self.cached_tokens += usage.cached_tokens
        if price is None:
            self.unpriced += 1
        else:
            self.priced += price.cost(usage)

    def since(self, before: "SpendingTotals") -> "SpendingTotals":
        """Return what has come on top of an earlier state of this bill."""
        return SpendingTotals(*(now - then for now, then in zip(astuple(self), astuple(before), strict=True)))

    def described(self) -> dict[str, Any]:
        """Return all of it, for manifests."""
        return {**asdict(self), "cost": self.cost}


class Budget:
    """A model that is asked only as long as the budget lasts. One event loop, no threads."""

    def __init__(  # noqa: PLR0913 - keywords, each told of below
        self,
        model: Model,
        prices: Prices,
        bill: SpendingTotals | None = None,
        *,
        max_cost: float | None = None,
        max_requests: int | None = None,
        by_estimate: bool = False,
    ) -> None:
        """Wrap a model.

        Args:
            model: what is paid for.
            prices: by the name of the model that a request asks for.
            bill: counts towards the limits and is added to; several budgets may share one, one after another.
            max_cost: USD; None: no limit.
            max_requests: answers; None: no limit.
            by_estimate: hold back what a request is expected to cost, not the most that it may: for the Batch API.

        Raises:
            UsageError: when a limit is no number from 0 on.
        """
        if max_cost is not None and not 0 <= max_cost < float("inf"):
            raise UsageError(f"--max-cost is {max_cost}. Give USD, 0 or more.")
        if max_requests is not None and max_requests < 0:
            raise UsageError(f"--max-requests is {max_requests}. Give 0 or more.")
        self.bill = bill if bill is not None else SpendingTotals()
        self._model, self._prices = model, prices
        self._max_cost, self._max_requests = max_cost, max_requests
        self._known: dict[str, Price | None] = {}
        self._under_way = 0
        self._held = 0.0
        self._by_estimate = by_estimate
        self._foretold = self._cost = 0.0  # USD of the answers so far: expected, and as they came
        self._longest = 0  # answer so far, tokens
        self._beyond = 1.0  # by how much a server's count of a prompt has exceeded the bound
        self._waiting: deque[tuple[asyncio.Future[float], Request, Price | None]] = deque()
        self._stopped: RequestError | None = None

    async def ask(self, request: Request) -> Reply:
        """Return the answer, once the budget has room for it.

        Raises:
            Failure: ``over_budget``, nothing sent; or as the model's.
            UsageError: a limit in USD is set, and the model's price is unknown; nothing sent.
        """
        if self._stopped is not None:
            raise self._stopped.copy()
        price = self._price(request.model)
        hold = self._most(request, price)
        if self._waiting or not self._fits(hold):
            hold = await self._room(request, price)
        else:
            self._take(hold)
        try:
            reply = await self._model.ask(request)
            if not reply.cached:
                reply = self._settled(request, reply, price)
        except RequestError:
            self.bill.failed += 1
            raise
        finally:
            self._give_back(hold)
        return reply

    def _price(self, model: str) -> Price | None:
        if model not in self._known:
            needed = self._max_cost is not None
            self._known[model] = self._prices.needed(model) if needed else self._prices.find(model)
        return self._known[model]

    def _most(self, request: Request, price: Price | None) -> float:
        """Return the USD that a request may cost at most, as far as is known now; 0 where no limit needs them."""
        if price is None or self._max_cost is None:
            return 0.0
        if self._by_estimate:
            return (
                self._expected(request, price)
                * BATCH_SAFETY_FACTOR
                * (self._cost / self._foretold if self._foretold else 1.0)
            )
        answer = max_answer_tokens(request)
        if answer is None:
            expected = estimate_answer_tokens(request) if request.expects else 0
            answer = round(
                LONGEST_ANSWER_FACTOR * max(self._longest or DEFAULT_HELD_TOKENS / LONGEST_ANSWER_FACTOR, expected)
            )
        return price.most(max_prompt_tokens(request, price.image) * self._beyond, answer)

    @staticmethod
    def _expected(request: Request, price: Price) -> float:
        return price.cost(Usage(estimate_prompt_tokens(request, price.image), estimate_answer_tokens(request)))

    def _settled(self, request: Request, reply: Reply, price: Price | None) -> Reply:
        """Put an answer on the bill, and return it with the tokens that it is billed for: later runs tell them, too."""
        rule = price.image if price is not None else _PLAIN
        usage, estimated = estimate_usage(request, reply, rule)
        self.bill.add(usage, price)
        self.bill.estimated += estimated
        if self._max_cost is not None:
            self._longest = max(self._longest, usage.completion_tokens)
            self._beyond = max(self._beyond, usage.prompt_tokens / max_prompt_tokens(request, rule))
        if self._by_estimate and price is not None:
            self._foretold += self._expected(request, price)
            self._cost += price.cost(usage)
        return replace(reply, usage=usage) if estimated else reply

    def _fits(self, hold: float) -> bool:
        if self._max_requests is not None and self.bill.requests + self._under_way >= self._max_requests:
            return False
        if self._max_cost is None:
            return True
        if self._by_estimate and not self._under_way and self.bill.priced > BUDGET_SPENT_SHARE * self._max_cost:
            return False  # what is left is not worth another batch
        return self.bill.priced + self._held + hold <= self._max_cost

    def _take(self, hold: float) -> None:
        self._under_way += 1
        self._held += hold

    def _give_back(self, hold: float) -> None:
        self._under_way -= 1
        self._held = self._held - hold if self._under_way else 0.0  # sums of fractions drift
        if self._waiting:
            self._pump()

    async def _room(self, request: Request, price: Price | None) -> float:
        """Wait until a request fits; return what is held for it.

        Raises:
            Failure: it never will.
        """
        place: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append((place, request, price))
        self._pump()
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self._give_back(place.result())  # it was let through in the moment of its cancelling
            else:
                place.cancel()
                self._pump()
            raise

    def _pump(self) -> None:
        """Let those in front leave that fit; end the run when nothing is under way that could make room."""
        while self._waiting:
            place, request, price = self._waiting[0]
            hold = self._most(request, price)  # anew: answers have told how long answers are
            if place.done():  # called off
                self._waiting.popleft()
            elif self._fits(hold):
                self._waiting.popleft()
                self._take(hold)
                place.set_result(hold)
            elif self._under_way:
                return
            else:
                self._stop(hold)

    def _stop(self, hold: float) -> None:
        self._stopped = RequestError("over_budget", self._spent(hold))
        while self._waiting:
            place, _, _ = self._waiting.popleft()
            if not place.done():
                place.set_exception(self._stopped.copy())

    def _spent(self, hold: float) -> str:
        if self._max_requests is not None and self.bill.requests >= self._max_requests:
            return f"{self.bill.requests:,} of {self._max_requests:,} requests"
        return f"{format_usd(self.bill.priced)} of {format_usd(self._max_cost or 0.0)}; the next request may cost {format_usd(hold)}"


def format_usd(amount: float) -> str:
    """Return an amount of money as it is shown: whole cents, more digits where there are none."""
    return f"${amount:,.2f}" if amount == 0 or amount >= 1 else f"${amount:.2g}" if amount < 0.01 else f"${amount:.3f}"
