"""Parser for chain-of-thought output: rationale, marker ("So the answer is") and label.

After its answer a model may continue with further questions and answers, as in the demonstrations. Parsing ends at the
first such question: a line or sentence that begins like a turn of the prompt (``Q:``, ``Premise:``, ``Human:``,
``###``) or like a field of the task. The label follows the first marker after which a label can be read; the rationale
is the text before the marker. If the answer is a calculation with an unknown ("some - 8"), the label is the value that
the rationale states for it ("some - 8 = 6"), right or wrong; the unknown is never solved for.

No text is evaluated as code.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pairwright.generators.llm.output.boilerplate import starts_new_turn
from pairwright.generators.rationales.labels import MAX_LENGTH, Labels

# Reason codes of unusable answers.
NO_ANSWER = "no_answer"  # no marker before the first invented question
UNREADABLE_LABEL = "unreadable_label"  # a marker without a label of the task after it
SEVERAL_ANSWERS = "several_answers"  # markers with different labels, or alternatives after the last one
NO_RATIONALE = "no_rationale"  # a label only

_ANSWER = (
    r"(?:(?<![\w'])(?:and\s+)?(?:so|thus|therefore|hence|then|consequently)\b[,:]?\s+)?"
    r"(?<!\w)(?:(?:the|my|our|its)\s+)?(?:(?:final|correct|right|best|most\s+likely)\s+)?(?:answer|label)(?:\s+(?:choice|option|here))?"
    r"\s*(?:\*\*)?\s*"
)
_MARKER = re.compile(
    rf"{_ANSWER}is\b(?:\s+(?:therefore|thus|then))?\s*:?\s*" + r"|\\boxed\s*\{|(?:^|\n)\s*####\s+(?=[-$\d])",
    re.IGNORECASE,
)
# "The answer must be a place where ..." often begins a rationale, so this is used only without another marker.
_HYPOTHETICAL = re.compile(rf"{_ANSWER}(?:would|should|must)\s+be\b\s*:?\s*", re.IGNORECASE)
_ASKED = re.compile(r"\b(?:what|whether|if|how)\s+\Z", re.IGNORECASE)  # "asks what the answer is": no answer yet
_LABELLED = re.compile(r"(?:^|\n)[ \t>*#_]*(?:final\s+)?(?:answer|label)[ \t*_]*:[ \t*_]*", re.IGNORECASE)
_OPENING = re.compile(
    r"\s*(?:[*_#]*(?:A|answer|rationale|reasoning|explanation|solution|thought)[*_]*\s*:[*_]*\s*)?"
    r"(?:let(?:'|’)?s\s+think\s+(?:about\s+(?:it|this)\s+)?step\s+by\s+step\s*[.:]\s*)?",
    re.IGNORECASE,
)
_REPLY = re.compile(r"\n[ \t]*(?:A|Answer)[ \t]*:")
_WORD = re.compile(r"\w+")
_END = re.compile(r"\n|[.!?;](?=[\s\"'”’)*\]]|\Z)|\}")
_TRAILING = re.compile(
    r"(?:[\s,;:–-]|(?<=[\s,;])(?:and|so|thus|therefore|hence|then|which means(?: that)?|meaning(?: that)?))+\Z",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ParsedRationale:
    """A parsed model output.

    Attributes:
        rationale: one line, without marker and label.
        label: the label in its canonical form; may be empty with a reason.
        raw_label: the label as the model wrote it; empty without a marker.
        reason: reason code if it is unusable, else empty.
    """

    rationale: str = ""
    label: str = ""
    raw_label: str = ""
    reason: str = ""

    @property
    def parsed(self) -> bool:
        """Whether a label could be read."""
        return bool(self.label)


@dataclass(frozen=True, slots=True)
class _StatedAnswer:
    start: int
    raw_label: str
    labels: tuple[str, ...]

    @property
    def label(self) -> str:
        """The label; empty if none or several can be read."""
        return self.labels[0] if len(self.labels) == 1 else ""


def parse_chain_of_thought(
    text: str, labels: Labels, *, choices: Sequence[str] = (), fields: Sequence[str] = (), question: str = ""
) -> ParsedRationale:
    """Parse a model's output.

    Args:
        text: one output, including anything after the answer.
        labels: labels of the task.
        choices: choices of the row, for labels of kind ``choice``.
        fields: names of the task's fields; a line that begins with one of them and a colon is an invented question.
        question: the input, which a model may repeat before it answers.
    """
    own = _strip_question_echo(text, question, tuple(fields))
    own = own[_opening_end(own) :]
    own = own[: _invented_question_start(own, tuple(fields))]
    answers = _answers(own, labels, choices)
    if not answers:
        return ParsedRationale(_clean_ending(own), reason=NO_ANSWER)
    readable = [answer for answer in answers if answer.label]
    chosen = readable[0] if readable else answers[0]
    rationale = _rationale(own[: chosen.start])
    if not readable:
        reason = SEVERAL_ANSWERS if len(chosen.labels) > 1 else UNREADABLE_LABEL
        return ParsedRationale(rationale, raw_label=chosen.raw_label, reason=reason)
    unresolved = len(answers[-1].labels) > 1  # "either (c) or (d)" must be resolved by a later answer
    if unresolved or not all(labels.same(answer.label, chosen.label) for answer in readable):
        return ParsedRationale(rationale, raw_label=chosen.raw_label, reason=SEVERAL_ANSWERS)
    reason = "" if re.search(r"\w", rationale) else NO_RATIONALE
    return ParsedRationale(rationale, chosen.label, chosen.raw_label, reason)


def _strip_question_echo(text: str, question: str, fields: tuple[str, ...]) -> str:
    """Return the text without repetitions of the question at its start.

    A repetition is text before ``A:``, or a line that begins with the name of a field, whose words are all in the
    question.
    """
    question_words = _words(question)
    while question_words and (found := _REPLY.search(text)) is not None:
        echo = _words(text[: found.start()])
        if not echo or echo not in question_words:
            break
        text = text[found.end() :]
    while question_words and (named := _field_line(fields).match(text)) is not None:
        line, _, rest = text[named.end() :].partition("\n")
        if not rest or _words(line) not in question_words:
            break
        text = rest
    return text


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def _opening_end(text: str) -> int:
    found = _OPENING.match(text)
    end = found.end() if found else 0
    # "Answer: B" alone is an answer, not an opening.
    return end if "\n" in text[end:].strip() or _MARKER.search(text, end) else 0


def _invented_question_start(text: str, fields: tuple[str, ...]) -> int:
    """Return the start of the first invented question; the text's length if there is none."""
    inline = _turns(fields).search(text)
    end = inline.start() if inline else len(text)
    at = 0
    for line in text.splitlines(keepends=True):
        if at and at < end and line.strip() and _begins_question(line, fields):
            return at
        at += len(line)
    return end


def _begins_question(line: str, fields: tuple[str, ...]) -> bool:
    return (starts_new_turn(line) or _field_line(fields).match(line) is not None) and _MARKER.match(line) is None


@lru_cache(maxsize=32)
def _turns(fields: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern for the start of a question within a line, after the end of a sentence."""
    names = "|".join(["Q", "Question", "Premise", "Problem", "Human", "User", *(_field_words(name) for name in fields)])
    return re.compile(rf"(?<=[.!?)\"”])\s+(?:{names})\s?:\s")


@lru_cache(maxsize=32)
def _field_line(fields: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(_field_words(name) for name in fields) or r"(?!)"
    return re.compile(rf"[ \t>*#_]*(?:{names})[*_]*[ \t]*:", re.IGNORECASE)


def _field_words(name: str) -> str:
    return re.escape(name.replace("_", " ").capitalize())


def _answers(text: str, labels: Labels, choices: Sequence[str]) -> list[_StatedAnswer]:
    markers = [match for match in _MARKER.finditer(text) if not _ASKED.search(text[: match.start()][-20:])]
    found = [_answer(text, match, labels, choices) for match in markers]
    found = [answer for answer in found if re.search(r"[^\W_]", answer.raw_label)]
    if found:
        return found
    # Otherwise accept "Answer: neutral" at the start of a line, or "would be", if a label can be read.
    weaker = [
        _answer(text, match, labels, choices) for each in (_LABELLED, _HYPOTHETICAL) for match in each.finditer(text)
    ]
    return [answer for answer in weaker if answer.labels]


def _answer(text: str, match: re.Match[str], labels: Labels, choices: Sequence[str]) -> _StatedAnswer:
    behind = text[match.end() : match.end() + 2 * MAX_LENGTH].lstrip()
    raw_label = behind[: _label_end(behind)].strip()
    found = labels.answers(raw_label, choices)
    if not found and (stated := labels.read_stated(raw_label, text[: match.start()])):
        found = [stated]
    return _StatedAnswer(match.start(), raw_label, tuple(found))


def _label_end(text: str) -> int:
    for end in _END.finditer(text):
        if end.start() and (end[0] != "." or not re.fullmatch(r"\(?[A-Za-z]", text[: end.start()].strip())):
            return end.start()  # the stop of "B. oven" is no end
    return len(text)


def _rationale(text: str) -> str:
    text = _clean_ending(text)
    cut = _TRAILING.sub("", text)
    return f"{cut}." if cut and cut[-1] not in '.!?"”’)' else cut


def _clean_ending(text: str) -> str:
    return " ".join(text.split())
