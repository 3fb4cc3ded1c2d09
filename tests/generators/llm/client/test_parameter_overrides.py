"""The user's own parameters replace the prompts'."""

from collections.abc import Mapping

import pytest

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.messages import Message, Request
from pairwright.generators.llm.client.parameter_overrides import check_overrides, override_parameters


def sent(prompts: Mapping[str, object], users: Mapping[str, object]) -> dict[str, object]:
    """Return the parameters that reach the model."""
    request = override_parameters(Request((Message("user", "Is it?"),), "small", prompts, row="7"), users)
    assert request.row == "7"
    return dict(request.parameters)


def test_a_given_parameter_replaces_the_prompts() -> None:
    assert sent({"temperature": 1.5, "max_tokens": 9}, {"temperature": 0}) == {"temperature": 0, "max_tokens": 9}


def test_none_removes_the_prompts_parameter() -> None:
    users = {"max_tokens": None, "max_completion_tokens": 99}
    assert sent({"max_tokens": 9}, users) == {"max_completion_tokens": 99}


def test_reserved_parameters_cannot_be_set() -> None:
    with pytest.raises(UsageError, match="response_format"):
        check_overrides({"response_format": {"type": "json_object"}})
