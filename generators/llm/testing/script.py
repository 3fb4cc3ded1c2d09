"""Scripts of the test server: rules for answers, faults, latency, limits; from YAML, JSON or keyword arguments.

    latency_ms: 100
    faults: {429: 0.01, reset: 0.005}
    rules:
      - contains: dog
        text: A cat sits on the mat.
      - matches: "^count"
        json: {count: 3}
      - model: slow-*
        fault: 429
        times: 1          # only the first time that a body comes

The first rule whose conditions all hold gives the answer; without one, it is made from the request. Unknown keys are
errors.
"""

import fnmatch
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from pairwright.datasets.errors import ConfigError, UsageError
from pairwright.datasets.settings_files import load_settings
from pairwright.datasets.suggestions import suggest_alternatives
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.chat_request import ChatRequest
from pairwright.generators.llm.testing.faults import check_faults, describe_fault

Feature = Literal[
    "json_schema",
    "json_object",
    "tools",
    "system",
    "temperature",
    "top_p",
    "max_tokens",
    "max_completion_tokens",
    "seed",
    "stop",
    "logprobs",
    "reasoning_effort",
]


class _StrictSetting(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class ScriptedUsage(_StrictSetting):
    """Token counts of an answer."""

    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)


class AnswerRule(_StrictSetting):
    """Conditions, all of which must hold, and the answer."""

    contains: str = Field("", description="in the last user message")
    matches: str = Field("", description="a regular expression found in the last user message")
    model: str = Field("", description="the model's name, * and ? as wildcards")
    times: int = Field(0, ge=0, description="only the first times that the same body comes (0 = always)")
    text: str | None = None
    json_: Any = Field(None, alias="json", description="sent as text, or as the arguments of the tool call")
    refusal: str = ""
    finish_reason: str = ""
    usage: ScriptedUsage | None = None
    fault: str = ""

    @field_validator("fault", mode="before")
    @classmethod
    def _yaml_reads_429_as_a_number(cls, value: object) -> object:
        return str(value) if isinstance(value, int) else value

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.text is not None and self.json_ is not None:
            raise ValueError("`text` and `json` are mutually exclusive")
        try:
            re.compile(self.matches)
        except re.error as error:
            raise ValueError(f"{self.matches!r} is not a regular expression: {error}") from None
        if self.fault and describe_fault(self.fault)[0] == "batch":
            raise ValueError(f"{self.fault} is a fault of batches; set its rate under `faults`")
        return self

    def holds(self, request: ChatRequest) -> bool:
        """Return whether the conditions hold for a request."""
        return (
            self.contains in request.user
            and (not self.matches or re.search(self.matches, request.user) is not None)
            and (not self.model or fnmatch.fnmatchcase(request.model, self.model))
            and (not self.times or request.attempt < self.times)
        )

    def answer(self, made: ServerAnswer) -> ServerAnswer:
        """Return the rule's answer, with the text of ``made`` if it has none."""
        text = orjson.dumps(self.json_).decode() if self.json_ is not None else self.text
        if text is None:
            text = "" if self.refusal else made.text
        usage = (self.usage.prompt_tokens, self.usage.completion_tokens) if self.usage else None
        return ServerAnswer(text, self.refusal, self.finish_reason, usage, self.fault)

    @property
    def has_no_answer(self) -> bool:
        """Whether the text is made from the request."""
        return self.text is None and self.json_ is None and not self.refusal


class ServerScript(_StrictSetting):
    """Behaviour of a server; settings can be changed while it runs."""

    rules: tuple[AnswerRule, ...] = ()
    faults: dict[str, float] = Field({}, description="rate by kind; files/KIND and batches/KIND for those endpoints")
    seed: int = Field(0, description="of faults, jitter and the order of batch results")
    latency_ms: float = Field(0.0, ge=0, description="before each answer to a chat request")
    jitter_ms: float = Field(0.0, ge=0, description="up to so much is added to the latency")
    max_concurrency: int = Field(
        0, ge=0, description="concurrent chat requests; further ones get a 429 (0 = unlimited)"
    )
    requests_per_minute: int = Field(0, ge=0, description="0 = unlimited")
    tokens_per_minute: int = Field(0, ge=0, description="prompt tokens and max_tokens (0 = unlimited)")
    burst_s: float = Field(60.0, gt=0, description="seconds' worth of a limit in a burst")
    retry_after_header: bool = Field(default=True, description="whether a limit's 429 has Retry-After")
    ratelimit_headers: bool = Field(default=True, description="whether answers carry x-ratelimit-*")
    retry_after_s: float = Field(1.0, ge=0, description="Retry-After of an injected 429 and of max_concurrency")
    hang_s: float = Field(60.0, gt=0, description="how long the fault timeout keeps a connection open")
    drip_s: float = Field(5.0, gt=0, description="how long the fault drip takes for a body")
    models: tuple[str, ...] = Field((), description="known models (empty = any)")
    without: tuple[Feature, ...] = Field((), description="features and parameters that are refused with a 400")
    batch_delay_s: float = Field(0.0, ge=0, description="until a batch is done")
    batch_polls: int = Field(1, ge=0, description="retrievals until a batch is done")
    batch_lines_max: int = Field(50_000, ge=1, description="a batch of more lines fails")
    batch_tokens_max: int = Field(
        0, ge=0, description="prompt tokens queued in all batches; further batches fail (0 = unlimited)"
    )

    @field_validator("faults", mode="before")
    @classmethod
    def _yaml_reads_429_as_a_number(cls, value: object) -> object:
        return {str(kind): rate for kind, rate in value.items()} if isinstance(value, Mapping) else value

    @field_validator("faults")
    @classmethod
    def _faults_exist(cls, value: dict[str, float]) -> dict[str, float]:
        try:
            check_faults(value)
        except UsageError as error:
            raise ValueError(str(error)) from None
        return value

    def changed(self, changes: Mapping[str, Any], *, where: str) -> "ServerScript":
        """Return the script with some settings replaced.

        Raises:
            ConfigError: unknown key or invalid value.
        """
        return parse_script({**self.model_dump(by_alias=True), **changes}, where=where)


def parse_script(data: Mapping[str, Any], *, where: str) -> ServerScript:
    """Validate settings; ``where`` is their origin in messages.

    Raises:
        ConfigError: unknown key or invalid value.
    """
    try:
        return ServerScript.model_validate(data)
    except ValidationError as error:
        raise ConfigError("\n".join(f"{where}: {line}" for line in _lines(error))) from None


def load_script(path: Path) -> ServerScript:
    """Read a script from a YAML or JSON file.

    Raises:
        ConfigError: the file cannot be read or is invalid.
    """
    return parse_script(load_settings(path, "Write for example `latency_ms: 100`."), where=str(path))


def _lines(error: ValidationError) -> Iterable[str]:
    for problem in error.errors():
        place = ".".join(str(step) for step in problem["loc"])
        if problem["type"] == "extra_forbidden":
            fields = (AnswerRule if "rules" in place else ServerScript).model_fields
            known = [field.alias or name for name, field in fields.items()]
            yield f"unknown key `{place}`. {suggest_alternatives([str(problem['loc'][-1])], known)}."
        else:
            yield f"`{place}`: {problem['msg'].removeprefix('Value error, ').rstrip('.')}."
