"""The user's own parameters, in place of the prompts': for models that refuse one, or want another.

    {"temperature": None, "max_tokens": None, "max_completion_tokens": 2000, "reasoning_effort": "low"}

Requests are changed before they are looked up in the cache: what is sent is what is kept.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.chat_completions import RESERVED_PARAMETERS
from pairwright.generators.llm.client.messages import Model, Reply, Request

RESAMPLING_TEMPERATURE = 0.7


def override_parameters(request: Request, parameters: Mapping[str, Any]) -> Request:
    """Return the request with these parameters: name -> JSON value; None leaves the prompt's own out."""
    given = {**request.parameters, **parameters}
    return replace(request, parameters={name: value for name, value in given.items() if value is not None})


class ParameterOverrides:
    """A model whose requests carry these parameters; see `override_parameters`.

    Args:
        model: asked.
        parameters: name -> JSON value.

    Raises:
        UsageError: one would change what the client relies on.
    """

    def __init__(self, model: Model, parameters: Mapping[str, Any]) -> None:
        if wrong := sorted(RESERVED_PARAMETERS & parameters.keys()):
            raise UsageError(f"parameters: {', '.join(wrong)} cannot be set. Other settings stand for what they do.")
        self._model, self._parameters = model, dict(parameters)

    async def ask(self, request: Request) -> Reply:
        """Ask with the parameters; raises as the model does."""
        return await self._model.ask(override_parameters(request, self._parameters))


def raise_temperature(request: Request) -> Request:
    """Return the request as it is asked: at another temperature where it could only bring the same answer again."""
    if not request.resample or request.parameters.get("temperature") != 0:
        return request
    return replace(request, parameters={**request.parameters, "temperature": RESAMPLING_TEMPERATURE})


class ResamplingModel:
    """A model that is asked for other answers where the first ones were no good; see `warmed`."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def ask(self, request: Request) -> Reply:
        """Ask; raises as the model does."""
        return await self._model.ask(raise_temperature(request))
