"""The cache key of a request: everything that shapes the answer, and nothing else.

In the key: the server (`address.server_id`), the model, the messages in order (role, text, images by the hash of their content and the
form in which they are sent), the parameters, the schema, and the sample number. The seed is a parameter. Not in the
key: which row asks, what authorises, and the parameters of `IGNORED_PARAMETERS`, which only say who
asks and how it is billed.

What counts as the same:
- The order of parameters does not matter. Inside a value order is kept, since a model fills the properties of a
  schema or of a tool in the order in which they stand.
- Numbers count by value: 1, 1.0 and 1e0 are one key, as they are one JSON number; true is not 1.
- Texts count by code point and are not normalised: the composed and the decomposed é are different tokens to a model.
- A parameter left out and one given with the server's default are two keys: the default is the server's to change.
  So are one left out and one that is null.

`VERSION` stands in every key. It changes when the wire form of the same request changes, so that old answers are not
taken for new ones.
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

_EXACT = 2**53  # from here on floats stand for more than one integer


def canonicalize(value: Any) -> Any:
    """Return a JSON value in which equal numbers are written alike.

    Raises:
        Failure: ``bad_request`` for a number that JSON cannot write.
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


def canonical_json(value: Any) -> bytes:
    """Return the JSON of a canonical value.

    Raises:
        Failure: ``bad_request`` when a text is not Unicode or a value not JSON.
    """
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise RequestError("bad_request", f"not JSON: {error}") from None


def answer_parameters(parameters: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the parameters that shape an answer, sorted by name, their values canonical.

    Raises:
        Failure: ``bad_request`` for a number that JSON cannot write.
    """
    return sorted((name, canonicalize(value)) for name, value in parameters.items() if name not in IGNORED_PARAMETERS)


def hash_request(endpoint: str, parts: Sequence[object]) -> str:
    """Return the key of a request that ``parts``, canonical JSON values, make up: 128 bits as 32 hex digits.

    Raises:
        Failure: ``bad_request`` when they cannot be written as JSON.
    """
    return blake2b(canonical_json((VERSION, endpoint, *parts)), digest_size=16).hexdigest()
