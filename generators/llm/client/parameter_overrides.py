"""Changes of request parameters: the user's overrides, and another temperature for retried rows.

    {"temperature": None, "max_tokens": None, "max_completion_tokens": 2000, "reasoning_effort": "low"}

They are applied before the cache lookup: keys cover what is sent.

At temperature 0 a retried row (``--retry-failed``) would get the same answer, whatever the seed, and be billed for it.
It is therefore sent at `RESAMPLING_TEMPERATURE`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.chat_completions import RESERVED_PARAMETERS
from pairwright.generators.llm.client.messages import Request

RESAMPLING_TEMPERATURE = 0.7


def check_overrides(parameters: Mapping[str, Any]) -> None:
    """Check the user's parameters.

    Raises:
        UsageError: one is reserved for the client.
    """
    if wrong := sorted(RESERVED_PARAMETERS & parameters.keys()):
        raise UsageError(
            f"parameters: {', '.join(wrong)} cannot be overridden: the client sets them from other options."
        )


def override_parameters(request: Request, parameters: Mapping[str, Any]) -> Request:
    """Return the request with parameters replaced: name -> JSON value; None removes a parameter."""
    if not parameters:
        return request
    given = {**request.parameters, **parameters}
    return replace(request, parameters={name: value for name, value in given.items() if value is not None})


def as_resampled(request: Request) -> Request:
    """Return a request of a row that is retried; one for the first sample asks for nothing new."""
    return replace(request, resample=request.sample > 0)


def raise_temperature(request: Request) -> Request:
    """Return the request at another temperature if it is retried at temperature 0."""
    if not request.resample or request.parameters.get("temperature") != 0:
        return request
    return replace(request, parameters={**request.parameters, "temperature": RESAMPLING_TEMPERATURE})
