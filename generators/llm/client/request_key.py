"""Cache keys of requests: everything that shapes the answer, and nothing else.

A key covers the server (`base_url.server_id`), the model, the messages in order (role, text, images by content hash and
conversion), the parameters, the schema, and the sample index. The seed is a parameter. A key does not cover the row,
credentials, and `IGNORED_PARAMETERS`, which concern the caller and billing.

Equality:
- The order of parameters does not matter. Order inside a value does: a model fills the properties of a schema or a tool
  in the given order.
- Numbers count by value: 1, 1.0 and 1e0 are one key; true is not 1.
- Texts count by code point, without normalisation: composed and decomposed é are different tokens to a model.
- An omitted parameter differs from one with the server's default, which the server may change, and from null.

`VERSION` is part of every key. It changes when the request format on the wire changes.
"""

import math
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import orjson

from pairwright.generators.llm.client.request_errors import RequestError

VERSION = 1
IGNORED_PARAMETERS = frozenset(
    {
        "metadata",
        "prompt_cache_key",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
        # of vLLM
        "cache_salt",
        "priority",
        "request_id",
    }
)

_EXACT = 2**53  # from here on a float is ambiguous as an integer


def canonicalize(value: Any) -> Any:
    """Return a JSON value in which equal numbers have one form.

    Raises:
        RequestError: ``bad_request``: a number that JSON cannot express.
    """
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RequestError("bad_request", f"not JSON: {value}")
        return int(value) if value.is_integer() and abs(value) < _EXACT else value
    if isinstance(value, Mapping):
        return {name: canonicalize(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [canonicalize(inner) for inner in value]
    return value


def encode_json(value: Any) -> bytes:
    """Return the JSON of a value.

    Raises:
        RequestError: ``bad_request``: a text is not Unicode or a value not JSON.
    """
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise RequestError("bad_request", f"not JSON: {error}") from None


def answer_parameters(parameters: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the parameters that shape an answer, sorted by name, with canonical values.

    Raises:
        RequestError: ``bad_request``: a number that JSON cannot express.
    """
    return sorted((name, canonicalize(value)) for name, value in parameters.items() if name not in IGNORED_PARAMETERS)


def hash_request(endpoint: str, parts: Sequence[object]) -> str:
    """Return the key of a request from canonical JSON values: 128 bits as 32 hex digits.

    Raises:
        RequestError: ``bad_request``: the values are not JSON.
    """
    return blake2b(encode_json((VERSION, endpoint, *parts)), digest_size=16).hexdigest()
