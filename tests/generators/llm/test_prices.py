"""What tokens cost, and what is said when nobody knows."""

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pairwright.datasets.errors import ConfigError, UsageError
from pairwright.generators.llm.client.messages import Usage
from pairwright.generators.llm.image_tokens import ImageRule
from pairwright.generators.llm.prices import Price, Prices, parse_price

COUNTS = st.integers(0, 10**7)


def table(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_known_model_has_the_price_of_our_table() -> None:
    prices = Prices.of()
    price = prices.find("gpt-4o-mini")
    assert price is not None
    assert (price.input, price.cached, price.output) == (0.15, 0.075, 0.6)


@pytest.mark.parametrize(
    ("dated", "model"),
    [
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4-0613", "gpt-4"),
        ("o3-latest", "o3"),
        ("gpt-5@20250807", "gpt-5"),
    ],
)
def test_a_dated_name_costs_what_its_model_does(dated: str, model: str) -> None:
    assert Prices.of().find(dated) == Prices.of().find(model) is not None


def test_a_dated_name_with_a_price_of_its_own_keeps_it() -> None:
    price = Prices.of().find("gpt-4o-2024-05-13")
    assert price is not None
    assert (price.input, price.output) == (5, 15)


@pytest.mark.parametrize("model", ["gpt-4o-audio-preview", "gpt-4o-mini-tts", "gpt-5-ultra", "o33", "llama", "", "*"])
def test_another_model_has_no_price_rather_than_a_neighbours(model: str) -> None:
    assert Prices.of().find(model) is None


def test_a_users_file_goes_before_our_table_name_by_name(tmp_path: Path) -> None:
    path = table(tmp_path / "p.yaml", "models: {gpt-4o: {input: 1, output: 2}, llama-3: {input: 0, output: 0}}")
    prices = Prices.of(file=path)
    assert prices.find("gpt-4o") == Price(1, 2, batch=0.5)
    assert prices.find("llama-3") == Price(0, 0, batch=0.5)
    assert prices.find("gpt-4.1") == Prices.of().find("gpt-4.1")
    assert prices.find("other") is None


def test_a_star_in_a_users_file_prices_what_has_no_price_of_its_own(tmp_path: Path) -> None:
    prices = Prices.of(file=table(tmp_path / "p.yaml", 'models: {"*": {input: 3, output: 4}}'))
    assert prices.find("anything") == Price(3, 4, batch=0.5)
    assert prices.find("gpt-4o-mini") == Prices.of().find("gpt-4o-mini")


def test_a_price_given_outright_holds_for_every_model() -> None:
    prices = Prices.of(given="0.15 / 0.6")
    assert prices.find("my-own") == prices.find("gpt-5-pro") == Price(0.15, 0.6, batch=0.5)


def test_a_users_price_does_not_change_how_images_are_counted_and_sent(tmp_path: Path) -> None:
    """Else a plan with the same price would be twelve times lower, and all images be sent, and billed, again."""
    for model in ("gpt-4o-mini", "gpt-4o-mini-2024-07-18", "qwen2.5-vl-7b"):
        rule = Prices.of().image_rule(model)
        assert Prices.of(given="0.15/0.6").image_rule(model) == rule
        file = table(tmp_path / "p.yaml", f"models: {{{model}: {{input: 1, output: 2}}, '*': {{input: 3, output: 4}}}}")
        assert Prices.of(file=file).image_rule(model) == rule
    own = table(tmp_path / "own.yaml", "models: {gpt-4o: {input: 1, output: 2, image: {tiles: [1, 2]}}}")
    assert Prices.of(file=own).image_rule("gpt-4o").tiles == (1, 2)


def test_a_server_of_ones_own_is_free_when_the_user_says_so() -> None:
    price = Prices.of(given="0/0").needed("qwen")
    assert price.cost(Usage(1000, 1000)) == 0.0


@pytest.mark.parametrize("text", ["", "1", "1/", "a/b", "-1/2", "1/2/3", "nan/1", "inf/1", "1e999/1", "--/1"])
def test_what_is_no_price_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match=r"0\.15/0\.6"):
        parse_price(text)


def test_prices_given_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="mutually exclusive"):
        Prices.of(file=tmp_path / "p.yaml", given="1/2")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models: {m: {input: -1, output: 2}}", "models.m.input"),
        ("models: {m: {input: 1}}", "models.m.output"),
        ("models: {m: {input: 1, output: 2, outptu: 3}}", "models.m.outptu"),
        ("models: {m: {input: '1', output: 2}}", "models.m.input"),
        ("models: {m: {input: true, output: 2}}", "models.m.input"),
        ("models: {m: {input: .nan, output: 2}}", "models.m.input"),
        ("models: {m: {input: .inf, output: 2}}", "models.m.input"),
        ("models: {m: {input: 1, output: 2, image: {}}}", "either tiles or patches"),
        ("m: {input: 1, output: 2}", "models"),
        ("", "contains no settings"),
        ("models: {", "not YAML"),
        ("models: {}\nmodels: {}", "duplicate key `models`"),
    ],
)
def test_a_wrong_table_is_refused_by_file_and_place(tmp_path: Path, text: str, said: str) -> None:
    path = table(tmp_path / "mine.yaml", text)
    with pytest.raises(ConfigError, match=r"mine\.yaml") as caught:
        Prices.of(file=path)
    assert said in str(caught.value)


def test_a_missing_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Prices.of(file=tmp_path / "none.yaml")


def test_a_limit_in_dollars_without_a_price_says_how_to_give_one() -> None:
    with pytest.raises(UsageError, match=r"'llama'.*--price INPUT/OUTPUT \(of --model only.*--prices"):
        Prices.of().needed("llama")


def test_cached_tokens_are_a_part_of_the_prompt_and_cost_less() -> None:
    price = Price(2.0, 8.0, cached=0.5)
    assert price.cost(Usage(1_000_000, 500_000, 400_000)) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 4)
    assert Price(2.0, 8.0).cost(Usage(1_000_000, 0, 400_000)) == pytest.approx(2.0)


def test_the_batch_api_costs_half() -> None:
    usage = Usage(1000, 500, 300)
    once, batched = Prices.of().needed("gpt-4o"), Prices.of(batch=True).needed("gpt-4o")
    assert batched.cost(usage) == pytest.approx(once.cost(usage) / 2)
    assert Prices.of(given="1/2", batch=True).needed("m") == Price(0.5, 1.0)


@given(COUNTS, COUNTS, COUNTS)
def test_no_answer_costs_more_than_its_tokens_may(prompt: int, completion: int, cached: int) -> None:
    price = Price(1.25, 10.0, cached=0.125)
    assert 0 <= price.cost(Usage(prompt, completion, cached)) <= price.most(prompt, completion) * (1 + 1e-12)


@pytest.mark.parametrize(
    ("rule", "size", "tokens"),
    [
        (ImageRule(tiles=(85, 170)), (1024, 1024), 85 + 4 * 170),
        (ImageRule(tiles=(85, 170)), (2048, 4096), 85 + 6 * 170),
        (ImageRule(tiles=(85, 170)), (200, 100), 85 + 170),
        (ImageRule(patches=(1.0, 1536)), (1024, 1024), 1024),
        (ImageRule(patches=(1.62, 1536)), (1800, 2400), 2489),
        (ImageRule(), (280, 280), 102),
        (ImageRule(squares=(28, 4)), (1008, 683), 36 * 24 + 2),  # 683 is rounded to 672
        (ImageRule(squares=(28, 4)), (40, 30), 6 + 2),  # enlarged to 84 x 56
        (ImageRule(squares=(32, 64)), (224, 224), 64 + 2),
    ],
)
def test_images_are_counted_as_the_makers_examples_say(rule: ImageRule, size: tuple[int, int], tokens: int) -> None:
    assert rule.tokens(*size) == tokens


@given(st.integers(1, 3000), st.integers(1, 3000))
def test_squares_are_counted_as_qwens_processor_resizes(width: int, height: int) -> None:
    resize = pytest.importorskip("transformers.models.qwen2_vl.image_processing_pil_qwen2_vl").smart_resize
    assume(max(width, height) <= 200 * min(width, height))
    high, wide = resize(height, width, factor=28, min_pixels=4 * 28 * 28, max_pixels=2**40)
    assert ImageRule(squares=(28, 4)).tokens(width, height) == high * wide // 28**2 + 2


@pytest.mark.parametrize(
    ("model", "tokens"),
    [
        ("gpt-4o-mini", 2833 + 4 * 5667),
        ("openai/gpt-4o-mini", 2833 + 4 * 5667),
        ("azure/my-gpt-4o-mini-2024-07-18", 2833 + 4 * 5667),
        ("ft:gpt-4o-2024-08-06:org::id", 85 + 4 * 170),
        ("chatgpt-4o-latest", 85 + 4 * 170),
        ("gpt-5-chat-latest", 70 + 4 * 140),
        ("openai/gpt-5-mini", 922),  # 1.2 x 32 x 24
        ("gpt-5.4-nano", 922),
        ("openai/o3", 75 + 4 * 150),
    ],
)
def test_a_gateways_name_of_a_model_counts_images_as_the_model(model: str, tokens: int) -> None:
    """Else a plan for gpt-4o-mini through a gateway would be 25 times too low."""
    assert Prices.of().image_rule(model).tokens(1024, 768) == tokens


@given(
    st.sampled_from(
        [ImageRule(), ImageRule(tiles=(85, 170)), ImageRule(patches=(1.62, 1536)), ImageRule(squares=(28, 4))]
    ),
    st.integers(1, 5000),
    st.integers(1, 5000),
)
def test_an_image_takes_no_more_than_the_most_of_its_edge(rule: ImageRule, width: int, height: int) -> None:
    assert rule.tokens(width, height) <= rule.most(max(width, height))
