"""How hard a server is asked: requests at once, requests a minute, tokens a minute.

Three things decide when a request may leave.

- `Window`: requests at once. It opens by doubling, then step by step, up to the user's ceiling, and narrows by the
  share of requests that were refused (429, 503, timeouts), at most by half and only for requests that left after the
  last narrowing. Additive increase with a decrease in proportion to the share of marks is DCTCP's rule (Alizadeh et
  al., 2010, section 3.3); plain halving at each refusal would let one refusal in a hundred hold 256 down to 12.
- `Bucket`: the user's ceilings a minute. At most a second's worth is caught up on.
- `Allowance`: what the server itself says in ``x-ratelimit-*``; a server that says nothing is not waited for.

A request that is refused waits for itself (`retrying`). Only when most of a round is refused do all wait: as long as
Retry-After says, or where it says nothing, twice as long each time. Waiting requests leave in the order in which they
came. One event loop, no threads.
"""

import asyncio
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from pairwright.generators.llm.client.messages import Model, Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError

INITIAL_CONCURRENCY = 16  # requests at once, to begin with
TOLERATED_REFUSALS = 0.05  # share of refusals that narrows nothing: single ones have causes of their own
PAUSE_THRESHOLD = 0.5  # share of refusals in a round from which all wait
PAUSE_RANGE_S = (0.25, 30.0)  # seconds: the first and the longest pause of a server that does not say how long
EARLY_REFUSALS = 4  # refusals that may end a round before its time

IMAGE_TOKENS = 800  # of one image, before the server has said what it counts
UNKNOWN_TOKENS = 256  # of an answer, before the first has come
QUOTA_DRIFT = 0.01  # of the way that the own count goes up to the server's, an answer
QUOTA_SAFETY = 0.98  # of the rate that a server's headers amount to: they are rounded
MAX_RESET_S = 100_000.0  # seconds, a day and some: what is longer is a date, which OpenAI's servers do not send

_REFUSALS = {"rate_limited", "overloaded", "timeout"}
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")


class ConcurrencyWindow:
    """How many requests may be under way at once; pure."""

    def __init__(self, ceiling: int) -> None:
        self.size = float(min(INITIAL_CONCURRENCY, ceiling))
        self.narrowed = 0  # how often; a request carries the number that it left under
        self.heeded = False  # whether the last round was mostly refused
        self._ceiling, self._step = ceiling, max(1.0, ceiling / 32)
        self._doubling = True
        self._ended = self._refused = 0

    def ended(self, epoch: int, *, refused: bool) -> bool:
        """Take note of a request that left under ``epoch``; return whether the window has narrowed by it."""
        if epoch != self.narrowed:
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
        self.heeded = share >= PAUSE_THRESHOLD
        if share <= TOLERATED_REFUSALS or (single and not self.heeded):
            self.size = min(self.size + min(self._step, self.size), self._ceiling)
            return False
        self._doubling = False
        self.narrowed += 1
        self.size = max(1.0, self.size * max(0.5, 1 - share))
        return True


class TokenBucket:
    """So many a minute, of which a second's worth (at least one) may come at once; pure. Times in seconds."""

    def __init__(self, per_minute: int, now: float) -> None:
        self._rate = per_minute / 60
        self._most = max(1.0, self._rate)
        self._level, self._at = self._most, now

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until ``amount`` may pass; one larger than the bucket needs a full one."""
        self._level = min(self._most, self._level + (now - self._at) * self._rate)
        self._at = now
        return max(0.0, (min(amount, self._most) - self._level) / self._rate)

    def take(self, amount: float) -> None:
        """Take ``amount`` (or, negative, give it back); what is not there is owed."""
        self._level -= amount


class ServerQuota:
    """What a server says is left of its own limit, ``requests`` or ``tokens``; pure.

    OpenAI says how much is left and when the limit will be whole again, so both a limit a minute and one a day fill at
    (limit - left) / reset. Answers come late: what is under way may or may not be counted in what they say.
    """

    def __init__(self, kind: str) -> None:
        self._names = tuple(f"x-ratelimit-{part}-{kind}" for part in ("remaining", "limit", "reset"))
        self.known = False
        self._level = self._rate = self._most = self._at = 0.0

    def heard(self, headers: Mapping[str, str], under_way: float, now: float) -> None:
        """Read the headers of an answer; ``under_way`` is the amount of the requests without one."""
        left, limit = _number(headers.get(self._names[0])), _number(headers.get(self._names[1]))
        reset = parse_duration(headers.get(self._names[2]))
        if left is None or limit is None or reset is None or limit <= 0 or reset > MAX_RESET_S:
            return
        self._refill(now)
        level = self._level if self.known else left - under_way
        # Our own count may have drifted down (tokens are guessed). It rises only slowly: answers overtake each other.
        self._level = min(level, left) + QUOTA_DRIFT * max(0.0, left - under_way - level)
        self._most = limit
        if left < limit and reset > 0:
            self._rate = QUOTA_SAFETY * (limit - left) / reset
            self.known = True

    def _refill(self, now: float) -> None:
        self._level = min(self._most, self._level + (now - self._at) * self._rate)
        self._at = now

    def wait(self, amount: float, now: float) -> float:
        """Return the seconds until ``amount`` may pass; 0 while the server has said nothing."""
        if not self.known:
            return 0.0
        self._refill(now)
        return max(0.0, (min(amount, self._most) - self._level) / self._rate)

    def take(self, amount: float) -> None:
        """Take ``amount``."""
        self._level -= amount


def parse_duration(text: str | None) -> float | None:
    """Return the seconds of ``120ms``, ``1.5s``, ``6m0s`` or ``1h2m3s``, or of a bare number; None: none of these."""
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
    """A request under way: the window's epoch that it left under, and the tokens expected of it."""

    epoch: int
    tokens: float


class Limiter:
    """Lets requests leave as window, buckets and allowances permit."""

    def __init__(self, max_concurrency: int, requests_per_minute: int = 0, tokens_per_minute: int = 0) -> None:
        """Prepare; inside or outside of an event loop.

        Args:
            max_concurrency: requests at once, at most.
            requests_per_minute: at most; 0: no ceiling.
            tokens_per_minute: at most, prompts and answers; 0: no ceiling. Expected at first, corrected by the answer.
        """
        self._window = ConcurrencyWindow(max_concurrency)
        self._per_minute = requests_per_minute, tokens_per_minute
        self._requests: TokenBucket | None = None
        self._tokens: TokenBucket | None = None
        self._said = ServerQuota("requests"), ServerQuota("tokens")
        self._in_flight = 0
        self._tokens_in_flight = 0.0
        self._answer_tokens = 0.0  # of an answer, as they come
        self._closed_until = 0.0
        self._pause = PAUSE_RANGE_S[0]
        self._asked_pause = 0.0  # the longest Retry-After of this round
        self._waiting: deque[tuple[asyncio.Future[Ticket], float]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._stopped: RequestError | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def concurrency(self) -> int:
        """Requests that may be under way at once, now."""
        return int(self._window.size)

    @property
    def in_flight(self) -> int:
        """Requests that are under way."""
        return self._in_flight

    @property
    def waiting(self) -> int:
        """Requests that wait to leave."""
        return len(self._waiting)

    def heard(self, headers: Mapping[str, str]) -> None:
        """Take note of an answer's ``x-ratelimit-*``; looked up by lower-case name."""
        if "x-ratelimit-remaining-requests" in headers or "x-ratelimit-remaining-tokens" in headers:
            now = self._now()
            self._said[0].heard(headers, self._in_flight, now)
            self._said[1].heard(headers, self._tokens_in_flight, now)

    async def enter(self, request: Request) -> Ticket:
        """Wait until the request may leave.

        Raises:
            Failure: the run has been stopped.
        """
        if self._stopped is not None:
            raise self._stopped.copy()
        tokens = self._expected(request) if self._per_minute[1] or self._said[1].known else 0.0
        if not self._waiting and self._in_flight < int(self._window.size) and self._wait(tokens) <= 0:
            return self._let(tokens)
        place: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()
        self._waiting.append((place, tokens))
        self._pump()
        try:
            return await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self._leave(place.result())  # it was let through in the moment of its cancelling
            else:
                place.cancel()
                self._pump()
            raise

    def answered(self, ticket: Ticket, usage: Usage) -> None:
        """Take note of an answer."""
        spent = usage.prompt_tokens + usage.completion_tokens
        if spent:
            said = float(usage.completion_tokens)
            self._answer_tokens += (said - self._answer_tokens) * (0.1 if self._answer_tokens else 1.0)
            if self._tokens is not None:
                self._tokens.take(spent - ticket.tokens)
        self._note(ticket, refused=False)
        self._leave(ticket)

    def failed(self, ticket: Ticket, failure: RequestError | None) -> None:
        """Take note of a request that ended in a failure; None: it was called off."""
        if failure is not None:
            if failure.fatal:
                self.stop(failure)
            refused = failure.code in _REFUSALS
            if refused:
                self._asked_pause = max(self._asked_pause, failure.retry_after or 0.0)
            self._note(ticket, refused=refused)
        self._leave(ticket)

    def stop(self, failure: RequestError) -> None:
        """Let no request leave any more; those that wait end in ``failure``."""
        self._stopped = failure
        while self._waiting:
            place, _ = self._waiting.popleft()
            if not place.done():
                place.set_exception(failure.copy())
        self.close()

    def close(self) -> None:
        """Leave no timer behind."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _now(self) -> float:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            now = self._loop.time()
            requests, tokens = self._per_minute
            self._requests = TokenBucket(requests, now) if requests else None
            self._tokens = TokenBucket(tokens, now) if tokens else None
        return self._loop.time()

    def _expected(self, request: Request) -> float:
        letters = sum(len(message.text) for message in request.messages)
        images = sum(len(message.images) for message in request.messages)
        most = request.parameters.get("max_completion_tokens") or request.parameters.get("max_tokens")
        answer = self._answer_tokens or (min(most, UNKNOWN_TOKENS) if isinstance(most, int) else UNKNOWN_TOKENS)
        return letters / 4 + images * IMAGE_TOKENS + answer

    def _wait(self, tokens: float) -> float:
        """Return the seconds until a request of so many tokens may leave, the window aside."""
        now = self._now()
        longest = max(0.0, self._closed_until - now)
        if self._requests is not None:
            longest = max(longest, self._requests.wait(1.0, now))
        if self._tokens is not None:
            longest = max(longest, self._tokens.wait(tokens, now))
        if self._said[0].known:
            longest = max(longest, self._said[0].wait(1.0, now))
        if self._said[1].known:
            longest = max(longest, self._said[1].wait(tokens, now))
        return longest

    def _let(self, tokens: float) -> Ticket:
        self._in_flight += 1
        self._tokens_in_flight += tokens
        if self._requests is not None:
            self._requests.take(1.0)
        if self._tokens is not None:
            self._tokens.take(tokens)
        self._said[0].take(1.0)
        self._said[1].take(tokens)
        return Ticket(self._window.narrowed, tokens)

    def _note(self, ticket: Ticket, *, refused: bool) -> None:
        narrowed = self._window.ended(ticket.epoch, refused=refused)
        if not narrowed:
            if not refused and ticket.epoch == self._window.narrowed:
                self._pause, self._asked_pause = PAUSE_RANGE_S[0], 0.0
            return
        if self._window.heeded:
            pause = self._asked_pause or self._pause
            self._pause = min(self._pause * 2, PAUSE_RANGE_S[1])
            self._closed_until = max(self._closed_until, self._now() + pause)
        self._asked_pause = 0.0

    def _leave(self, ticket: Ticket) -> None:
        self._in_flight -= 1
        self._tokens_in_flight -= ticket.tokens
        if self._waiting:
            self._pump()

    def _pump(self) -> None:
        """Let those in front leave; where time is what they wait for, come back then."""
        while self._waiting and self._in_flight < int(self._window.size):
            place, tokens = self._waiting[0]
            if place.done():  # called off
                self._waiting.popleft()
                continue
            wait = self._wait(tokens)
            if wait > 0:
                self._come_back(wait)
                return
            self._waiting.popleft()
            place.set_result(self._let(tokens))

    def _come_back(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(max(seconds, 0.001), self._again)

    def _again(self) -> None:
        self._timer = None
        self._pump()


class LimitedModel:
    """A model whose requests leave as a limiter permits."""

    def __init__(self, model: Model, limiter: Limiter) -> None:
        self._model, self._limiter = model, limiter

    async def ask(self, request: Request) -> Reply:
        """Wait for a place, then ask.

        Raises:
            Failure: as the model's.
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
