"""Rate limits of the client: concurrent requests, requests per minute, tokens per minute.

- `ConcurrencyWindow`: concurrent requests. It grows by doubling, then linearly, up to the user's limit, and shrinks by
  the share of refused requests (429, 503, timeouts), at most by half and only for requests sent after the last decrease.
  Additive increase with a decrease in proportion to the share of marks is DCTCP's rule (Alizadeh et al., 2010,
  section 3.3); halving at each refusal would let 1% of refusals hold 256 down to 12.
- `TokenBucket`: the user's limits per minute, with a burst of one second's worth.
- `ServerQuota`: the server's own limits from ``x-ratelimit-*`` headers, if it sends them.

A refused request waits for itself (`retrying`). Only when most of a round is refused do all requests wait: as long as
Retry-After says, else twice as long each time. Waiting requests leave in order of arrival. One event loop, no threads.

aiolimiter could only replace `TokenBucket` (16 lines). Measured (1.3, ``benchmarks/own_code.py``): it lets small requests
overtake a waiting large one, raises ValueError for requests larger than the bucket, cannot correct an estimate by the
tokens actually used, and takes six times the CPU with 4,000 waiting requests (118 µs against 20 µs a request).
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pairwright.generators.llm.client.admission import AdmissionQueue
from pairwright.generators.llm.client.messages import Model, Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError

INITIAL_CONCURRENCY = 64  # each doubling takes a round trip: from 16 to 256, as long as 1,000 requests later on
TOLERATED_REFUSALS = 0.05  # share of refused requests up to which the window does not shrink
PAUSE_THRESHOLD = 0.5  # share of refused requests in a round from which all requests wait
PAUSE_RANGE_S = (0.25, 30.0)  # seconds, first and longest pause without Retry-After
EARLY_REFUSALS = 4  # refused requests that end a round early

IMAGE_TOKENS = 800  # of one image, before the server has reported usage
UNKNOWN_TOKENS = 256  # of an answer, before the first one
QUOTA_DRIFT = 0.01  # share by which our count moves up to the server's per response
QUOTA_SAFETY = 0.98  # factor on the rate computed from headers, which are rounded
MAX_RESET_S = 100_000.0  # a day and some; larger values are timestamps

_REFUSALS = {"rate_limited", "overloaded", "timeout"}
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


class ConcurrencyWindow:
    """Number of requests that may be in flight. Pure."""

    def __init__(self, ceiling: int) -> None:
        self.size = float(min(INITIAL_CONCURRENCY, ceiling))
        self.epoch = 0  # number of decreases
        self.mostly_refused = False  # whether the last round was mostly refused
        self._ceiling, self._step = ceiling, max(1.0, ceiling / 32)
        self._doubling = True
        self._ended = self._refused = 0

    def ended(self, epoch: int, *, refused: bool) -> bool:
        """Record the end of a request sent in ``epoch``; return whether the window has shrunk."""
        if epoch != self.epoch:
            return False
        self._ended += 1
        self._refused += refused
        if self._doubling and not refused:
            self.size = min(self.size + 1, self._ceiling)
        early = self._refused >= max(EARLY_REFUSALS, self.size / 4)
        if self._ended < self.size and not early:
            return False
        share, single = self._refused / self._ended, self._refused == 1
        self._ended = self._refused = 0
        self.mostly_refused = share >= PAUSE_THRESHOLD
        if share <= TOLERATED_REFUSALS or (single and not self.mostly_refused):
            self.size = min(self.size + min(self._step, self.size), self._ceiling)
            return False
        self._doubling = False
        self.epoch += 1
        self.size = max(1.0, self.size * max(0.5, 1 - share))
        return True


class TokenBucket:
    """Limit per minute with a burst of ``burst_s`` seconds' worth (at least one). Full at first. Pure; times in seconds."""

    def __init__(self, per_minute: int, now: float, burst_s: float = 1.0) -> None:
        self.rate = per_minute / 60
        self.capacity = max(1.0, self.rate * burst_s)
        self.level, self._at = self.capacity, now

    def refill(self, now: float) -> None:
        """Add what has come since the last call."""
        self.level = min(self.capacity, self.level + (now - self._at) * self.rate)
        self._at = now

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until ``amount`` may pass; an amount larger than the bucket needs a full one."""
        self.refill(now)
        return max(0.0, (min(amount, self.capacity) - self.level) / self.rate)

    def take(self, amount: float) -> None:
        """Take ``amount`` (negative: give back); the level may become negative."""
        self.level -= amount


class ServerQuota(TokenBucket):
    """Remaining quota that a server reports, of ``requests`` or ``tokens``. Pure.

    OpenAI reports the remaining amount and the time until the quota is full again; limits per minute and per day therefore
    fill at (limit - remaining) / reset. Headers arrive late: requests in flight may or may not be included.
    """

    def __init__(self, kind: str) -> None:
        self._names = tuple(f"x-ratelimit-{part}-{kind}" for part in ("remaining", "limit", "reset"))
        self.known = False
        self.level = self.rate = self.capacity = self._at = 0.0

    def heard(self, headers: Mapping[str, str], under_way: float, now: float) -> None:
        """Read the headers of a response; ``under_way`` is the amount of the requests in flight."""
        left, limit = _number(headers.get(self._names[0])), _number(headers.get(self._names[1]))
        reset = parse_duration(headers.get(self._names[2]))
        if left is None or limit is None or reset is None or limit <= 0 or reset > MAX_RESET_S:
            return
        self.refill(now)
        level = self.level if self.known else left - under_way
        # Our count may have drifted down (tokens are estimated). It rises slowly: responses overtake each other.
        self.level = min(level, left) + QUOTA_DRIFT * max(0.0, left - under_way - level)
        self.capacity = limit
        if left < limit and reset > 0:
            self.rate = QUOTA_SAFETY * (limit - left) / reset
            self.known = True

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until ``amount`` may pass; 0 if the server reports nothing."""
        return super().wait(amount, now) if self.known else 0.0


def parse_duration(text: str | None) -> float | None:
    """Return the seconds of ``120ms``, ``1.5s``, ``6m0s``, ``1h2m3s`` or a bare number; None if invalid."""
    if not text:
        return None
    bare = _number(text)
    if bare is not None:
        return bare
    found = _DURATION.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        return None
    scales = (86400, 3600, 60, 1, 0.001)
    return sum(float(part) * scale for part, scale in zip(found.groups(), scales, strict=True) if part)


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


@dataclass(frozen=True, slots=True)
class Ticket:
    """Request in flight: the window's epoch in which it was sent, and the tokens expected of it."""

    epoch: int
    tokens: float


class Limiter:
    """Admits requests as window, buckets and server quotas permit."""

    def __init__(self, max_concurrency: int, requests_per_minute: int = 0, tokens_per_minute: int = 0) -> None:
        """Create a limiter, inside or outside an event loop.

        Args:
            max_concurrency: concurrent requests.
            requests_per_minute: 0 = unlimited.
            tokens_per_minute: prompts and answers; 0 = unlimited. Estimated at first, corrected by the response.
        """
        self._window = ConcurrencyWindow(max_concurrency)
        self._per_minute = requests_per_minute, tokens_per_minute
        self._tokens: TokenBucket | None = None
        self._quotas = (ServerQuota("requests"), False), (ServerQuota("tokens"), True)
        self._limits: list[tuple[TokenBucket, bool]] = []  # the user's, and the server's once known; whether of tokens
        self._in_flight = 0
        self._tokens_in_flight = 0.0
        self._answer_tokens = 0.0  # moving average per answer
        self._closed_until = 0.0
        self._pause = PAUSE_RANGE_S[0]
        self._asked_pause = 0.0  # longest Retry-After of the round
        self._queue = AdmissionQueue(self._admit, self._leave)
        self._timer: asyncio.TimerHandle | None = None
        self._stopped: RequestError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def in_flight(self) -> int:
        """Requests in flight."""
        return self._in_flight

    @property
    def waiting(self) -> int:
        """Requests that wait to be sent."""
        return len(self._queue)

    def heard(self, headers: Mapping[str, str]) -> None:
        """Read the ``x-ratelimit-*`` headers of a response, by lower-case name."""
        if "x-ratelimit-remaining-requests" in headers or "x-ratelimit-remaining-tokens" in headers:
            now = self._now()
            for quota, of_tokens in self._quotas:
                was_known = quota.known
                quota.heard(headers, self._tokens_in_flight if of_tokens else self._in_flight, now)
                if quota.known and not was_known:
                    self._limits.append((quota, of_tokens))

    async def enter(self, request: Request) -> Ticket:
        """Wait until the request may be sent.

        Raises:
            RequestError: the run was stopped.
        """
        if self._stopped is not None:
            raise self._stopped.copy()
        tokens = self._expected(request) if self._per_minute[1] or self._quotas[1][0].known else 0.0
        return await self._queue.enter(tokens)

    def answered(self, ticket: Ticket, usage: Usage) -> None:
        """Record a response."""
        spent = usage.prompt_tokens + usage.completion_tokens
        if spent:
            answer = float(usage.completion_tokens)
            self._answer_tokens += (answer - self._answer_tokens) * (0.1 if self._answer_tokens else 1.0)
            if self._tokens is not None:
                self._tokens.take(spent - ticket.tokens)
        self._note(ticket, refused=False)
        self._leave(ticket)

    def failed(self, ticket: Ticket, failure: RequestError | None) -> None:
        """Record a request that ended in an error; None: it was cancelled."""
        if failure is not None:
            if failure.fatal:
                self.stop(failure)
            refused = failure.code in _REFUSALS
            if refused:
                self._asked_pause = max(self._asked_pause, failure.retry_after or 0.0)
            self._note(ticket, refused=refused)
        self._leave(ticket)

    def stop(self, failure: RequestError) -> None:
        """Admit no more requests; those that wait end in ``failure``."""
        self._stopped = failure
        self._queue.fail(failure)
        self.close()

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _now(self) -> float:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            now = self._loop.time()
            requests, tokens = self._per_minute
            if requests:
                self._limits.append((TokenBucket(requests, now), False))
            if tokens:
                self._tokens = TokenBucket(tokens, now)
                self._limits.append((self._tokens, True))
        return self._loop.time()

    def _expected(self, request: Request) -> float:
        characters = sum(len(message.text) for message in request.messages)
        images = sum(len(message.images) for message in request.messages)
        most = request.parameters.get("max_completion_tokens") or request.parameters.get("max_tokens")
        answer = self._answer_tokens or (min(most, UNKNOWN_TOKENS) if isinstance(most, int) else UNKNOWN_TOKENS)
        return characters / 4 + images * IMAGE_TOKENS + answer

    def _wait(self, tokens: float) -> float:
        """Return the seconds until a request of ``tokens`` tokens may be sent, regardless of the window."""
        now = self._now()
        waits = [limit.wait(tokens if of_tokens else 1.0, now) for limit, of_tokens in self._limits]
        return max(0.0, self._closed_until - now, *waits)

    def _admit(self, tokens: float) -> Ticket | None:
        """Admit a request of ``tokens`` tokens; None: not now, and a timer is set if it waits for time."""
        if self._in_flight >= int(self._window.size):
            return None
        if (wait := self._wait(tokens)) > 0:
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(max(wait, 0.001), self._on_timer)
            return None
        self._in_flight += 1
        self._tokens_in_flight += tokens
        for limit, of_tokens in self._limits:
            limit.take(tokens if of_tokens else 1.0)
        return Ticket(self._window.epoch, tokens)

    def _note(self, ticket: Ticket, *, refused: bool) -> None:
        narrowed = self._window.ended(ticket.epoch, refused=refused)
        if not narrowed:
            if not refused and ticket.epoch == self._window.epoch:
                self._pause, self._asked_pause = PAUSE_RANGE_S[0], 0.0
            return
        if self._window.mostly_refused:
            pause = self._asked_pause or self._pause
            self._pause = min(self._pause * 2, PAUSE_RANGE_S[1])
            self._closed_until = max(self._closed_until, self._now() + pause)
        self._asked_pause = 0.0

    def _leave(self, ticket: Ticket) -> None:
        self._in_flight -= 1
        self._tokens_in_flight -= ticket.tokens
        self._queue.pump()

    def _on_timer(self) -> None:
        self._timer = None
        self._queue.pump()


class LimitedModel:
    """Model whose requests are admitted by a limiter."""

    def __init__(self, model: Model, limiter: Limiter) -> None:
        self._model, self._limiter = model, limiter

    async def ask(self, request: Request) -> Reply:
        """Wait for admission, then ask.

        Raises:
            RequestError: as the model raises it.
        """
        ticket = await self._limiter.enter(request)
        try:
            reply = await self._model.ask(request)
        except RequestError as failure:
            self._limiter.failed(ticket, failure)
            raise
        except BaseException:
            self._limiter.failed(ticket, None)
            raise
        self._limiter.answered(ticket, reply.usage)
        return reply
