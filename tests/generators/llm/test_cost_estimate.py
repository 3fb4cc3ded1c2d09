"""What will be asked and paid for, told before anything is sent."""

import base64
import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import InputError, UsageError
from pairwright.generators.llm.cache.store import Cache
from pairwright.generators.llm.client.messages import Message, Reply, Request, Usage
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.cost_estimate import (
    ANSWER_ERROR,
    BATCH_S,
    REPAIR_RATE,
    TOKEN_ERROR,
    EstimatedRange,
    plan_stage,
    sample_rows,
    sum_plans,
)
from pairwright.generators.llm.image_tokens import ImageRule
from pairwright.generators.llm.images import MessageImages
from pairwright.generators.llm.prices import Price, Prices
from pairwright.generators.llm.runner import LLMRow
from pairwright.generators.llm.testing.app import ServerApp
from pairwright.generators.llm.testing.script import parse_script
from pairwright.generators.llm.testing.serving import serve_in_thread
from pairwright.generators.llm.token_estimate import estimate_prompt_tokens, estimate_tokens

PRICES = Prices({"small": Price(1.0, 10.0, batch=0.5)})
SETTINGS = LLMSettings(model="small", base_url="http://localhost:1/v1", max_concurrency=10)
EXPECTED = "A cat sits on the mat."


def request(text: str, *, model: str = "small") -> Request:
    return Request((Message("user", text),), model, expects=EXPECTED)


def once(text: str, attempt: int) -> LLMStep[str]:
    [outcome] = yield [request(f"{text} {attempt}")]
    return outcome.text if isinstance(outcome, Reply) else outcome.code


def twice(text: str, attempt: int) -> LLMStep[str]:
    """Ask two at once, then one about their answers."""
    first, second = yield [request(f"{text} a"), request(f"{text} b")]
    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    [last] = yield [request(f"Join: {first.text} {second.text} {text} {attempt}")]
    return last.text if isinstance(last, Reply) else last.code


Ask = Callable[[str, int], LLMStep[str]]


def row(name: str, talk: Ask = once) -> LLMRow[str]:
    return LLMRow(name, partial(talk, name))


def rows(count: int, talk: Ask = once) -> list[LLMRow[str]]:
    return [row(f"row {at:03}", talk) for at in range(count)]


def exactly(value: float) -> EstimatedRange:
    return EstimatedRange(value, value, value)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Cache]:
    with Cache.open(tmp_path / "cache.sqlite") as cache:
        yield cache


def test_all_rows_held_give_the_requests_of_each_round_exactly() -> None:
    plan = plan_stage("s", rows(30, twice), None, settings=SETTINGS, prices=PRICES)
    assert (plan.rows, plan.sampled) == (30, 30)
    assert plan.requests == exactly(90)
    assert plan.rounds == (60, 30)
    assert plan.cached == exactly(0)


def grouped(text: str, attempt: int) -> LLMStep[str]:
    """Ask about four items at once; an item that is not answered is requested alone."""
    items = tuple(replace(request(f"{text} {item}"), repair="possible") for item in range(4))
    [outcome] = yield [replace(request(f"{text} {attempt}"), alone=items)]
    return outcome.text if isinstance(outcome, Reply) else outcome.code


def test_of_items_that_are_requested_alone_the_share_of_repairs_is_repaired() -> None:
    plan = plan_stage("s", rows(10, grouped), None, settings=SETTINGS, prices=PRICES)
    alone = 10 * 4 * REPAIR_RATE
    assert plan.repairs.value == pytest.approx(alone + alone * REPAIR_RATE)
    assert (plan.requests.low, plan.requests.high) == (10, 10 + 2 * 40)


def test_groups_of_different_sizes_have_a_range_of_requests() -> None:
    """A sample of rows does not tell exactly how many groups all of them make."""
    groups = [LLMRow(f"{at}", partial(once, f"{at}"), size=1 + at % 4) for at in range(40)]
    plan = plan_stage("s", groups, 1000, settings=SETTINGS, prices=PRICES)
    assert plan.requests.value == pytest.approx(400)
    assert plan.requests.low < 399
    assert plan.requests.high > 401
    even = [replace(each, size=2) for each in groups]
    plan = plan_stage("s", even, 1000, settings=SETTINGS, prices=PRICES)
    assert (plan.requests.low, plan.requests.value) == pytest.approx((500, 500))


def test_tokens_and_cost_are_those_of_the_messages_and_the_expected_answers() -> None:
    plan = plan_stage("s", rows(10), None, settings=SETTINGS, prices=PRICES)
    asked = estimate_prompt_tokens(request("row 000 0"), ImageRule())
    answer = round(estimate_tokens(EXPECTED)) + 1
    assert plan.tokens_in.value == 10 * asked
    assert plan.tokens_out.value == 10 * answer
    assert plan.cost is not None
    assert plan.cost.value == pytest.approx(10 * (asked * 1.0 + answer * 10.0) / 1e6)


def test_ranges_of_tokens_and_cost_are_the_stated_shares_of_them() -> None:
    plan = plan_stage("s", rows(10), None, settings=SETTINGS, prices=PRICES)
    for found, share in ((plan.tokens_in, TOKEN_ERROR), (plan.tokens_out, ANSWER_ERROR)):
        assert (found.low, found.high) == pytest.approx(((1 - share) * found.value, (1 + share) * found.value))
    assert plan.cost is not None
    assert 0.7 * plan.cost.value <= plan.cost.low < 0.9 * plan.cost.value
    assert 1.1 * plan.cost.value < plan.cost.high <= 1.3 * plan.cost.value


def test_a_sample_is_multiplied_up_to_all_rows_with_a_range_that_holds_the_truth_19_times_in_20() -> None:
    mixed = [row(f"{at:03}", twice if at % 3 == 0 else once) for at in range(900)]
    truth = plan_stage("s", mixed, None, settings=SETTINGS, prices=PRICES)
    held = 0
    for seed in range(100):
        sample = sample_rows(mixed, 100, seed=seed)
        plan = plan_stage("s", sample.items, sample.total, settings=SETTINGS, prices=PRICES)
        held += plan.requests.low < truth.requests.value < plan.requests.high
        assert (plan.rows, plan.sampled) == (900, 100)
        assert plan.requests.high - plan.requests.low < 0.25 * truth.requests.value
        assert plan.cost is not None
        assert plan.cost.low < plan.cost.value < plan.cost.high
    assert 88 <= held <= 100


def test_what_the_cache_holds_is_neither_sent_nor_paid_for_and_its_answers_lead_on(cache: Cache) -> None:
    joined: list[str] = []

    def talk(text: str, attempt: int) -> LLMStep[str]:
        result = yield from twice(text, attempt)
        joined.append(result)
        return result

    for at in range(5):
        for part in "ab":
            key = request(f"row {at:03} {part}").key(SETTINGS.cache_endpoint)
            cache.put(key, Reply(f"answer {part}", "stop", "", Usage(9, 9), "small"), asked="small", endpoint="x")
    last = request("Join: answer a answer b row 000 0").key(SETTINGS.cache_endpoint)
    cache.put(last, Reply("the end", "stop", "", Usage(9, 9), "small"), asked="small", endpoint="x")
    plan = plan_stage("s", rows(10, talk), None, settings=SETTINGS, prices=PRICES, cache=cache)
    assert joined[0] == "the end"
    assert joined[1:] == [EXPECTED] * 9
    assert plan.cached == exactly(11)
    assert plan.requests == exactly(19)
    assert plan.rounds == (10, 9)
    assert plan.cached_share == pytest.approx(11 / 30)


def test_a_stage_that_the_cache_answers_whole_costs_nothing_and_takes_no_time(cache: Cache) -> None:
    key = request("row 000 0").key(SETTINGS.cache_endpoint)
    cache.put(key, Reply("yes", "stop", "", Usage(9, 9), "small"), asked="small", endpoint="x")
    plan = plan_stage("s", rows(1), None, settings=SETTINGS, prices=PRICES, cache=cache)
    assert plan.requests == plan.seconds == plan.cost == exactly(0)
    assert plan.rounds == ()


def test_equal_requests_of_the_sample_are_sent_once() -> None:
    plan = plan_stage("s", [row("same"), row("same")], None, settings=SETTINGS, prices=PRICES)
    assert plan.requests == exactly(1)
    assert plan.cached == exactly(1)


def test_another_attempt_asks_what_that_attempt_asks() -> None:
    retried = LLMRow("row", partial(once, "row"), attempt=3)
    plan = plan_stage("s", [row("row"), retried], None, settings=SETTINGS, prices=PRICES)
    assert plan.requests == exactly(2)


def test_an_unknown_price_leaves_the_cost_unknown_and_the_rest_told() -> None:
    plan = plan_stage("s", rows(3), None, settings=SETTINGS, prices=Prices({}))
    assert plan.cost is None
    assert plan.unpriced == ("small",)
    assert plan.requests == exactly(3)
    known = plan_stage("t", rows(3), None, settings=SETTINGS, prices=PRICES)
    assert sum_plans([plan, known]).cost is None


def test_batch_mode_costs_half_and_takes_up_to_a_day_a_round(tmp_path: Path) -> None:
    table = tmp_path / "p.yaml"
    table.write_text("models: {small: {input: 1.0, output: 10.0}}")
    once_each, batched = (
        plan_stage("s", rows(5, twice), None, settings=SETTINGS, prices=Prices.of(file=table, batch=batch), batch=batch)
        for batch in (False, True)
    )
    assert once_each.cost is not None
    assert batched.cost is not None
    assert batched.cost.value == pytest.approx(once_each.cost.value / 2)
    assert batched.seconds == EstimatedRange(2 * BATCH_S, 0, 2 * BATCH_S)


def test_time_follows_the_tightest_of_ceilings_and_concurrency() -> None:
    def seconds(**limits: int) -> float:
        settings = replace(SETTINGS, **limits)  # type: ignore[arg-type]
        return plan_stage("s", rows(100), None, settings=settings, prices=PRICES).seconds.value

    assert seconds(max_concurrency=10) == pytest.approx(10 * seconds(max_concurrency=100))
    assert seconds(max_concurrency=100, requests_per_minute=50) == pytest.approx(120)
    slow = plan_stage("s", rows(100), None, settings=SETTINGS, prices=PRICES)
    tokens = slow.tokens_in.value + slow.tokens_out.value
    assert seconds(max_concurrency=100, tokens_per_minute=1000) == pytest.approx(60 * tokens / 1000)
    # One row's rounds come one after another, however many may be asked at once.
    assert plan_stage("s", rows(1, twice), None, settings=SETTINGS, prices=PRICES).seconds.value > seconds(
        max_concurrency=1000
    )


def test_the_upper_bound_of_the_time_includes_items_that_are_requested_alone() -> None:
    """Many short requests after few long ones: the mean answer is shorter, and yet everything takes longer."""

    def merged(text: str, attempt: int) -> LLMStep[str]:
        [*_, first] = next(grouped(text, attempt))
        [outcome] = yield [replace(first, expects="word " * 500)]
        return outcome.text if isinstance(outcome, Reply) else outcome.code

    plan = plan_stage("s", rows(10, merged), None, settings=replace(SETTINGS, max_concurrency=64), prices=PRICES)
    assert plan.requests.high > plan.requests.value
    assert plan.seconds.low <= plan.seconds.value < plan.seconds.high


def test_a_row_that_raises_is_counted_with_what_it_had_asked() -> None:
    def broken(text: str, attempt: int) -> LLMStep[str]:
        yield from once(text, attempt)
        raise InputError("it is odd", where=text, fix="Mend it")

    def silent(text: str, attempt: int) -> LLMStep[str]:
        yield from ()
        raise InputError("it is odd", where=text, fix="Mend it")

    plan = plan_stage("s", [row("x", broken), row("y", silent)], None, settings=SETTINGS, prices=PRICES)
    assert plan.failed == 2
    assert plan.requests == exactly(1)


def test_a_talk_that_never_ends_is_given_up_and_counted() -> None:
    def endless(text: str, attempt: int) -> LLMStep[str]:
        while True:
            yield [request(text)]

    plan = plan_stage("s", [row("x", endless)], None, settings=SETTINGS, prices=PRICES)
    assert plan.failed == 1
    assert plan.requests == exactly(1)


def test_images_are_counted_as_large_as_they_are_sent() -> None:
    out = io.BytesIO()
    PIL.Image.new("RGB", (1200, 600)).save(out, "PNG")
    image = MessageImages(edge=800).of(out.getvalue())
    sent = base64.b64decode(image.data_url().partition(",")[2])
    assert PIL.Image.open(io.BytesIO(sent)).size == (800, 400)
    rule = ImageRule(tiles=(85, 170))
    with_image = Request((Message("user", "What?", (image,)),), "small")
    without = Request((Message("user", "What?"),), "small")
    measured = estimate_prompt_tokens(with_image, rule) - estimate_prompt_tokens(without, rule)
    assert measured == 85 + 2 * 170
    unknown = replace(with_image, messages=(Message("user", "What?", (replace(image, width=0, height=0),)),))
    assert estimate_prompt_tokens(unknown, rule) - estimate_prompt_tokens(without, rule) == 85 + 4 * 170


def test_a_plan_names_the_part_of_images() -> None:
    out = io.BytesIO()
    PIL.Image.new("RGB", (800, 400)).save(out, "PNG")
    image = MessageImages().of(out.getvalue())

    def seen(text: str, attempt: int) -> LLMStep[str]:
        [reply] = yield [Request((Message("user", text, (image,)),), "small")]
        return str(reply)

    prices = Prices({"small": Price(1.0, 10.0, image=ImageRule(tiles=(85, 170)))})
    plan = plan_stage("s", [row("x", seen), row("y", seen)], 20, settings=SETTINGS, prices=prices)
    assert plan.image_tokens.value == 20 * (85 + 2 * 170)
    assert plan.image_cost is not None
    assert plan.image_cost.value == pytest.approx(plan.image_tokens.value / 1e6)
    assert plan.tokens_in.value > plan.image_tokens.value
    assert sum_plans([plan, plan]).image_tokens.value == 2 * plan.image_tokens.value


def test_no_rows_are_no_requests() -> None:
    plan = plan_stage("s", [], 0, settings=SETTINGS, prices=PRICES)
    assert plan.requests == plan.cost == plan.seconds == EstimatedRange()


def test_nothing_is_sent() -> None:
    with serve_in_thread(ServerApp(parse_script({}, where="test"))) as server:
        settings = LLMSettings(model="small", base_url=server.url)
        plan_stage("s", rows(5, twice), 1000, settings=settings, prices=PRICES)
        assert server.stats()["requests"] == 0
        assert server.stats()["connections"] == 0


def test_stages_add_up() -> None:
    first = plan_stage("a", rows(10), 100, settings=SETTINGS, prices=PRICES)
    second = plan_stage("b", rows(10, twice), 50, settings=SETTINGS, prices=PRICES)
    total = sum_plans([first, second])
    assert total.requests.value == pytest.approx(100 + 150)
    assert total.rounds == pytest.approx((100 + 100, 50))
    assert total.rows == 150
    assert total.cost is not None
    assert first.cost is not None
    assert second.cost is not None
    assert total.cost.value == pytest.approx(first.cost.value + second.cost.value)
    assert total.cost.low <= total.cost.value <= total.cost.high
    assert total.described()["requests"]["value"] == pytest.approx(250)
    assert sum_plans([]).cost == EstimatedRange()


def test_a_plan_is_the_same_each_time() -> None:
    plans = [plan_stage("s", rows(20, twice), 500, settings=SETTINGS, prices=PRICES) for _ in range(2)]
    assert plans[0] == plans[1]


@given(st.integers(0, 300), st.integers(1, 50), st.integers(0, 5))
def test_a_sample_is_some_of_the_rows_in_their_order_and_always_the_same(count: int, size: int, seed: int) -> None:
    sample = sample_rows(range(count), size, seed=seed)
    assert sample.total == count
    assert len(sample.items) == min(size, count)
    assert sample.items == sorted(set(sample.items))
    assert sample == sample_rows(iter(range(count)), size, seed=seed)


def test_a_sample_is_from_all_over_and_not_the_head() -> None:
    items = sample_rows(range(10_000), 200).items
    assert 4000 < sum(items) / len(items) < 6000


def test_a_sample_of_no_rows_is_refused() -> None:
    with pytest.raises(UsageError, match="1 row or more"):
        sample_rows([1], 0)


# Counts of two vocabularies (docs/concepts/costs-and-cache.md); the estimate is to be near them, not equal.
@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("tiktoken is great!", 5),
        ("antidisestablishmentarianism", 6),
        ("2 + 2 = 4", 7),
        ("A man riding a wave on top of a surfboard.", 11),
        ('{"caption": "A red car parked beside a blue truck.", "kind": "swap"}', 23),
        ("お誕生日おめでとう", 9),
    ],
)
def test_tokens_are_estimated_near_what_vocabularies_count(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == pytest.approx(tokens, abs=max(1.6, 0.15 * tokens))


@given(st.text())
def test_no_text_is_estimated_at_more_tokens_than_it_has_bytes(text: str) -> None:
    assert 0 <= estimate_tokens(text) <= len(text.encode("utf-8", "surrogatepass")) + 1e-9
