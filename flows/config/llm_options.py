"""Settings of a language model: the one definition behind the config section ``llm`` and the command line.

`config.llm_section.LLMSection` adds the checks, `cli.options.model.ModelOptions` the options of a single run. This module
does not import pydantic, which the command line loads only when it is needed.
"""

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt
from typing_extensions import Doc

ModelName = Annotated[str, Doc("Model name at the server (Azure: deployment), or local:FOLDER.")]
Parameters = Annotated[
    dict[str, Any],
    Doc("Request parameters that replace those of the prompts, such as temperature: 0; null removes one."),
]


@dataclass(frozen=True)
class LLMOptions:
    """Model, server, limits and prices; each text is the help of the option and the documentation of the key."""

    model: ModelName = ""
    base_url: Annotated[str, Doc("URL of an OpenAI-compatible server (default: OPENAI_BASE_URL, else OpenAI).")] = ""
    endpoint: Annotated[str, Doc("Name for the server in cache keys, in place of its URL.")] = ""
    transport: Annotated[
        Literal["auto", "direct", "sdk"], Doc("HTTP transport (auto: the SDK for Azure, else direct).")
    ] = "auto"
    structured: Annotated[
        Literal["auto", "json_schema", "tool", "json"],
        Doc("How JSON is requested: schema, tool call, or in the prompt (auto: what the server supports)."),
    ] = "auto"
    max_concurrency: Annotated[int, Ge(1), Doc("Maximum number of concurrent requests.")] = 64
    requests_per_minute: Annotated[int, Ge(0), Doc("Requests per minute (0 = unlimited).")] = 0
    tokens_per_minute: Annotated[int, Ge(0), Doc("Tokens per minute (0 = unlimited).")] = 0
    timeout: Annotated[float, Gt(0), Doc("Seconds until an answer must be complete.")] = 120.0
    max_retries: Annotated[int, Ge(0), Doc("Retries of a request after a transient error.")] = 6
    patience: Annotated[float, Gt(0), Doc("Seconds to keep retrying while the server is unreachable.")] = 300.0
    max_cost: Annotated[float | None, Gt(0), Doc("Stop at this cost in USD; finished rows are kept.")] = None
    max_requests: Annotated[int | None, Ge(1), Doc("Stop after this many answers; finished rows are kept.")] = None
    prices: Annotated[str, Doc("YAML file of prices that extend or replace the built-in ones.")] = ""
    price: Annotated[str, Doc("Price as IN/OUT, in USD per million tokens; 0/0 for your own server.")] = ""
    parameters: Parameters = field(default_factory=dict)
    prompts: Annotated[str, Doc("Folder of prompt files that replace built-in prompts of the same name.")] = ""
    image_edge: Annotated[
        int, Ge(0), Doc("Pixels of the longer edge of images that are sent (0 = what the model sees, up to 1024).")
    ] = 0
    image_detail: Annotated[
        Literal["auto", "low", "high"], Doc("Detail of images that are sent; low: 512 pixels, OpenAI's low rate.")
    ] = "auto"
    image_urls: Annotated[bool, Doc("Send web addresses of images; the server downloads them.")] = False
    cache: Annotated[
        str,
        Doc("SQLite response cache on a local disk (default: llm-cache.sqlite in the build or next to the output)."),
    ] = ""
    batch: Annotated[bool, Doc("Use OpenAI's Batch API: half the price, answers within a day.")] = False


# Settings that only the client of a server uses.
SERVER_ONLY_KEYS = (
    *("base_url", "endpoint", "transport", "requests_per_minute", "tokens_per_minute", "timeout", "max_retries"),
    *("patience", "max_cost", "prices", "price", "batch", "image_urls"),
)
