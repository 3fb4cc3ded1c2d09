"""Error bodies as providers send them, word for word, and what becomes of them."""

import json
from typing import Any

import pytest

from pairwright.generators.llm.client.chat_completions import parse_error
from pairwright.generators.llm.client.request_errors import REQUEST_ERROR_CODES


def openai(
    message: str, code: str | None = None, param: str | None = None, type_: str = "invalid_request_error"
) -> Any:
    """The form of OpenAI's errors, which most servers use."""
    return {"error": {"message": message, "type": type_, "param": param, "code": code}}


def gemini(code: int, message: str, status: str, *details: Any) -> Any:
    """Google's errors through its OpenAI-compatible endpoint: in a list."""
    return [{"error": {"code": code, "message": message, "status": status, "details": list(details)}}]


def reason(word: str) -> Any:
    """A detail of Google's that gives a reason."""
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": word, "domain": "googleapis.com"}


def quota(quota_id: str, delay: str) -> tuple[Any, Any]:
    """Details of Google's about a quota."""
    violation = {"quotaMetric": "generativelanguage.googleapis.com/generate_content_requests", "quotaId": quota_id}
    return (
        {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]},
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay},
    )


def vllm(message: str, code: int = 400, type_: str = "BadRequestError") -> Any:
    """Errors of vLLM before version 0.10."""
    return {"object": "error", "message": message, "type": type_, "param": None, "code": code}


def openrouter(code: int, message: str, **metadata: Any) -> Any:
    """OpenRouter's errors."""
    return {"error": {"message": message, "code": code, **({"metadata": metadata} if metadata else {})}, "user_id": "u"}


def litellm(code: str, message: str, type_: str | None = None, param: str | None = None) -> Any:
    """Errors of litellm's proxy, whose codes are statuses as strings."""
    return openai(message, code, param, type_)  # type: ignore[arg-type]


GEMINI_QUOTA = "You exceeded your current quota, please check your plan and billing details."
UNKNOWN_MODEL = [
    ("openai", 404, openai("The model `x` does not exist or you do not have access to it.", "model_not_found")),
    ("openai project", 403, openai("Project `p` does not have access to model `x`", "model_not_found")),
    ("azure", 404, {"error": {"code": "DeploymentNotFound", "message": "The API deployment does not exist."}}),
    ("vllm", 404, vllm("The model `x` does not exist.", 404, "NotFoundError")),
    ("vllm 0.10", 404, {"error": {"message": "The model `x` does not exist.", "type": "NotFoundError", "code": 404}}),
    ("litellm", 400, litellm("400", "/chat/completions: Invalid model name passed in model=x. Call `/v1/models`")),
    ("litellm old", 400, {"detail": {"error": "/chat/completions: Invalid model name passed in model=x"}}),
    ("openrouter", 400, openrouter(400, "x/y is not a valid model ID")),
    ("openrouter gone", 404, openrouter(404, "No endpoints found for x/y.")),
    ("gemini", 404, gemini(404, "models/x is not found for API version v1main, or is not supported.", "NOT_FOUND")),
    ("mistral", 400, {"object": "error", "message": "Invalid model: x", "type": "invalid_model", "code": "1500"}),
    ("deepseek", 400, openai("Model Not Exist", "invalid_request_error")),
    ("together", 404, openai("Unable to access model x. Please visit the list of models.", "model_not_available")),
    ("fireworks", 404, openai("Model not found, inaccessible, and/or not deployed", "NOT_FOUND")),
    ("groq retired", 400, openai("The model `x` has been decommissioned.", "model_decommissioned")),
    ("huggingface", 400, openai("The requested model 'x' does not exist", "model_not_found", "model")),
    ("anthropic", 404, {"type": "error", "error": {"type": "not_found_error", "message": "model: x"}}),
    ("ollama", 404, openai('model "x" not found, try pulling it first', type_="api_error")),
    ("cohere", 404, {"message": "model 'x' not found, make sure the correct model ID was used"}),
    ("github", 400, {"error": {"code": "unavailable_model", "message": "Unavailable model: x"}}),
    ("bedrock", 400, litellm("400", 'BedrockException - {"message":"The provided model identifier is invalid."}')),
    ("moonshot", 404, openai("Not found the model x or Permission denied", type_="resource_not_found_error")),
    ("nvidia retired", 410, {"title": "Gone", "detail": "The model 'x' has reached its end of life on 2025-01-01."}),
]
BAD_KEY = [
    ("openai", 401, openai("Incorrect API key provided: sk-x.", "invalid_api_key")),
    (
        "gemini",
        400,
        gemini(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT", reason("API_KEY_INVALID")),
    ),
    ("gemini none", 400, gemini(400, "Missing or invalid Authorization header.", "INVALID_ARGUMENT")),
    ("xai", 400, {"code": "Client specified an invalid argument", "error": "Incorrect API key provided: xa***"}),
    ("litellm", 400, litellm("400", "Authentication Error, No connected db.", "no_db_connection")),
    ("litellm with db", 401, litellm("401", "Authentication Error, Invalid proxy server token passed.", "auth_error")),
    ("openrouter", 401, openrouter(401, "No auth credentials found")),
    (
        "deepseek",
        401,
        openai("Authentication Fails (no such user)", "invalid_request_error", type_="authentication_error"),
    ),
    ("mistral", 401, {"message": "Unauthorized", "request_id": "1"}),
    ("anthropic", 401, {"type": "error", "error": {"type": "authentication_error", "message": "invalid x-api-key"}}),
    ("llama.cpp", 401, {"error": {"code": 401, "message": "Invalid API Key", "type": "authentication_error"}}),
]
NO_QUOTA = [
    ("openai", 429, openai("You exceeded your current quota.", "insufficient_quota", type_="insufficient_quota")),
    ("openai limit", 400, openai("Billing hard limit has been reached", "billing_hard_limit_reached")),
    ("anthropic", 400, openai("Your credit balance is too low to access the Anthropic API.", "invalid_request_error")),
    ("deepseek", 402, openai("Insufficient Balance", "invalid_request_error", type_="unknown_error")),
    ("openrouter", 402, openrouter(402, "This request requires more credits, or fewer max_tokens.")),
    ("openrouter key", 403, openrouter(403, "Key limit exceeded (total limit).")),
    ("litellm", 400, litellm("400", "Budget has been exceeded! Current cost: 0.2, Max budget: 0.1", "budget_exceeded")),
    ("litellm 429", 429, litellm("429", "Budget has been exceeded! Current cost: 0.2, Max budget: 0.1")),
    (
        "litellm provider",
        429,
        litellm(
            "429", "No deployments available - crossed budget: Exceeded budget for provider openai: 0.008 >= 1e-07"
        ),
    ),
    ("litellm old", 400, {"detail": "ExceededBudget: User default_user has exceeded their budget."}),
    ("huggingface", 402, {"error": "You have exceeded your monthly included credits for Inference Providers."}),
    (
        "gemini a day",
        429,
        gemini(
            429, GEMINI_QUOTA, "RESOURCE_EXHAUSTED", *quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "9s")
        ),
    ),
    (
        "anthropic limit",
        400,
        openai("You have reached your specified API usage limits. You will regain access on 2025-12-01 at 00:00 UTC."),
    ),
    (
        "xai",
        429,
        {
            "code": "Some resource has been exhausted",
            "error": "Your team t has either used all available credits or reached its monthly spending limit.",
        },
    ),
    ("gemini cap", 429, gemini(429, "Your project has exceeded its monthly spending cap.", "RESOURCE_EXHAUSTED")),
    ("gemini billing", 400, gemini(400, "Please enable billing on your project.", "FAILED_PRECONDITION")),
    ("openrouter free", 429, openrouter(429, "Rate limit exceeded: free-models-per-day. Add 10 credits.")),
    (
        "fireworks",
        412,
        openai("Account a is suspended, possibly due to reaching the monthly spending limit or failure to pay."),
    ),
    ("moonshot", 429, openai("Your account a is suspended, check your plan.", type_="exceeded_current_quota_error")),
    ("dashscope", 400, openai("Access denied, make sure your account is in good standing.", "Arrearage")),
]
UNSUPPORTED_ENDPOINT = [
    ("openai", 404, openai("This is not a chat model and thus not supported in the v1/chat/completions endpoint.")),
    (
        "openai responses",
        404,
        openai("This model is only supported in v1/responses and not in v1/chat/completions.", param="model"),
    ),
    (
        "azure",
        400,
        {"error": {"code": "OperationNotSupported", "message": "The chatCompletion operation does not work with it."}},
    ),
    ("vllm", 400, vllm("The model does not support Chat Completions API")),
    (
        "vllm template",
        400,
        vllm("As of transformers v4.44, default chat template is no longer allowed, so you must provide one"),
    ),
    ("ollama", 400, openai('"nomic-embed-text" does not support chat', type_="api_error")),
    ("groq", 400, openai("The model `whisper-large-v3` does not support chat completions")),
    ("tgi template", 422, {"error": "Template error: template not found", "error_type": "template_error"}),
    (
        "llama.cpp embeddings",
        501,
        {"error": {"code": 501, "message": "This server does not support completions.", "type": "not_supported_error"}},
    ),
    ("bedrock", 400, openai("Invocation of model ID x with on-demand throughput isn’t supported.")),
]
CONTEXT = [
    (
        "openai",
        400,
        openai("This model's maximum context length is 8192 tokens.", "context_length_exceeded", "messages"),
    ),
    (
        "llama-cpp-python",
        500,
        openai("Requested tokens (5000) exceed context window of 2048", type_="internal_server_error"),
    ),
    (
        "tgi",
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 2000 and 100",
            "error_type": "validation",
        },
    ),
    (
        "tgi inputs",
        422,
        {"error": "Input validation error: `inputs` must have less than 1024 tokens. Given: 2000", "error_type": "v"},
    ),
    ("vllm", 400, vllm("This model's maximum context length is 4096 tokens. However, you requested 5000 tokens.")),
    (
        "vllm prompt",
        400,
        {
            "error": {
                "message": "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
                "type": "BadRequestError",
                "param": None,
                "code": 400,
            }
        },
    ),
    ("vllm prompt old", 500, vllm("The prompt (total length 5000) is too long to fit into the model", 500)),
    (
        "gemini",
        400,
        gemini(
            400,
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            "INVALID_ARGUMENT",
        ),
    ),
    ("sglang", 400, vllm("The input (5000 tokens) is longer than the model's context length (4096 tokens).")),
    (
        "llama.cpp",
        400,
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size. try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 5000,
                "n_ctx": 4096,
            }
        },
    ),
    ("anthropic", 400, openai("prompt is too long: 210000 tokens > 200000 maximum")),
    (
        "mistral",
        400,
        {
            "object": "error",
            "message": "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            "type": "invalid_request_error",
            "code": "3051",
        },
    ),
    ("groq", 400, openai("Please reduce the length of the messages or completion.", "context_length_exceeded")),
    ("litellm", 400, litellm("400", "litellm.ContextWindowExceededError: litellm.BadRequestError: too big")),
    (
        "openrouter",
        400,
        openrouter(400, "Provider returned error", raw=json.dumps(openai("prompt is too long: 9 tokens > 8 maximum"))),
    ),
    ("anthropic sum", 400, openai("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000")),
    ("moonshot", 400, openai("Invalid request: Your request exceeded model token limit: 8192")),
    ("dashscope", 400, openai("Range of input length should be [1, 30720]", "invalid_parameter_error")),
    ("transformers", 500, {"detail": "Input length of input_ids is 5000, but `max_length` is set to 4096"}),
]
UNSUPPORTED = [
    (
        "openai tokens",
        400,
        openai(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            "unsupported_parameter",
            "max_tokens",
        ),
    ),
    (
        "openai value",
        400,
        openai(
            "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) is supported.",
            "unsupported_value",
            "temperature",
        ),
    ),
    ("openai unknown", 400, openai("Unrecognized request argument supplied: seed")),
    (
        "xai",
        400,
        {"code": "Client specified an invalid argument", "error": "Argument not supported on this model: stop"},
    ),
    ("groq", 400, openai("property 'seed' is unsupported")),
    (
        "mistral",
        422,
        {
            "object": "error",
            "message": {
                "detail": [
                    {"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}
                ]
            },
            "type": "invalid_request_error",
        },
    ),
    (
        "gemini",
        400,
        gemini(400, 'Invalid JSON payload received. Unknown name "seed": Cannot find field.', "INVALID_ARGUMENT"),
    ),
    ("litellm", 400, litellm("400", "litellm.UnsupportedParamsError: m does not support parameters: ['seed']")),
    ("moonshot", 400, openai("invalid temperature: only 1 is allowed for this model")),
    ("anthropic", 400, openai("`temperature` and `top_p` cannot both be specified for this model.")),
    ("llama.cpp tools", 501, {"error": {"code": 501, "message": "needs --jinja", "type": "not_supported_error"}}),
    ("strict gateway", 400, openai("This model does not know: unknown field `seed`")),
    ("gateway", 400, openai("logprobs of model m are not available: unsupported")),
    ("openrouter tools", 404, openrouter(404, "No endpoints found that support tool use.")),
    (
        "openai role",
        400,
        openai(
            "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
            "unsupported_value",
            "messages[0].role",
        ),
    ),
    ("vllm template", 400, vllm("System role not supported")),
    (
        "llama.cpp template",
        500,
        {"error": {"code": 500, "message": "System role not supported", "type": "server_error"}},
    ),
    (
        "gemini gemma",
        400,
        gemini(400, "Developer instruction is not enabled for models/gemma-3-27b-it", "INVALID_ARGUMENT"),
    ),
    (
        "tgi",
        422,
        {"error": "Input validation error: `temperature` must be strictly positive", "error_type": "validation"},
    ),
    ("gemini penalty", 400, gemini(400, "Penalty is not enabled for this model", "INVALID_ARGUMENT")),
]
OTHERS = [
    ("groq schema", "schema_failed", 400, openai("Failed to generate JSON.", "json_validate_failed")),
    ("groq tool", "schema_failed", 400, openai("Failed to call a function.", "tool_use_failed")),
    (
        "llama.cpp parser",
        "schema_failed",
        500,
        {
            "error": {
                "code": 500,
                "message": "The model produced output that does not match the expected peg-native format",
                "type": "server_error",
            }
        },
    ),
    (
        "openai reasoning",
        "token_limit",
        400,
        openai("Could not finish the message because max_tokens or model output limit was reached."),
    ),
    ("qwen stream", "unsupported_endpoint", 400, openai("This model only support stream mode, please enable it.")),
    ("image format", "unsupported", 400, openai("This model does not support image URLs with format tiff")),
    ("image size", "bad_request", 400, openai("Image is too large, at most 20 images of 5 MB")),
    ("groq large", "request_too_large", 413, openai("Request too large for model `m` on tokens per minute (TPM)")),
    ("bedrock", "rate_limited", 429, {"message": "Too many tokens, please wait before trying again."}),
    ("azure filter", "content_filter", 400, openai("The response was filtered", "content_filter")),
    ("openrouter filter", "content_filter", 403, openrouter(403, "flagged", flagged_input="a dog", reasons=["x"])),
    ("litellm model", "forbidden", 401, litellm("401", "key not allowed to access model", "key_model_access_denied")),
    ("openai tokens", "bad_request", 400, openai("max_tokens is too large: 5000. This model supports at most 4096")),
    ("openai region", "forbidden", 403, openai("Country, region, or territory not supported")),
    ("openai server", "server_error", 500, openai("The server had an error", type_="server_error")),
    ("groq restricted", "forbidden", 400, openai("Organization has been restricted.", "organization_restricted")),
    ("openrouter data", "forbidden", 404, openrouter(404, "No endpoints found matching your data policy.")),
    ("anthropic disabled", "forbidden", 400, openai("This organization has been disabled.")),
    (
        "gemini region",
        "forbidden",
        400,
        gemini(400, "User location is not supported for the API use.", "FAILED_PRECONDITION"),
    ),
    ("openai minute", "rate_limited", 429, openai("Rate limit reached for m: Limit 10000, Used 9000, Requested 2000.")),
    ("mistral capacity", "rate_limited", 429, {"message": "Service tier capacity exceeded for this model."}),
]
NO_IMAGES = [
    ("openai", 400, openai("Invalid content type. image_url is only supported by certain models.", "x")),
    ("openrouter", 404, openrouter(404, "No endpoints found that support image input")),
    ("vllm", 400, vllm("Qwen3-8B is not a multimodal model")),
    ("vllm limit", 400, vllm("At most 0 image(s) may be provided in one prompt.")),
    ("llama.cpp", 500, openai("image input is not supported - hint: you may need to provide the mmproj")),
    ("deepseek", 400, openai("Failed to deserialize: messages[0]: unknown variant `image_url`, expected `text`")),
    ("gateway", 400, openai("This model does not support image inputs")),
]
# Recorded from vLLM 0.32.0: status, message, type, param; the code is the status.
VLLM = [
    ("unknown_model", 404, "The model `other` does not exist. Valid aliases: tiny.", "NotFoundError", "model"),
    (
        "context_too_long",
        400,
        (
            "This model's maximum context length is 16384 tokens. However, your prompt contains at least 16385 input tokens,"
            " which exceeds this limit even without any output tokens. Please reduce the length of the input prompt."
            " (parameter=input_tokens, value=16385)"
        ),
        "BadRequestError",
        "input_tokens",
    ),
    (
        "context_too_long",
        400,
        (
            "max_tokens=20000 cannot be greater than max_model_len=16384. Please request fewer output tokens."
            " (parameter=max_tokens, value=20000)"
        ),
        "BadRequestError",
        "max_tokens",
    ),
    (
        "bad_request",
        400,
        "Requested sample logprobs of 30, which is greater than max allowed: 20 (parameter=logprobs, value=30)",
        "BadRequestError",
        "logprobs",
    ),
    (
        "bad_request",
        400,
        (
            "1 validation error:\n  {'type': 'float_parsing', 'loc': 'body.temperature', 'msg': 'Input should be a valid number,"
            " unable to parse string as a number', 'input': 'a'}"
        ),
        "Bad Request",
        "body.temperature",
    ),
    ("bad_request", 400, 'Grammar error: Unimplemented keys: ["uniqueItems"]', "BadRequestError", None),
    ("unsupported", 400, 'tool_choice=function "f" requires --tool-call-parser to be set', "BadRequestError", None),
    ("no_image_input", 400, "tiny is not a multimodal model", "BadRequestError", None),
    (
        "bad_image",
        400,
        "Failed to load image: cannot identify image file <_io.BytesIO object>",
        "BadRequestError",
        None,
    ),
    (
        "bad_image",
        422,
        "Failed to fetch media from URL: HTTP 404 error (parameter=image_url, value=http://127.0.0.1:8711/x.png)",
        "UnprocessableEntityError",
        "image_url",
    ),
    (
        "bad_image",
        500,
        "Cannot connect to host nosuch.invalid:80 ssl:default [Name or service not known]",
        "InternalServerError",
        None,
    ),
    (
        "bad_image",
        500,
        "Cannot load local files without `--allowed-local-media-path`.",
        "InternalServerError",
        None,
    ),
    (
        "server_error",
        500,
        "EngineCore encountered an issue. See stack trace (above) for the root cause.",
        "InternalServerError",
        None,
    ),
]
CASES = [
    *(
        (
            code,
            f"vllm 0.32 {message[:30]}",
            status,
            {"error": {"message": message, "type": kind, "param": param, "code": status}},
        )
        for code, status, message, kind, param in VLLM
    ),
    (
        "server_error",
        "litellm before an image",
        500,
        litellm("500", "litellm.InternalServerError: Cannot connect to host api.openai.com:443"),
    ),
    *(("no_image_input", *each) for each in NO_IMAGES),
    *(("unknown_model", *each) for each in UNKNOWN_MODEL),
    *(("bad_key", *each) for each in BAD_KEY),
    *(("no_quota", *each) for each in NO_QUOTA),
    *(("unsupported_endpoint", *each) for each in UNSUPPORTED_ENDPOINT),
    *(("context_too_long", *each) for each in CONTEXT),
    *(("unsupported", *each) for each in UNSUPPORTED),
    *((word, provider, status, body) for provider, word, status, body in OTHERS),
]


@pytest.mark.parametrize(
    ("word", "provider", "status", "body"), CASES, ids=[f"{word}: {provider}" for word, provider, *_ in CASES]
)
def test_each_providers_error_is_recognised(word: str, provider: str, status: int, body: Any) -> None:
    failure = parse_error(status, {}, json.dumps(body).encode())
    assert (failure.code, failure.status) == (word, status), provider
    assert failure.detail.startswith(f"{status}: ")


def test_errors_of_the_account_and_of_the_model_stop_the_run_and_those_of_a_row_do_not() -> None:
    fatal = {word for word, *_ in CASES if REQUEST_ERROR_CODES[word].kind == "fatal"}
    assert fatal == {"unknown_model", "bad_key", "no_quota", "unsupported_endpoint", "forbidden", "no_image_input"}
    assert (
        REQUEST_ERROR_CODES["context_too_long"].kind
        == REQUEST_ERROR_CODES["unsupported"].kind
        == REQUEST_ERROR_CODES["schema_failed"].kind
        == "row"
    )


def test_a_quota_per_minute_is_waited_for_as_the_body_says() -> None:
    body = gemini(429, GEMINI_QUOTA, "RESOURCE_EXHAUSTED", *quota("GenerateRequestsPerMinutePerProject", "36.5s"))
    failure = parse_error(429, {}, json.dumps(body).encode())
    assert (failure.code, failure.retry_after) == ("rate_limited", 36.5)


def test_a_wrapped_providers_error_is_shown() -> None:
    body = openrouter(400, "Provider returned error", raw=json.dumps(openai("Argument not supported: stop")))
    assert parse_error(400, {}, json.dumps(body).encode()).detail == "400: Argument not supported: stop"
    body = openrouter(400, "Provider returned error", raw="upstream says no")
    assert parse_error(400, {}, json.dumps(body).encode()).detail == "400: upstream says no"
