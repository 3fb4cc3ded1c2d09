"""Error bodies of providers in one form, and signatures that classify them.

OpenAI sends ``{"error": {"message", "type", "param", "code"}}``. Others wrap that in a list (Gemini), send ``error`` as a
string (TGI, xAI), a ``detail`` (FastAPI, transformers), a message that is an object (Mistral), or another provider's
error inside their own (OpenRouter). Statuses differ as well: an unknown model is a 404, a 400 or a 403. A signature
matches codes, message and parameter within a set of statuses. The first matching row of `ERROR_SIGNATURES` counts; if
none matches, the status decides (`BY_STATUS`).
"""

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

_DEPTH = 5  # nested errors
_DURATION = re.compile(r"(\d+(?:\.\d+)?)s")

# What a page has besides its words: comments, styles and scripts, which may be cut off, and tags.
_MARKUP = re.compile(r"(?is)<!--.*?(?:-->|\Z)|<(style|script)\b.*?(?:</\1>|\Z)|<[^>]*>")

_ANY = range(300, 600)
_CLIENT = range(400, 500)
_MODEL = (400, 403, 404, 410, 422)
_LENGTH = (400, 413, 422, 500)


@dataclass(frozen=True, slots=True)
class ProviderError:
    """Error body in a common form.

    Attributes:
        status: HTTP status.
        codes: everything that classifies it: codes, types, reasons, quota ids, names of metadata.
        param: name of the offending request part; empty if not given.
        message: of the provider; may contain secrets.
        retry_after: seconds, if the body gives them.
    """

    status: int
    codes: frozenset[str] = frozenset()
    param: str = ""
    message: str = ""
    retry_after: float | None = None


@dataclass(frozen=True, slots=True)
class ErrorSignature:
    """Pattern of one kind of error: a code, the message or the parameter matches, with one of the statuses.

    Attributes:
        code: of `REQUEST_ERROR_CODES`.
        codes: regular expression that a code matches in full.
        message: regular expression found in the message.
        param: regular expression that the parameter matches in full.
        statuses: in which it counts.
    """

    code: str
    codes: str = ""
    message: str = ""
    param: str = ""
    statuses: Collection[int] = _ANY

    def fits(self, error: ProviderError) -> bool:
        """Return whether an error matches."""
        if error.status not in self.statuses:
            return False
        if self.codes and any(re.fullmatch(self.codes, code) for code in error.codes):
            return True
        if self.message and re.search(self.message, error.message, re.IGNORECASE):
            return True
        return bool(self.param and re.fullmatch(self.param, error.param))


# Errors of a chat template without a system role, or of the provider. llama.cpp sends them with status 500.
SYSTEM_ROLE = (
    r"messages?[\[.]\d+\]?\.role\b"
    r"|system (role|message|prompt|instruction)s?\b.{0,40}(not |n't |un)(be )?(support|allow|enabled|permit)"
    r"|(not|n't) (support|allow)\w*( the| a)? system (role|message|prompt|instruction)"
    r"|developer instruction is not enabled|roles must alternate"
)

# Of a model that reads text only; not of a kind, a size or an address of images that it does not read.
_NO_IMAGES = (
    r"not a (multimodal|vision) model|at most 0 image|unknown variant .?image_url|support image input"
    r"|(image|vision|multimodal) (input|content)s? (is|are) (not|un)\s?supported"
    r"|(not|n't) support (image|vision|multimodal)( input| content)?s?(?! \w)|image_url is only supported by certain models"
)

ERROR_SIGNATURES: tuple[ErrorSignature, ...] = (
    ErrorSignature(
        "content_filter",
        codes="content_filter|content_policy_violation|ResponsibleAIPolicyViolation|flagged_input|invalid_prompt"
        "|data_inspection_failed",
        message="ContentPolicyViolationError",
    ),
    ErrorSignature(
        "no_quota",
        codes="insufficient_(quota|balance|credits|funds)|billing_hard_limit_reached|billing_not_active|quota_exceeded"
        "|budget_exceeded|exceeded_current_quota_error|Arrearage|[A-Za-z]*PerDay[A-Za-z-]*",
        message=r"balance is too low|insufficient (account )?(credit|balance|fund|quota)|budget has been exceeded"
        r"|exceeded[\w ]*budget|budgetexceeded|(over|crossed) budget|(spend|spending|credit|key) limit (was |has been )?(exceeded|reached)"
        r"|exceeded your (monthly|current) (included )?(credits|spend)|requires more credits|out of credits"
        r"|credits (are|have been) (depleted|exhausted)|used all available credits|(requires|enable) billing|free-models-per-day"
        r"|(reach|exceed)(ed|ing) (its|your|the)( [\w-]+){0,4} (spend|spending|usage|credit) (limit|cap)s?\b",
    ),
    ErrorSignature(
        "forbidden",
        codes="(key|team|user|org|project)_model_access_denied|model_terms_required|organization_restricted",
        message=r"\b(account|organization|project|workspace|team)\b.{0,30}\b(restricted|disabled|suspended|deactivated)\b"
        r"|\blocation is not supported|not (supported|available) in your (country|region)|matching your data policy",
        statuses=(*_CLIENT,),
    ),
    ErrorSignature(
        "bad_key",
        codes="invalid_api_key|authentication_error|API_KEY_INVALID|wrong_api_key|invalid_authentication|UNAUTHENTICATED"
        "|no_db_connection|token_not_found_in_db|auth_error|expired_key",
        message=r"api.?key\b.{0,20}(not valid|invalid|missing|incorrect|expired|required)"
        r"|(invalid|incorrect|wrong|missing|expired)( or \w+)? (api.?key|api.?token|authorization|credentials?)\b"
        r"|no auth\w* credentials|authentication (error|fail)|unregistered callers",
        statuses=(400, 401, 403),
    ),
    ErrorSignature(
        "unsupported_endpoint",
        codes="OperationNotSupported",
        message=r"not a chat model|(not|n't) support (the )?chat\b|(only supported in|use) (the )?/?v1/(responses|completions)\b"
        r"|operation does not work with the specified model|chat template is no longer allowed"
        r"|(no|must provide a|not have a|without a) chat template|template not found|not support completions"
        r"|on-demand throughput|only supports? stream(ing)?\b",
        statuses=(400, 403, 404, 405, 422, 500, 501),
    ),
    ErrorSignature("no_image_input", message=_NO_IMAGES, statuses=(400, 404, 415, 422, 500)),
    ErrorSignature(
        "bad_image",
        codes=r"invalid_image_(url|format)|image_parse_error|invalid_base64(_image)?",
        # vLLM sends what its own download met, with status 500; proxies put their name before such a message.
        message=r"^cannot connect to host|failed to (fetch|load) (media|image)|cannot load local files|cannot identify image"
        r"|non-base64 digit|error while downloading",
        statuses=(400, 422, 500),
    ),
    ErrorSignature("token_limit", message=r"could not finish the message because max_tokens", statuses=(400,)),
    ErrorSignature(
        "schema_failed",
        codes="json_validate_failed|tool_use_failed",
        message="failed_generation|output that does not match the expected",  # the latter: llama.cpp
        statuses=(400, 422, 500),
    ),
    ErrorSignature("unsupported", message=r"no endpoints found that (support|can handle)", statuses=(404,)),
    ErrorSignature(
        "unsupported", message=SYSTEM_ROLE, param=r"messages?[\[.]\d+\]?\.role", statuses=(400, 422, 424, 500)
    ),
    ErrorSignature("request_too_large", message="^request too large", statuses=(413, 429)),
    ErrorSignature(
        "context_too_long",
        codes="context_length_exceeded|exceed_context_size_error",
        message=r"context.?(length|size|window)|ContextWindowExceeded|maximum (model|prompt|input) length"
        r"|(prompt|input|messages?)\b.{0,60}\btoo (long|many tokens)|too many tokens"
        r"|longer than the (maximum|model)|tokens?\b.{0,40}exceeds? the (maximum|limit|model|context)"
        r"|exceed(s|ed)?( the| its)?( model('s)?)? (context|token) limit|range of input length|input length of .{0,40}max_length"
        r"|greater than max_model_len|must have less than \d+ tokens|tokens\b.{0,40}must be <=|reduce the length of the (messages|prompt|input)",
        statuses=_LENGTH,
    ),
    ErrorSignature(
        "unknown_model",
        codes="model_not_found|unavailable_model|DeploymentNotFound|model_not_available|model_decommissioned|invalid_model|unknown_model"
        "|model_not_supported",
        message=r"\bmodels?\b.{0,120}?(not exist|not found|no such|decommissioned|inaccessible)"
        r"|\b(no|no such|not found the) model\b|\b(invalid|unknown|unavailable) model\b|not a valid model"
        r"|\bmodel (id|identifier|name) is (invalid|not valid)|\bmodel\b.{0,120}? reached its end of life|unable to access model|^model: "
        r"|no endpoints found for|no allowed providers|server is pinned to",
        param="model",
        statuses=_MODEL,
    ),
    ErrorSignature("unknown_model", message=r"\bmodels?\b.{0,120}?(unknown|not available)", statuses=(404,)),
    ErrorSignature(
        "unsupported",
        codes=r"unsupported\w*|unknown_parameter|unrecognized\w*|extra_forbidden|not_supported_error|wrong_api_format",
        message=r"(not|n't) support|unsupported|unrecognized|(unexpected|unknown) (keyword|field|key|parameter|argument|name)"
        r"|extra (inputs|fields) (are )?not permitted|deprecated for this model|cannot both be specified"
        r"|\bonly\b.{0,40}\b(allowed|supported)\b|must be strictly positive|not enabled for this model|requires --[a-z]",
        statuses=(400, 422, 501),
    ),
)

BY_STATUS: Mapping[int, str] = {
    401: "bad_key",
    402: "no_quota",
    403: "forbidden",
    404: "wrong_url",
    405: "wrong_url",
    408: "server_error",
    409: "server_error",
    413: "request_too_large",
    425: "server_error",
    429: "rate_limited",
    501: "unsupported",
    503: "overloaded",
    529: "overloaded",
}


def classify_error(error: ProviderError) -> str:
    """Return the code (`REQUEST_ERROR_CODES`) of an error."""
    found = next((each.code for each in ERROR_SIGNATURES if each.fits(error)), None)
    if found is not None:
        return found
    by_class = "wrong_url" if error.status < 400 else "server_error" if error.status >= 500 else "bad_request"
    return BY_STATUS.get(error.status, by_class)


def read_error(status: int, data: bytes) -> ProviderError:
    """Parse an error body of any form; an HTML page gives its text as the message."""
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError:
        return ProviderError(status, message=read_text(data))
    parts = list(_parts(body, _DEPTH))
    params = (each.get("param") for each in reversed(parts))
    messages = (_message(each) for each in reversed(parts))
    return ProviderError(
        status,
        frozenset(code for part in parts for code in _codes(part)),
        next((param for param in params if isinstance(param, str)), ""),
        next(filter(None, messages), ""),
        _retry_delay(parts),
    )


def read_text(data: bytes) -> str:
    """Return the beginning of a body as text; of a page, its title and words."""
    return re.sub(_MARKUP, " ", data[:20_000].decode("utf-8", "replace")).strip()[:2000]


def _parts(body: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """Yield the objects that describe an error, outermost first."""
    if isinstance(body, list):
        body = next((each for each in body if isinstance(each, dict)), None)
    if isinstance(body, str) and body.lstrip()[:1] in {"{", "["}:
        try:
            body = orjson.loads(body)
        except orjson.JSONDecodeError:
            return
        yield from _parts(body, depth)
    if not isinstance(body, dict) or not depth:
        return
    yield body
    metadata = body.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    for inner in (body.get("error"), body.get("detail"), raw):
        if isinstance(inner, dict) or (isinstance(inner, list) and not _faults(inner)):
            yield from _parts(inner, depth - 1)
        elif isinstance(inner, str) and inner is raw:
            found = list(_parts(inner, depth - 1))
            yield from found or [{"message": inner}]


def _faults(value: Any) -> list[Mapping[str, Any]]:
    """Return FastAPI's list of validation errors, also below ``detail``; empty if a value is not such a list."""
    listed = value.get("detail") if isinstance(value, dict) else value
    faults = list(_objects(listed))
    return faults if all("msg" in each for each in faults) else []


def _message(part: Mapping[str, Any]) -> str:
    for value in (part.get("message"), part.get("detail"), part.get("error")):
        if isinstance(value, str) and value:
            return value
        if faults := _faults(value):
            return "; ".join(map(_fault, faults))
    return ""


def _fault(fault: Mapping[str, Any]) -> str:
    place = fault.get("loc")
    where = ".".join(map(str, place)) if isinstance(place, list) else ""
    return f"{where}: {fault.get('msg')}" if where else str(fault.get("msg"))


def _codes(part: Mapping[str, Any]) -> Iterator[str]:
    """Yield the classifying codes of an error: its own, those of its details, and names of its metadata."""
    inner, metadata = part.get("innererror"), part.get("metadata")
    faults = [*_faults(part.get("detail")), *_faults(part.get("message"))]
    details = list(_objects(part.get("details")))
    violations = [each for detail in details for each in _objects(detail.get("violations"))]
    for source, names in (
        (part, ("code", "type", "error_type", "status")),
        (inner if isinstance(inner, dict) else {}, ("code",)),
        *((each, ("reason",)) for each in details),
        *((each, ("quotaId",)) for each in violations),
        *((each, ("type",)) for each in faults),
    ):
        yield from (value for name in names if isinstance(value := source.get(name), str))
    if isinstance(metadata, dict):
        yield from metadata


def _retry_delay(parts: Iterable[Mapping[str, Any]]) -> float | None:
    """Return the seconds of Google's ``RetryInfo``, or None."""
    for part in parts:
        for detail in _objects(part.get("details")):
            delay = detail.get("retryDelay")
            found = _DURATION.fullmatch(delay) if isinstance(delay, str) else None
            if found and math.isfinite(seconds := float(found[1])):
                return seconds
    return None


def _objects(value: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))
