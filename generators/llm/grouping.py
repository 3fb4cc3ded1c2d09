"""Several items in one request: requests with the same instructions are merged, and the answer is split by item.

    results = yield from group_steps([ask(pair) for pair in pairs])

The steps of a group run side by side. In each round, requests that differ in their last message alone become one
request: the same instructions and demonstrations, then every item under an id of its own. Ids are drawn numbers, so a
model that skips an item cannot shift the answers of the others unnoticed.

Each entry of the answer carries the id of its item. An item whose id is missing, unknown or repeated, or whose entry is
cut off or clearly about another item, is requested alone, and so are all items after an answer that is refused or unreadable. Requests with images or
documents, and repairs, are never merged.

A group has fixed members, so the merged request, its cache key and the answers do not depend on timing.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

import orjson

from pairwright.datasets.rng import make_rng
from pairwright.generators.llm.client.messages import Message, Reply, Request, Schema, Usage
from pairwright.generators.llm.client.request_key import encode_json
from pairwright.generators.llm.client.steps import LLMStep, RequestOutcome, gather, relay
from pairwright.generators.llm.output.answers import PLANNED_FINISH_REASON
from pairwright.generators.llm.output.json_parsing import (
    find_json_fragments,
    iter_strings,
    strip_control_tokens,
    strip_thinking,
)
from pairwright.generators.llm.output.structured import decode_json_string

T = TypeVar("T")

_IDS = range(100, 1000)  # one token each in current vocabularies
_encode = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` creates an encoder each time
_TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")

_DEPTH = 3  # levels of lists and objects around an entry
_TELLING = 2  # words of another item from which an entry may be about that one
_WORD = re.compile(r"\w+")
_ID = re.compile(r"(?:item\s*)?#?([0-9]{1,9})", re.IGNORECASE)
_ITEM = re.compile(r"^Item (\d{3})\n(.*?)(?=\n\nItem \d{3}\n|\Z)", re.MULTILINE | re.DOTALL)

GROUP_INSTRUCTION = (
    "You receive several items, each under a number. Apply these instructions to each item on its own. Return one JSON "
    'object with "answers": a list with one entry for each item, in order. An entry is the JSON object described above '
    'with the number of its item as the first field, "id". Write an entry for every item.'
)


def group_steps(steps: Sequence[LLMStep[T]]) -> LLMStep[tuple[T, ...]]:
    """Run the steps of a group's members, in order, side by side with merged requests; return their results."""
    return relay(gather(*steps), request_merged)


def request_merged(requests: Sequence[Request]) -> LLMStep[list[RequestOutcome]]:
    """Send requests, merged where possible, and return the outcome of each."""
    if not requests:
        return []
    groups = _mergeable(requests)
    merged = [_merge([requests[at] for at in group]) if _differ(requests, group) else None for group in groups]
    sent = [
        each.request if each is not None else requests[group[0]] for each, group in zip(merged, groups, strict=True)
    ]
    outcomes: dict[int, RequestOutcome] = {}
    for outcome, whole, group in zip((yield sent), merged, groups, strict=True):
        split = whole.split(outcome) if whole is not None else [outcome] * len(group)
        outcomes |= {at: each for at, each in zip(group, split, strict=True) if each is not None}
    alone = [at for at in range(len(requests)) if at not in outcomes]
    if alone:
        again = [replace(requests[at], is_alone=True) for at in alone]
        outcomes |= dict(zip(alone, (yield again), strict=True))
    return [outcomes[at] for at in range(len(requests))]


def _mergeable(requests: Sequence[Request]) -> list[list[int]]:
    """Return the requests by instructions, model, parameters and sample; a request that cannot be merged is alone."""
    groups: dict[Any, list[int]] = {}
    for at, request in enumerate(requests):
        *fixed, last = request.messages
        plain = request.repair != "this" and not request.documents and not last.images
        shown = [message.role for message in fixed]
        if request.schema is None or not plain or shown != ["system", *["user", "assistant"] * (len(shown) // 2)]:
            groups[at] = [at]
            continue
        key = (
            tuple([(message.role, message.text) for message in fixed]), request.model,
            encode_json(sorted(request.parameters.items())), request.schema.shape, request.sample, request.resample,
        )  # fmt: skip
        groups.setdefault(key, []).append(at)
    return list(groups.values())


def _differ(requests: Sequence[Request], group: Sequence[int]) -> bool:
    return len({requests[at].messages[-1].text for at in group}) > 1


@dataclass(frozen=True, slots=True)
class _MergedRequest:
    """A request about several items, the id of the item of each request, and the text of each id."""

    request: Request
    ids: tuple[int, ...]
    texts: Mapping[int, str]

    def split(self, outcome: RequestOutcome) -> list[RequestOutcome | None]:
        """Return the outcome of each request; None for one that has to be sent alone."""
        if not isinstance(outcome, Reply):
            # A server that is down or a limit that is reached concerns every request, whatever is in it.
            of_all = outcome.transient or outcome.fatal
            return [outcome if of_all else None for _ in self.ids]
        answers = _entries_by_id(outcome)
        if outcome.finish_reason != PLANNED_FINISH_REASON:
            answers = _without_exchanged(answers, self.texts)
        usage = _share(outcome.usage, len(set(self.ids)))
        return [_reply_of(outcome, answers[own], usage) if own in answers else None for own in self.ids]


def _share(usage: Usage, items: int) -> Usage:
    """Return the tokens of one of some items."""
    return Usage(usage.prompt_tokens // items, usage.completion_tokens // items, usage.cached_tokens // items)


def _reply_of(whole: Reply, answer: Mapping[str, Any], usage: Usage) -> Reply:
    """Return the part of a reply about one item, with its share of the tokens."""
    text = _encode(answer)
    finish = whole.finish_reason if whole.finish_reason == PLANNED_FINISH_REASON else "stop"
    return replace(whole, text=text, finish_reason=finish, usage=usage)


def _entries_by_id(reply: Reply) -> dict[int, dict[str, Any]]:
    """Return the entries of an answer by id, without repeated ids, and without the entry at which it is cut off."""
    if reply.refusal:
        return {}
    found: dict[int, dict[str, Any]] = {}
    repeated: set[int] = set()
    for own, fields in _entries(reply.text):
        if own in found:
            repeated.add(own)
        found[own] = fields
    return {own: fields for own, fields in found.items() if own not in repeated}


def _without_exchanged(answers: Mapping[int, dict[str, Any]], texts: Mapping[int, str]) -> dict[int, dict[str, Any]]:
    """Return the entries without those that clearly are about another item than the one of their id."""
    items = {own: _words(text) for own, text in texts.items()}
    found = {}
    for own, fields in answers.items():
        words, item = _words(" ".join(iter_strings(fields))), items.get(own, frozenset())
        foreign, kept = words - item, words & item
        if not any(_is_rather_about(other, kept, foreign) for other in items.values()):
            found[own] = fields
    return found


def _is_rather_about(other: frozenset[str], kept: frozenset[str], foreign: frozenset[str]) -> bool:
    """Whether an entry has words of another item, and hardly any of its own, among those that tell the two apart.

    Args:
        other: words of the other item.
        kept: words of the entry that its own item has.
        foreign: words of the entry that its own item does not have.
    """
    wrong = len(foreign & other)
    return wrong >= _TELLING and wrong > 2 * len(kept - other)


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def _entries(text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield id and fields of the entries in an answer, or in what precedes the place where it is cut off."""
    try:
        values = [orjson.loads(text)]
    except orjson.JSONDecodeError:
        plain = strip_control_tokens(strip_thinking(text)[0])[0]
        values = [piece.value for piece in find_json_fragments(decode_json_string(plain)[0])]
    for value in values:
        yield from _entries_in(value)


def _entries_in(value: object, own: object = None, depth: int = _DEPTH) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield id and fields of the entries in a value; ``own`` is the name of the value in its object."""
    if isinstance(value, dict):
        found = _id_of(value.get("id", own))
        if found >= 0:
            yield found, {name: inner for name, inner in value.items() if name != "id"}
        elif depth:
            for name, inner in value.items():
                yield from _entries_in(inner, name, depth - 1)
    elif isinstance(value, list) and depth:
        for inner in value:
            yield from _entries_in(inner, None, depth - 1)


def _id_of(own: object) -> int:
    """Return an id that is written as a number, or as one with a label (``Item 101``); -1 for anything else."""
    if isinstance(own, float) and own.is_integer():
        return int(own)
    found = _ID.fullmatch(str(own)) if isinstance(own, int | str) else None
    return int(found[1]) if found else -1


def _merge(requests: Sequence[Request]) -> _MergedRequest:
    """Return one request for several that differ in their last message alone; equal ones become one item."""
    first = requests[0]
    texts = list(dict.fromkeys(request.messages[-1].text for request in requests))
    items = _draw_ids(len(texts), *texts)
    messages = (*_merged_instructions(first.messages[:-1]), Message("user", _numbered(items, texts)))
    ids = dict(zip(texts, items, strict=True))
    parameters = {
        name: value * len(texts) if name in _TOKEN_LIMITS and isinstance(value, int) else value
        for name, value in first.parameters.items()
    }
    expected = _answers([_with_id(own, first.expects) for own in items]) if first.expects else ""
    assert first.schema is not None
    request = replace(
        first,
        messages=messages,
        parameters=parameters,
        schema=_group_schema(first.schema.shape),
        expects=expected,
        repair="",
        alone=tuple({request.messages[-1].text: request for request in requests}.values()),
    )
    own = tuple(ids[each.messages[-1].text] for each in requests)
    return _MergedRequest(request, own, dict(zip(items, texts, strict=True)))


@lru_cache(maxsize=64)
def _merged_instructions(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the system text and the demonstrations as one exchange about several items."""
    system, *shown = messages
    merged = (Message("system", f"{system.text}\n\n{GROUP_INSTRUCTION}"),)
    if not shown:
        return merged
    ids = _draw_ids(len(shown) // 2, "shown")
    answers = [_with_id(own, message.text) for own, message in zip(ids, shown[1::2], strict=True)]
    return (
        *merged,
        Message("user", _numbered(ids, [message.text for message in shown[::2]])),
        Message("assistant", _answers(answers)),
    )


def _draw_ids(count: int, *seeds: str) -> list[int]:
    return make_rng(0, "ids", *seeds).sample(_IDS, count)


def _numbered(ids: Sequence[int], texts: Sequence[str]) -> str:
    return "\n\n".join(f"Item {own}\n{text}" for own, text in zip(ids, texts, strict=True))


def split_items(text: str) -> list[tuple[int, str]]:
    """Return id and text of each item in the last message of a merged request; none for another message."""
    return [(int(found[1]), found[2]) for found in _ITEM.finditer(text)]


def _with_id(own: int, answer: str) -> str:
    """Return a JSON object with an id as its first field."""
    fields = _fields(answer)
    return f'{{"id": {own}, {fields}}}' if fields else f'{{"id": {own}}}'


@lru_cache(maxsize=256)  # typical answers, each of one prompt
def _fields(answer: str) -> str:
    """Return the fields of a JSON object as they are written between its braces."""
    return _encode(json.loads(answer))[1:-1]


def _answers(answers: Sequence[str]) -> str:
    return f'{{"answers": [{", ".join(answers)}]}}'


@lru_cache(maxsize=256)
def _group_schema(shape: bytes) -> Schema:
    """Return the schema of a list of answers with ids; ``shape`` is that of the schema of one."""
    name, entry, strict = orjson.loads(shape)
    definitions = {"$defs": entry.pop("$defs")} if "$defs" in entry else {}
    entry |= {
        "properties": {"id": {"type": "integer"}, **entry["properties"]},
        "required": ["id", *entry["required"]],
    }
    schema = {
        "type": "object",
        "properties": {"answers": {"type": "array", "items": entry}},
        "required": ["answers"],
        "additionalProperties": False,
        **definitions,
    }
    return Schema(f"{name}_group"[:64], schema, strict)
