"""Rows that are asked anew (``--retry-failed``) are asked so that another answer can come.

At temperature 0 a server writes the same answer again, whatever the seed, and the row would fail as before and be paid
for as before. So what is asked anew at temperature 0 is asked at `RESAMPLING_TEMPERATURE`. Requests of a first attempt stay as they are,
and so does whatever has another temperature, or none.
"""

from dataclasses import replace

from pairwright.generators.llm.client.messages import Model, Reply, Request

RESAMPLING_TEMPERATURE = 0.7  # as the prompts of ours that want variety have it


def raise_temperature(request: Request) -> Request:
    """Return the request as it is asked: at another temperature where it could only bring the same answer again."""
    if not request.anew or request.parameters.get("temperature") != 0:
        return request
    return replace(request, parameters={**request.parameters, "temperature": RESAMPLING_TEMPERATURE})


class ResamplingModel:
    """A model that is asked for other answers where the first ones were no good; see `warmed`."""

    def __init__(self, model: Model) -> None:
        self._model = model

    async def ask(self, request: Request) -> Reply:
        """Ask; raises as the model does."""
        return await self._model.ask(raise_temperature(request))
