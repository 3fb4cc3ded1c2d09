"""Budget of a run, in USD and in requests, which holds with any number of requests in flight; and the bill so far.

    bill = SpendingTotals()
    model = Budget(model, Prices.of(), bill, max_cost=5.0)
    ...
    bill.cost

Before a request is sent, its maximum cost is reserved: one token per byte of the prompt, ``max_tokens`` for the answer. The
actual cost is booked when the answer is there, by the server's own count. A request that does not fit waits for those in
flight, most of which cost less than reserved; if none is left and it still does not fit, the run ends with `RequestError`
``over_budget``, and this and all later requests are not sent. So near the limit requests are sent one by one, and the run
ends with less than the maximum cost of one request unspent.

The limit in USD may be exceeded where the bill cannot be known in advance:
- Requests without ``max_tokens``: twice the longest answer so far is reserved, `DEFAULT_HELD_TOKENS` tokens at first. The
  excess is what the answers in flight are longer than that.
- Images that the server counts by another rule than the price table. After the first answers more is reserved.
- Failed requests count as free. A server may bill an answer that did not arrive (timeout, reset).

The Batch API takes up to a day, so a run cannot wait for answers before it sends more. There (``by_estimate``) a request
reserves 10 % more than its expected cost, corrected by the error of earlier estimates, and the run ends with 95 % of the
limit spent. The limit may be exceeded by as much as answers are longer than expected.

``max_requests`` limits billed answers: the server never returns more. A failed request counts as little as its retries, so
an unreliable server receives more requests than it answers. Cached answers never get here: a budget belongs inside the
cache, so that a continued run pays only for the rest.

If a server does not count tokens, they are estimated (`SpendingTotals.estimated`).
"""

import math
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.admission import AdmissionQueue
from pairwright.generators.llm.client.messages import Model, Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.prices import Price, Prices
from pairwright.generators.llm.token_estimate import (
    estimate_answer_tokens,
    estimate_prompt_tokens,
    estimate_usage,
    max_answer_tokens,
    max_prompt_tokens,
)

DEFAULT_HELD_TOKENS = 1024  # reserved tokens of an answer without a limit, before the first answer
BATCH_SAFETY_FACTOR = 1.1  # times the expected cost, in batch mode
BUDGET_SPENT_SHARE = 0.95  # share of the limit in USD that ends a run in batch mode
LONGEST_ANSWER_FACTOR = 2.0  # times the longest answer so far


@dataclass(slots=True)
class SpendingTotals:
    """The bill so far. Cheap to add to and to read.

    Attributes:
        requests: answered requests.
        prompt_tokens, completion_tokens: tokens as the server counts them.
        cached_tokens: prompt tokens that it bills at the price of its own cache.
        failed: requests without an answer, after all retries; counted as free.
        estimated: answers whose tokens the server did not count.
        alone: requests, answered or not, about an item whose part of a shared answer was missing or unusable.
        unpriced: answers of models without a known price.
        priced: USD of all others.
    """

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    failed: int = 0
    estimated: int = 0
    alone: int = 0
    unpriced: int = 0
    priced: float = 0.0

    @property
    def cost(self) -> float | None:
        """USD; None if the price of any answer is unknown."""
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
        """Return the difference to an earlier state of this bill."""
        return SpendingTotals(*(now - then for now, then in zip(astuple(self), astuple(before), strict=True)))

    def described(self) -> dict[str, Any]:
        """Return the bill as JSON values, for manifests."""
        return {**asdict(self), "cost": self.cost}


class Budget:
    """A model that sends requests only within a budget; for one event loop."""

    def __init__(  # noqa: PLR0913 - keywords
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
            model: the model that is billed.
            prices: by the name of the model in a request.
            bill: counts towards the limits and is added to; several budgets may share one, one after another.
            max_cost: USD; None: unlimited.
            max_requests: answers; None: unlimited.
            by_estimate: reserve the expected cost of a request, not the maximum: for the Batch API.

        Raises:
            UsageError: a limit is negative or not finite.
        """
        if max_cost is not None and not 0 <= max_cost < float("inf"):
            raise UsageError(f"--max-cost is {max_cost}. Give USD, 0 or more.")
        if max_requests is not None and max_requests < 0:
            raise UsageError(f"--max-requests is {max_requests}. Give 0 or more.")
        self.bill = bill if bill is not None else SpendingTotals()
        self._model, self._prices = model, prices
        self._max_cost, self._max_requests = max_cost, max_requests
        self._known: dict[str, Price | None] = {}
        self._in_flight = 0
        self._held = 0.0
        self._by_estimate = by_estimate
        self._expected_cost = self._cost = 0.0  # USD of the answers so far, expected and actual
        self._longest = 0  # longest answer so far, tokens
        self._prompt_factor = 1.0  # largest ratio of a server's count of a prompt to the bound
        self._queue = AdmissionQueue(self._admit, self._release)
        self._stopped: RequestError | None = None

    async def ask(self, request: Request) -> Reply:
        """Return the answer as soon as the request fits into the budget.

        Raises:
            RequestError: ``over_budget``, and the request is not sent; or as the model's.
            UsageError: there is a limit in USD, but the price of the model is unknown; the request is not sent.
        """
        if self._stopped is not None:
            raise self._stopped.copy()
        price = self._price(request.model)
        hold = await self._queue.enter((request, price))
        try:
            reply = await self._model.ask(request)
            if not reply.cached:
                reply = self._booked(request, reply, price)
        except RequestError:
            self.bill.failed += 1
            self.bill.alone += request.is_alone
            raise
        finally:
            self._release(hold)
        return reply

    def _price(self, model: str) -> Price | None:
        if model not in self._known:
            needed = self._max_cost is not None
            self._known[model] = self._prices.needed(model) if needed else self._prices.find(model)
        return self._known[model]

    def _max_cost_of(self, request: Request, price: Price | None) -> float:
        """Return the maximum USD of a request, as far as is known now; 0 without a limit in USD."""
        if price is None or self._max_cost is None:
            return 0.0
        if self._by_estimate:
            return (
                self._expected(request, price)
                * BATCH_SAFETY_FACTOR
                * (self._cost / self._expected_cost if self._expected_cost else 1.0)
            )
        answer = max_answer_tokens(request)
        if answer is None:
            expected = estimate_answer_tokens(request) if request.expects else 0
            answer = round(
                LONGEST_ANSWER_FACTOR * max(self._longest or DEFAULT_HELD_TOKENS / LONGEST_ANSWER_FACTOR, expected)
            )
        return price.most(
            max_prompt_tokens(request, self._prices.image_rule(request.model)) * self._prompt_factor, answer
        )

    def _expected(self, request: Request, price: Price) -> float:
        rule = self._prices.image_rule(request.model)
        return price.cost(Usage(estimate_prompt_tokens(request, rule), estimate_answer_tokens(request)))

    def _booked(self, request: Request, reply: Reply, price: Price | None) -> Reply:
        """Add an answer to the bill, and return it with the billed tokens, which the cache stores."""
        rule = self._prices.image_rule(request.model)
        usage, estimated = estimate_usage(request, reply, rule)
        self.bill.add(usage, price)
        self.bill.estimated += estimated
        self.bill.alone += request.is_alone
        if self._max_cost is not None:
            self._longest = max(self._longest, usage.completion_tokens)
            self._prompt_factor = max(self._prompt_factor, usage.prompt_tokens / max_prompt_tokens(request, rule))
        if self._by_estimate and price is not None:
            self._expected_cost += self._expected(request, price)
            self._cost += price.cost(usage)
        return replace(reply, usage=usage) if estimated else reply

    def _fits(self, hold: float) -> bool:
        if self._max_requests is not None and self.bill.requests + self._in_flight >= self._max_requests:
            return False
        if self._max_cost is None:
            return True
        if self._by_estimate and not self._in_flight and self.bill.priced > BUDGET_SPENT_SHARE * self._max_cost:
            return False  # the rest is not worth another batch
        return self.bill.priced + self._held + hold <= self._max_cost

    def _admit(self, needed: tuple[Request, Price | None]) -> float | None:
        """Reserve the maximum cost of a request and return it in USD; None: it has to wait.

        If no request in flight could make room for it, the run ends.
        """
        hold = self._max_cost_of(*needed)  # at each attempt: the longest answer may have changed
        if self._fits(hold):
            self._in_flight += 1
            self._held += hold
            return hold
        if not self._in_flight:
            self._stopped = RequestError("over_budget", self._spent(hold))
            self._queue.fail(self._stopped)
        return None

    def _release(self, hold: float) -> None:
        self._in_flight -= 1
        self._held = self._held - hold if self._in_flight else 0.0  # sums of fractions drift
        self._queue.pump()

    def _spent(self, hold: float) -> str:
        if self._max_requests is not None and self.bill.requests >= self._max_requests:
            return f"{self.bill.requests:,} of {self._max_requests:,} requests"
        most = format_usd(self._max_cost or 0.0)
        return f"{format_usd(self.bill.priced)} of {most} spent; the next request may cost {format_usd(hold)}"


def format_usd(amount: float) -> str:
    """Return an amount as text: in whole cents, with three decimals below a dollar, with two digits below a cent."""
    if amount == 0 or amount >= 1:
        return f"${amount:,.2f}"
    if amount >= 0.01:
        return f"${amount:.3f}"
    return "$" + f"{amount:.{1 - math.floor(math.log10(amount))}f}".rstrip("0")
