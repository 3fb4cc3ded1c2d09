"""Errors of OpenAI's API, and of other providers verbatim, for the test server."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_TYPES = {
    400: "invalid_request_error",
    401: "invalid_request_error",
    404: "invalid_request_error",
    405: "invalid_request_error",
    413: "invalid_request_error",
    429: "requests",
}


class APIError(Exception):
    """Request refused with a status and ``{"error": {...}}``."""

    def __init__(  # noqa: PLR0913 - keywords, parts of one body
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        content: Any = None,
    ) -> None:
        """Create an error; ``content`` replaces OpenAI's body."""
        super().__init__(message)
        self._content = content
        self.status, self.message, self.code, self.param = status, message, code, param
        self.headers: Mapping[str, str] = headers or {}

    def body(self) -> Any:
        """Return the JSON body."""
        if self._content is not None:
            return self._content
        kind = _TYPES.get(self.status, "server_error")
        return {"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}}


_GOOGLE = "type.googleapis.com/google.rpc."
_GEMINI_QUOTA = "You exceeded your current quota, please check your plan and billing details."


@dataclass(frozen=True, slots=True)
class ProviderFault:
    """Error of a provider: HTTP status, JSON body, and meaning."""

    status: int
    body: Any
    means: str


def _openai(message: str, type_: str = "invalid_request_error", code: Any = None, param: str | None = None) -> Any:
    return {"error": {"message": message, "type": type_, "param": param, "code": code}}


def _gemini(code: int, message: str, status: str, *details: Any) -> Any:
    return [{"error": {"code": code, "message": message, "status": status, "details": list(details)}}]


def _gemini_quota(quota_id: str) -> Any:
    violation = {"quotaMetric": "generativelanguage.googleapis.com/generate_content_requests", "quotaId": quota_id}
    return _gemini(
        429,
        _GEMINI_QUOTA,
        "RESOURCE_EXHAUSTED",
        {"@type": _GOOGLE + "QuotaFailure", "violations": [violation]},
        {"@type": _GOOGLE + "RetryInfo", "retryDelay": "1s"},
    )


PROVIDER_FAULTS: Mapping[str, ProviderFault] = {
    "openai_unknown_model": ProviderFault(
        404,
        _openai("The model `x` does not exist or you do not have access to it.", code="model_not_found"),
        "OpenAI: the model is unknown",
    ),
    "openai_no_chat": ProviderFault(
        404,
        _openai(
            "This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use"
            " v1/completions?",
            param="model",
        ),
        "OpenAI: the model does not chat",
    ),
    "anthropic_no_credit": ProviderFault(
        400,
        _openai(
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or"
            " purchase credits.",
            code="invalid_request_error",
        ),
        "Anthropic: no credit",
    ),
    "gemini_bad_key": ProviderFault(
        400,
        _gemini(
            400,
            "API key not valid. Please pass a valid API key.",
            "INVALID_ARGUMENT",
            {"@type": _GOOGLE + "ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"},
        ),
        "Gemini: the key is wrong, in a list",
    ),
    "gemini_unknown_model": ProviderFault(
        404,
        _gemini(
            404, "models/x is not found for API version v1main, or is not supported for generateContent.", "NOT_FOUND"
        ),
        "Gemini: the model is unknown, in a list",
    ),
    "gemini_context": ProviderFault(
        400,
        _gemini(
            400,
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            "INVALID_ARGUMENT",
        ),
        "Gemini: the prompt is too long",
    ),
    "gemini_quota_minute": ProviderFault(
        429,
        _gemini_quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"),
        "Gemini: the quota of a minute is used up; the body says when to come back",
    ),
    "gemini_quota_day": ProviderFault(
        429,
        _gemini_quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier"),
        "Gemini: the quota of a day is used up",
    ),
    "groq_json_validate_failed": ProviderFault(
        400,
        {
            "error": {
                "message": "Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more details.",
                "type": "invalid_request_error",
                "code": "json_validate_failed",
                "failed_generation": "Sure! Here is",
            }
        },
        "Groq: the model's output does not fit the schema",
    ),
    "litellm_bad_key": ProviderFault(
        400,
        _openai("Authentication Error, No connected db.", "no_db_connection", "400"),
        "litellm: the key is wrong",
    ),
    "litellm_budget": ProviderFault(
        400,
        _openai("Budget has been exceeded! Current cost: 0.2, Max budget: 0.1", "budget_exceeded", "400"),
        "litellm: the budget is exceeded",
    ),
    "litellm_unknown_model": ProviderFault(
        400,
        _openai(
            "/chat/completions: Invalid model name passed in model=x. Call `/v1/models` to view available models for"
            " your key.",
            code="400",
            param="model",
        ),
        "litellm: the model is unknown",
    ),
    "llama_cpp_python_context": ProviderFault(
        500,
        _openai("Requested tokens (5000) exceed context window of 2048", "internal_server_error"),
        "llama-cpp-python: the prompt is too long",
    ),
    "llama_cpp_unparsed": ProviderFault(
        500,
        {
            "error": {
                "code": 500,
                "message": "The model produced output that does not match the expected peg-native format",
                "type": "server_error",
            }
        },
        "llama.cpp: the server cannot parse the model's output",
    ),
    "openrouter_no_credit": ProviderFault(
        402,
        {
            "error": {
                "message": "Insufficient credits. Add more using https://openrouter.ai/settings/credits",
                "code": 402,
            }
        },
        "OpenRouter: no credit",
    ),
    "openrouter_unknown_model": ProviderFault(
        400,
        {"error": {"message": "x/y is not a valid model ID", "code": 400}, "user_id": "user_1"},
        "OpenRouter: the model is unknown",
    ),
    "openrouter_wrapped": ProviderFault(
        400,
        {
            "error": {
                "message": "Provider returned error",
                "code": 400,
                "metadata": {
                    "raw": '{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}',
                    "provider_name": "Anthropic",
                },
            }
        },
        "OpenRouter: the error of the provider behind it (the prompt is too long) as a string",
    ),
    "tgi_context": ProviderFault(
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 2000 `inputs`"
            " tokens and 100 `max_new_tokens`",
            "error_type": "validation",
        },
        "TGI: the prompt is too long",
    ),
    "vllm_context": ProviderFault(
        400,
        {
            "error": {
                "message": "The decoder prompt (length 5000) is longer than the maximum model length of 4096. Make sure"
                " that `max_model_len` is no smaller than the number of text tokens.",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            }
        },
        "vLLM: the prompt is too long",
    ),
    "vllm_no_chat": ProviderFault(
        400,
        {
            "object": "error",
            "message": "The model does not support Chat Completions API",
            "type": "BadRequestError",
            "param": None,
            "code": 400,
        },
        "vLLM: the model does not chat",
    ),
}
