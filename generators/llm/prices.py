"""Prices of tokens by model name: from the built-in table, a table of the user, or one price for every model.

    prices = Prices.of(file=Path("prices.yaml"))
    price = prices.find("gpt-4o-mini-2024-07-18")      # the price of gpt-4o-mini
    if price is not None:
        usd = price.cost(reply.usage)

The cost of a model in no table is None (*unknown*), never 0. A price is looked up by name alone, whatever the server: a
gateway may serve a model of OpenAI and pass its bill on. For your own server use the price ``0/0``.

A dated name (``-2024-07-18``, ``-20240718``, ``-0613``, ``-latest``) has the price of the longest name before the date.
Other suffixes are other models: ``gpt-4o-audio-preview`` is not ``gpt-4o``.

Not covered: service tiers, prices that depend on the length of a prompt, tax, discounts.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from pairwright.datasets.errors import ConfigError, UsageError
from pairwright.datasets.settings_files import load_settings
from pairwright.generators.llm.client.messages import Usage
from pairwright.generators.llm.image_tokens import ImageRule, find_family_rule

TABLE = Path(__file__).with_name("prices.yaml")
ANY_MODEL = "*"  # in a user's file: every model without an entry
MILLION = 1_000_000

_DATE = re.compile(r"[-@](\d{4}-\d\d-\d\d|\d{8}|\d{4}|latest)$")
_GIVEN = re.compile(r"\s*([\d.eE+-]+)\s*/\s*([\d.eE+-]+)\s*")
_Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]


@dataclass(frozen=True, slots=True)
class Price:
    """Prices of a model, in USD per million tokens.

    Attributes:
        input, output: prices of prompts and answers.
        cached: price of prompt tokens from the server's own cache; None: that of ``input``.
        batch: factor of the Batch API.
        image: rule for the tokens of an image; None: that of the model's family (`image_tokens`).
    """

    input: float
    output: float
    cached: float | None = None
    batch: float = 1.0
    image: ImageRule | None = None

    def cost(self, usage: Usage) -> float:
        """Return the USD of one answer."""
        old = min(usage.cached_tokens, usage.prompt_tokens) if self.cached is not None else 0
        spent = (usage.prompt_tokens - old) * self.input + usage.completion_tokens * self.output
        return (spent + old * (self.cached or 0.0)) / MILLION

    def most(self, prompt_tokens: float, completion_tokens: float) -> float:
        """Return the maximum USD of a number of tokens, without the server's cache."""
        return (prompt_tokens * max(self.input, self.cached or 0.0) + completion_tokens * self.output) / MILLION

    def in_batch(self) -> "Price":
        """Return the price of the model in the Batch API."""
        cached = None if self.cached is None else self.cached * self.batch
        return replace(self, input=self.input * self.batch, output=self.output * self.batch, cached=cached, batch=1.0)


class _StrictModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Image(_StrictModel):
    tiles: tuple[_Dollars, _Dollars] | None = None
    patches: tuple[_Dollars, Annotated[int, Field(ge=1)]] | None = None

    @model_validator(mode="after")
    def _one_rule(self) -> Self:
        if (self.tiles is None) == (self.patches is None):
            raise ValueError("give either tiles or patches")
        return self


class _PriceEntry(_StrictModel):
    input: _Dollars
    output: _Dollars
    cached: _Dollars | None = None
    batch: _Dollars | None = None
    image: _Image | None = None

    def price(self, batch: float) -> Price:
        image = None if self.image is None else ImageRule(self.image.tiles, self.image.patches)
        return Price(self.input, self.output, self.cached, batch if self.batch is None else self.batch, image)


class _Table(_StrictModel):
    as_of: date | None = None  # for readers of the file
    batch: _Dollars = 0.5
    models: dict[str, _PriceEntry]


class Prices:
    """Prices by the model's name."""

    def __init__(self, prices: Mapping[str, Price]) -> None:
        """Use only these prices, without the built-in table."""
        self._prices = dict(prices)

    @classmethod
    def of(cls, *, file: Path | None = None, given: str = "", batch: bool = False) -> Self:
        """Return the built-in table, with the prices of the user before it.

        Args:
            file: table of the user, which overrides the built-in one by name.
            given: one price for every model, ``INPUT/OUTPUT`` in USD per million tokens.
            batch: whether requests use the Batch API.

        Raises:
            ConfigError: the file cannot be read, or is not a table of prices.
            UsageError: both are given, or ``given`` is not a price.
        """
        if file is not None and given:
            raise UsageError("--price and --prices are mutually exclusive.")
        own = {ANY_MODEL: parse_price(given)} if given else _read(TABLE)
        if file is not None:
            own |= _read(file)
        return cls({name: price.in_batch() if batch else price for name, price in own.items()})

    def find(self, model: str) -> Price | None:
        """Return the price of a model, of its name without a date, or of any model; None: unknown."""
        price = self._prices.get(model)
        while price is None and (dated := _DATE.search(model)):
            model = model[: dated.start()]
            price = self._prices.get(model)
        return price if price is not None else self._prices.get(ANY_MODEL)

    def image_rule(self, model: str) -> ImageRule:
        """Return how a model counts images: by the rule of its price, else by that of its family.

        A price without a rule changes neither this nor the size at which images are sent.
        """
        price = self.find(model)
        return (price.image if price is not None else None) or find_family_rule(model)

    def needed(self, model: str) -> Price:
        """Return the price of a model, as a limit in USD requires.

        Raises:
            UsageError: it is unknown.
        """
        price = self.find(model)
        if price is None:
            raise UsageError(
                f"--max-cost requires the price of the model {model!r}, which is unknown. Give it in USD per million tokens, "
                "as --price INPUT/OUTPUT (of --model only; 0/0 for your own server) or in a file with --prices."
            )
        return price


def parse_price(text: str) -> Price:
    """Return the price ``INPUT/OUTPUT``, in USD per million tokens, such as ``0.15/0.6``; the Batch API costs half.

    Raises:
        UsageError: the text is not a price.
    """
    found = _GIVEN.fullmatch(text)
    try:
        given = [float(part) for part in found.groups()] if found else []
    except ValueError:
        given = []
    if len(given) != 2 or not all(0 <= part < math.inf for part in given):
        raise UsageError(f"invalid price {text!r}. Give INPUT/OUTPUT in USD per million tokens, for example 0.15/0.6.")
    return Price(given[0], given[1], batch=0.5)


def _read(path: Path) -> dict[str, Price]:
    data = load_settings(path, "Name a file of prices.")
    try:
        table = _Table.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise ConfigError(
            f"{path}: {place}: {first['msg']}. Expected: models: {{NAME: {{input: USD, output: USD}}}}, per million tokens."
        ) from None
    return {name: entry.price(table.batch) for name, entry in table.models.items()}
