"""Boilerplate around an answer: refusals, preambles, labels, trailing remarks and invented next turns. English only.

Each pattern applies only where it occurs in practice (at the start of a text or a line), since a caption may mention
anything: "Sorry, we are closed" is the text of a sign, "I'm sorry, but I can't help with that" is not.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise, takewhile

from pairwright.generators.llm.client.messages import Message, Request
from pairwright.generators.llm.output.json_parsing import iter_strings

# Spaces as \s: a verbose pattern ignores plain ones.
_CANNOT = r"(?:can(?:no|')t|can\snot|(?:am|'m)\s(?:unable|not\sable|not\sallowed)\sto|won't|will\snot)"
_DO = (
    r"(?:help|assist|provide|comply|fulfill?|create|generate|write|rewrite|describe|identify|recogni[sz]e|produce|answer|"
    r"respond|continue|engage|discuss|support|edit|modify|process|complete|do|see|view|access|offer|make|give|share|satisfy)"
)
_REFUSAL = re.compile(
    rf"""\W*(?:
        (?:(?:i'm|i\ am)\ (?:very\ |so\ |truly\ |really\ )?sorry|sorry|i\ apologi[sz]e|my\ apologies|unfortunately)
            [,.!;:]?\ (?:(?:but|for|as)\b[^.\n]{{0,60}}?\s)?
            (?:i\ {_CANNOT}|i{_CANNOT})\ (?:\w+\ ){{0,2}}?{_DO}\b
        | (?:i\ {_CANNOT}|i{_CANNOT})\ (?:\w+\ )?
            (?:help\ (?:you\ )?with|assist|provide|comply|fulfill?|generate|create\ (?:this|that|such)|describe\ (?:this|the)
            |identify|engage\ in|process\ (?:this|that)|answer\ (?:this|that)|rewrite\ (?:this|that)|support\ (?:this|that)
            |do\ (?:this|that|so)\b
            |(?:view|see|access|look\ at)\ (?:the\ |this\ |any\ |actual\ )?(?:images?|pictures?|photos?)\b)
        | as\ an?\ (?:ai|artificial|large\ language|language)\b
        | i'm\ just\ an?\ (?:ai|language)\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_REFUSES_BY = frozenset("iIsSaAmMuU\"'*(“‘ \n")


def _turn_pattern(names: str) -> re.Pattern[str]:
    return re.compile(
        rf"""[ \t>*#_]*
        (?: (?:{names})(?:\ (?:caption|question|input|example|sentence|problem|task|text|image))?[ \t]*\#?\d*[*_]*[ \t]*:
          | \#{{2,}}\ | -{{3,}}[ \t]*$ | ={{3,}}[ \t]*$ | <\|\w | \[/?INST | </?s> )""",
        re.IGNORECASE | re.VERBOSE | re.MULTILINE,
    )


_ASKING = "user|human|system|question|q|input|instructions?|examples?|problem|task|prompt|premise|passage|context|original|next|new"
_ASKING_TURN = _turn_pattern(_ASKING)
_TURN = _turn_pattern(f"{_ASKING}|assistant|ai|bot|a|output")
_AFTERWORD = re.compile(
    r"[ \t>*_(\[]*(?:note|explanation|reasoning|reason|rationale|changes?( made)?|justification|comment|p\.?s\.?)[*_]*[ \t]*:"
    r"|[ \t>*_(\[]*(?:(?:please )?let me know|i hope|i('ve| have)? (changed|replaced|swapped|added|rewrote|rewritten|modified|kept)"
    r"|this (caption|sentence|version|rewrite|edit|change|rewording)|in this (caption|sentence|version|rewrite|edit)"
    r"|is there anything|would you like|feel free|if you('d| would) like|do you (want|need))\b",
    re.IGNORECASE,
)

_THING = r"(?:captions?|sentences?|versions?|answers?|rewrites?|rewording|descriptions?|questions?|results?|text|lists?|outputs?|edits?|negatives?|positives?|paraphrases?|options?|responses?|examples?)"
# A preamble ends in a colon; only a polite one may end in another mark, since "Great horned owl. It sits." is none.
_EAGER = r"(?:sure(?:\ thing)?|certainly|of\ course|okay|ok|absolutely|great|alright|no\ problem|happy\ to\ help)"
_POLITE = r"(?:i\ can|i(?:\ wi|')ll|i(?:'d|\ would)\ be|i(?:'m|\ am)\ happy|i(?:'ve|\ have)|let\ me|here\ you\ go|happy\ to|glad\ to)"
_OPENING = re.compile(
    rf"""(?: {_EAGER}\b[!.,]?[^\n:.!?(\[]{{0,120}}:(?!\d)
      | {_EAGER}(?:[,!.]?\ {_POLITE}\b[^\n:.!]{{0,100}})?[!.](?=\s)
      | (?:here\ (?:is|are)|here's|below\ (?:is|are)|this\ is|the\ following\ (?:is|are))\b[^\n:.]{{0,100}}\b{_THING}\b[^\n:.]{{0,60}}:
      | the\ (?:\w+\ ){{0,3}}{_THING}(?:\ \w+){{0,4}}(?:\ (?:is|are|would\ be|could\ be))?:
      )\s*""",
    re.IGNORECASE | re.VERBOSE,
)
_LABEL = re.compile(
    rf"[*_]{{0,2}}(?:(?:new|rewritten|reworded|edited|modified|revised|updated|corrected|negative|positive|final|alternative|"
    rf"generated|output|target|my|possible)\s){{0,2}}{_THING}(?:\s?\#?\d{{1,2}})?[*_]{{0,2}}\s?:[*_]{{0,2}}\s*",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\s*(?:\(?(\d{1,3})[.):]\s+|[-*•–]\s+)")
_PAIRS = {'"': '"', "'": "'", "“": "”", "„": "“", "«": "»", "`": "`", "‘": "’"}

# Text between two answers that retracts the first one. Text that offers another one does not.
_CORRECTION = re.compile(
    r"\b(?:wait|actually|oops|hmm+|mistake|correct(?:ed|ion|ing)|revis(?:e|ed|ion)|fix(?:ed|ing)?|sorry|instead|"
    r"let(?:'s| me)|final(?:ly)?|on second thought|should be)\b|\bthat(?:'s| is) (?:not|wrong)\b",
    re.IGNORECASE,
)
_OFFER = re.compile(r"\b(?:or|another|alternativ\w+|option|also)\b", re.IGNORECASE)

_TAG = re.compile(r"</?[A-Za-z][\w-]{0,40}>|<<<+|>>>+|\[\[+|\]\]+")
_LONG = 40  # characters: a shorter line of the instructions may also occur in a caption


def is_refusal(text: str) -> bool:
    """Return whether a text begins like a refusal."""
    return text[:1] in _REFUSES_BY and _REFUSAL.match(text[:400].replace("’", "'")) is not None


def starts_new_turn(text: str) -> bool:
    """Return whether a text begins like an invented next turn, question or example."""
    return _TURN.match(text.lstrip("\n ")) is not None


def starts_new_question(text: str) -> bool:
    """Return whether a text begins like an invented next question or example.

    ``A:`` does not: a model that repeats the question labels its own answer.
    """
    return _ASKING_TURN.match(text.lstrip("\n ")) is not None


def starts_trailing_remark(text: str) -> bool:
    """Return whether a text begins like a remark on the answer before it."""
    return _AFTERWORD.match(text.lstrip("\n ")) is not None


def announces_correction(text: str) -> bool:
    """Return whether a text between two answers says that the second one replaces the first."""
    said = text.replace("’", "'")
    return _CORRECTION.search(said) is not None and _OFFER.search(said) is None


def strip_preamble(text: str) -> str:
    """Return the text without ``Sure! Here is the new caption:`` and the like at its start."""
    return _behind(_OPENING, text)


def strip_label(text: str) -> str:
    """Return the text without ``New caption:`` and the like at its start."""
    return _behind(_LABEL, text)


def strip_quotes(text: str) -> str:
    """Return the text without quotes, or the stars of bold type, around all of it."""
    if len(text) > 4 and text.startswith("**") and text.endswith("**") and "**" not in text[2:-2]:
        return text[2:-2].strip()
    mark = text[-1:] if text.endswith((".", "!", "?")) else ""  # `"A cat sits".`
    quoted = text.removesuffix(mark)
    if len(quoted) > 2 and _PAIRS.get(quoted[0]) == quoted[-1]:
        inner = quoted[1:-1]
        # Inner quotes may belong to other words: `"Stop" and "Go"` stays as it is.
        if quoted[0] not in inner and (quoted[-1] not in inner or quoted[0] == "‘"):
            return inner.strip() + mark
    return text


def strip_list_marker(text: str) -> str:
    """Return a list item without its number or bullet."""
    return _behind(_NUMBER, text)


def _behind(pattern: re.Pattern[str], text: str) -> str:
    """Return the text behind what a pattern matches at its start; the whole text if nothing is left."""
    found = pattern.match(text)
    return text[found.end() :] if found and found.end() < len(text) else text


def echoes_prompt(texts: Sequence[str], request: Request) -> bool:
    """Return whether texts of an answer contain parts of the instructions of its request.

    That is a whole line of the system text of at least `_LONG` characters, or one of the tags that it names, such as
    ``<caption>``, which enclose the text of a row. A caption that reads like an instruction makes models repeat theirs.
    """
    system = "\n".join([message.text for message in request.messages if message.role == "system"])
    if not system:
        return False
    marks, lines = _own(system)
    said = "\n".join(texts)  # no mark and no line goes over the end of one
    if any(mark in said for mark in marks):
        return True
    flat = [_flat(text) for text in texts if len(text) >= _LONG]
    longest = max(map(len, flat), default=0)
    return any(any(line in text for text in flat) for line in takewhile(lambda each: len(each) <= longest, lines))


def copies_demonstration(texts: Iterable[str], request: Request) -> bool:
    """Return whether a text of an answer is one, of at least `_LONG` characters, of a demonstration's answer.

    A demonstration about the same text as the request (a line of at least `_LONG` characters) may have the same answer.
    """
    shown = _shown_texts(request.messages[:-1])
    lines = request.messages[-1].text.splitlines()
    return any(shown[flat].isdisjoint(lines) for text in texts if (flat := _flat(text)) in shown)


@lru_cache(maxsize=64)
def _shown_texts(fixed: Sequence[Message]) -> dict[str, frozenset[str]]:
    """Return the long texts in the answers of demonstrations, each with the long lines of the question."""
    found: dict[str, frozenset[str]] = {}
    for question, answer in pairwise(fixed):
        if answer.role == "assistant":
            lines = frozenset(line for line in question.text.splitlines() if len(line) >= _LONG)
            texts = (_flat(text) for text in _strings(answer.text))
            found |= {text: lines | found.get(text, frozenset()) for text in texts if len(text) >= _LONG}
    return found


def _strings(answer: str) -> Iterator[str]:
    """Yield the strings of an answer that is JSON, else the answer."""
    try:
        value = json.loads(answer)
    except json.JSONDecodeError:
        value = answer
    return iter_strings(value)


def _flat(text: str) -> str:
    return " ".join(text.split()).casefold()


@lru_cache(maxsize=64)
def _own(system: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the tags of a system text and its long lines, the shortest first."""
    lines = (_flat(line) for line in system.splitlines())
    long = sorted({line for line in lines if len(line) >= _LONG}, key=lambda line: (len(line), line))
    return tuple(sorted(set(_TAG.findall(system)))), tuple(long)
