"""The user's own parameters replace the prompts'."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.messages import Message, Reply, Request, Usage
from pairwright.generators.llm.client.parameter_overrides import ParameterOverrides


@dataclass
class Recording:
    """A model that keeps what it is asked."""

    seen: list[Request] = field(default_factory=list)

    async def ask(self, request: Request) -> Reply:
        """Say yes."""
        self.seen.append(request)
        return Reply("yes", "stop", "", Usage(1, 1), "small")


def sent(prompts: Mapping[str, object], users: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters that reach the model."""
    model = Recording()
    request = Request((Message("user", "Is it?"),), "small", prompts, row="7")
    asyncio.run(ParameterOverrides(model, users).ask(request))
    assert model.seen[0].row == "7"
    return dict(model.seen[0].parameters)


def test_a_given_parameter_replaces_the_prompts() -> None:
    assert sent({"temperature": 1.5, "max_tokens": 9}, {"temperature": 0}) == {"temperature": 0, "max_tokens": 9}


def test_none_removes_the_prompts_parameter() -> None:
    users = {"max_tokens": None, "max_completion_tokens": 99}
    assert sent({"max_tokens": 9}, users) == {"max_completion_tokens": 99}


def test_reserved_parameters_cannot_be_set() -> None:
    with pytest.raises(UsageError, match="response_format"):
        ParameterOverrides(Recording(), {"response_format": {"type": "json_object"}})
