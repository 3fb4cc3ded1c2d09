"""Checks of generated conversations: form, lengths, and no mention of captions or boxes as the source.

The checks are functions of the turns and the `ImageContext`; each returns a reason code of `TURN_REASONS`. Words that
the captions themselves use are allowed: an image may show a caption, a box with labels on it, or a price of 0.99.

The patterns are English and heuristic: a sentence about a stamp collector's "descriptions" is rejected, and an unusual
way to mention the captions passes. Which objects an answer mentions is scored, not checked (`hallucination`). Errors of
the model's output as such (refused, malformed, ...) are in `llm.output.errors`, failed requests in
`llm.client.request_errors`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pairwright.generators.conversations.image_context import ImageContext, box_corners
from pairwright.generators.language.vocabulary import normalize_text
from pairwright.generators.llm.output.errors import OutputError


@dataclass(frozen=True, slots=True)
class TurnReason:
    """Meaning of a reason code (a clause), and the sentence sent to the model on retry (empty: no retry)."""

    meaning: str
    retry_hint: str = ""


TURN_REASONS: Mapping[str, TurnReason] = {
    "no_context": TurnReason("captions and boxes support no question"),
    "no_image": TurnReason("the image is to be sent, and the pair has no readable image"),
    "image_url": TurnReason(
        "the image is a web address: fetch it (`pairwright fetch`), or send the address (`--image-urls`)"
    ),
    "empty_turn": TurnReason("a question or an answer is empty", "A question or an answer is empty."),
    "too_few_turns": TurnReason("there are fewer turns than requested", "There are too few turns."),
    "too_many_turns": TurnReason("there are more turns than requested", "There are too many turns."),
    "not_alternating": TurnReason(
        "a turn contains another turn, so questions and answers do not alternate",
        "A question or an answer holds further turns. Write one question and one answer each.",
    ),
    "no_question": TurnReason(
        "a question is neither a question nor an instruction",
        "What stands as a question has to be one, or an instruction.",
    ),
    "image_token": TurnReason("a turn contains an image token such as `<image>`", "Leave out marks such as <image>."),
    "mentions_source": TurnReason(
        "a turn mentions captions, descriptions, boxes, labels or the input",
        "You spoke of what you were given. Write as if you saw the image, and mention no captions, descriptions or boxes.",
    ),
    "coordinates": TurnReason(
        "a turn contains coordinates", "You gave coordinates. Say positions in words, such as 'on the left'."
    ),
    "unanswerable": TurnReason(
        "a question cannot be answered from the captions and boxes",
        "A question cannot be answered from what is known. Ask only what has a certain answer.",
    ),
    "other_language": TurnReason(
        "an answer is in another language than its question",
        "An answer is in another language than its question. Write both in the same one.",
    ),
    "repeated": TurnReason("a question or a longer answer occurs twice", "A question or an answer is repeated."),
    "question_too_long": TurnReason("a question is longer than allowed", "A question is too long."),
    "too_short": TurnReason("an answer is shorter than required", "The answer is too short. Say more."),
    "too_long": TurnReason("an answer is longer than allowed", "The answer is too long. Be brief."),
    "list_formatting": TurnReason(
        "an answer has a list, headings or JSON instead of flowing text",
        "Write one flowing text, without a list, a heading or JSON.",
    ),
}


@dataclass(frozen=True, slots=True)
class Exchange:
    """A question and its answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class TurnLimits:
    """Inclusive bounds on a conversation of one type.

    Attributes:
        turns: number of exchanges.
        question: words of a question.
        answer: words of an answer.
        flowing: an answer must be flowing text, without lists or headings.
        open_ended: an answer may say that something is unknown, as in reasoning.
    """

    turns: tuple[int, int]
    question: tuple[int, int]
    answer: tuple[int, int]
    flowing: bool = False
    open_ended: bool = False


# By conversation type; wider than what the prompts request, since models count badly.
TURN_LIMITS: Mapping[str, TurnLimits] = {
    "conversation": TurnLimits((2, 12), (2, 40), (1, 100)),
    "detail": TurnLimits((1, 1), (2, 40), (15, 300), flowing=True),
    "reasoning": TurnLimits((1, 1), (4, 60), (25, 300), flowing=True, open_ended=True),
}

_BLANK = re.compile(r"[\W_]*")
_MARK = re.compile(
    r"<\s?/?\s?(?:image|img|im_start|im_end|video)\b[^>]*>|\[(?:image|img|insert\b[^\]]*)\]", re.IGNORECASE
)
_TURN_WITHIN = re.compile(
    r"(?:^|\n)[ \t>*#_-]*(?:question|q|user|human|person|assistant|answer|a|gpt|ai|bot)[ \t]*\#?\d*[*_]*[ \t]*:"
    r"|[.?!][\"')]?[ \t]+(?-i:Question|User|Human|Assistant|Answer|GPT|Q|A)[ \t]*\d*:[ \t]|<\|\w|\[/?INST\]|\n={3,}",
    re.IGNORECASE,
)
_ASKS = re.compile(
    r"(?:please |can you |could you |would you )?(?:describe|tell|explain|name|list|count|give|write|say|point|walk|take|"
    r"imagine|suggest|compare|identify|look|summari[sz]e|provide|discuss|share|state|guess|estimate)\b",
    re.IGNORECASE,
)
_GIVEN = r"(?:given|provided|supplied|available|following|above|accompanying|textual|input)"
# Patterns of texts in lower case, which are searched in a third of the time that ignoring case takes:
# (what begins at the start of a word, words that allow it if a caption uses one of them)
_SOURCE_WORDINGS = (
    (r"captions?\b|captioned\b", "caption captions captioned"),
    (r"bounding[ -]?box(?:es)?\b|bbox(?:es)?\b|bound(?:ed|ing) by (?:the|a) box", ""),
    (r"(?:co-?ordinates|coordinate system|normali[sz]ed (?:position|value|box))\b", "coordinates"),
    (r"annotat(?:ions?|ed)\b|metadata\b", "annotation annotations annotated"),
    (
        (
            rf"(?:the|these|this|those|each|all|both|your|my|other|one|first|second|third|last|{_GIVEN}|"
            r"image(?:'s)?|photo(?:'s)?|picture(?:'s)?) descriptions?\b(?! of (?:it|him|her|them)\b)"
        ),
        "description descriptions",
    ),
    (r"(?:as|is|are|was|were|being|been) (?:also )?described (?:as|in|by|here)\b|as described\b", "described"),
    (r"(?:not|never|being|been|is|are|was|were|as) (?:also |explicitly |specifically |directly )?mentioned\b", "mentioned"),
    (
        (
            r"(?:text(?:ual)?|several|multiple|various|different|two|three|four|five|six) descriptions?\b"
            r"|descriptions? (?:of|for) (?:the|this) (?:image|picture|photo|scene) (?:says?|states?|mentions?|tells?)\b"
        ),
        "description descriptions",
    ),
    (
        (
            r"(?:input|prompt|information|data|sentences?|descriptions?) (?:also |all |clearly |explicitly )?"
            r"(?:says?|said|states?|mentions?|mentioned|indicates?|suggests?|impl(?:y|ies)|tells?|notes?|describes?|agrees?)\b"
            r"|text (?:also |clearly )?(?:mentions?|describes?)\b|as (?:stated|noted|listed|specified|indicated)\b"
        ),
        "text information sentence sentences",
    ),
    (
        (
            r"(?:object|box|detection|class|category) labels?\b|(?:is|are) label(?:l)?ed as\b"
            r"|(?:objects?|things?|items?|persons?|people|animals?|regions?) label(?:l)?ed\b"
        ),
        "label labels labeled",
    ),
    (
        (
            r"detected\b|detections?\b(?! dogs?\b)|(?:given|provided|listed|bounded|bounding) "
            r"(?:\w+ )?(?:objects?|items?|things?|regions?)\b"
        ),
        "detected detection given provided",
    ),
    (r"(?:information|context|texts?|data|details|sentences|objects|labels) (?:provided|given|supplied)\b", ""),
    (
        (
            r"box(?:es)? (?:shows?|says?|indicates?|suggests?|tells?|spans?|ranges?|goes from|extends? from)\b"
            r"|(?:his|her|its|their) box(?:es)? (?:is|are|lies?|ends?|starts?|overlaps?|covers?)\b"
        ),
        "box boxes",
    ),
    (
        (
            rf"{_GIVEN} (?:\w+ )?(?:information|context|texts?|data|details?|sentences?|boxes|labels|list|prompt)\b"
            r"|(?:according to|based on|from|per) (?:the|this|these) "
            r"(?:information|context|texts?|data|sentences?|boxes|labels|prompt)\b"
        ),
        "",
    ),
    (r"the (?:(?:left|right|top|bottom|detected|object|other|large|small)\w* )?box(?:es)? (?:around|labell?ed|marked)\b", "box boxes"),
    (
        (
            r"the text (?:also |clearly |above |below )?(?:states?|stated|suggests?|indicates?|impl(?:y|ies)|notes?|specif(?:y|ies)|tells? (?:us|me))\b"
            r"|the text (?:also |clearly )?says? (?:that|there)\b"
        ),
        "text sign signs writing word words letters reads reading says saying",
    ),
    (
        (
            r"the user(?:'s (?:question|input|prompt|message|request|description|text)\b"
            r"| (?:also |has |is |was |wants? |had )*(?:says?|said|asks?|asked|asking|mentions?|mentioned|states?|stated|describes?|described|provides?|provided|gave|given|told|writes?|wrote|to know)\b)"
        ),
        "user users",
    ),
    (
        (
            r"(?:the|this|that|your|given) context (?:also |clearly |strongly )?(?:suggests?|suggested|says?|said|states?|stated|mentions?|mentioned|"
            r"implies|implied|indicates?|indicated|tells?|told|notes?|describes?|described|provides?|provided|shows?|lists?|listed|contains?|includes?|gives?)\b"
        ),
        "",
    ),
    (
        (
            r"(?:two|three|four|five|six|seven|eight|nine|ten|\d+|several|multiple|many) "
            r"(?:other |separate |distinct |different |individual )?(?:\w+ )?instances\b(?!,? (?:in which|where|when|that)\b)"
        ),
        "instance instances",
    ),
    (r"i (?:was|am|have been|'m) (?:given|provided|told)\b|i (?:can(?:no|')t|do not|don't) (?:actually )?see the (?:image|picture|photo)\b", ""),
)  # fmt: skip
_SOURCES: tuple[tuple[re.Pattern[str], frozenset[str]], ...] = tuple(
    (re.compile(rf"\b(?:{pattern})"), frozenset(words.split())) for pattern, words in _SOURCE_WORDINGS
)
# Nearly all texts have none of them, which is seen at each start of a word instead of at each letter by each pattern.
_ANY_SOURCE = re.compile(rf"\b(?=\w)(?:{'|'.join(pattern for pattern, _ in _SOURCE_WORDINGS)})")
_NUMBER = r"-?(?:0|1)?\.\d+|[01](?:\.0+)?"
_WHOLE = r"\d{1,4}(?:\.\d+)?"
_LIST_OF_NUMBERS = re.compile(
    rf"[\[(]\s*(?:{_NUMBER})\s*,\s*(?:{_NUMBER})(?:\s*,\s*(?:{_NUMBER}))*\s*[\])]|[\[(]\s*{_WHOLE}(?:\s*,\s*{_WHOLE})+\s*[\])]"
)
_AXIS = re.compile(
    r"\b[xy][12]?\s?(?:=|:|is|of|between)\s?-?\d?\.?\d|\b[xy]-(?:axis|coordinate)|\bcorner (?:is |lies )?at \(?\d",
)
_FRACTION = re.compile(
    r"(?<![\d.$€£¥])0?\.\d+(?![\d.]*\d)(?! ?(?:dollars?|cents?|euros?|pounds?|miles?|meters?|metres?|inches|liters?)\b)"
)
_OF_PICTURE = re.compile(
    r"\b\d{1,3}(?:\.\d+)?\s?(?:%|percent)\s+(?:of the way|from|across|down|along|to the (?:left|right))\b"
    r"|\b\d{1,3} ?(?:%|percent)? ?(?:to|and|-|–) ?\d{1,3} ?(?:%|percent) of (?:the|its) (?:image|picture|photo|width|height|frame)\b|\b\d+\s?(?:px|pixels?)\b",
)
_SURELY_OPEN = re.compile(
    r"\b(?=\w)(?:(?:can(?:no|')t|could ?n(?:o|')t|can not|could not|impossible to|not possible to|unable to|difficult to) (?:be )?"
    r"(?:\w+ly )?(?:determined?|tell|told|say|said|know|known|identif(?:y|ied)|infer(?:red)?|answer(?:ed)?|specif(?:y|ied)|ascertain(?:ed)?|confirm(?:ed)?)\b"
    r"|(?:not|never|[a-z]*n't) (?:been )?(?:explicitly |specifically |directly |clearly )?(?:mentioned|specified|stated|provided|indicated|described|given)\b"
    r"|(?:no|not enough|insufficient|without (?:more|further|additional)|lack of) (?:\w+ )?(?:information|context|mention)\b"
    r"|(?:image|picture|photo|scene|context|it) (?:does|do|did) ?(?:not|n't) (?:\w+ly )?(?:say|specify|mention|indicate|provide|state)\b"
    r"|i(?: am|'m)? (?:do not|don't|not|cannot|can't|can not|could not) (?:know|sure|tell|see|determine|say)\b)",
)
_OPEN = re.compile(
    r"\b(?=\w)(?:(?:(?:is|are|it's|remains?) (?:not clear|unclear|unknown|uncertain|ambiguous|unspecified)|not (?:clearly|fully) visible)\b"
    r"|no (?:\w+ )?(?:details|indication)\b|hard to (?:say|tell)\b|(?:n/a|not applicable|no answer)\b)",
)
_LIST = re.compile(r"^[ \t]*(?:[-*•]|\d{1,2}[.)]|#{1,6}|\*\*[^*\n]+\*\*:?[ \t]*$)[ \t]*", re.MULTILINE)
_LIST_LINES = 2
_JSON = re.compile(r"\s*(?:\{\s*[\"'}]|\[\s*[\"'{\[])")
_MIN_WORDS_COMPARED = 8  # shorter answers may be repeated


def check_turns(turns: Sequence[Exchange], kind: str, context: ImageContext) -> OutputError | None:
    """Return the first error of a conversation, or None.

    Args:
        turns: the exchanges.
        kind: conversation type, a key of `TURN_LIMITS`.
        context: what the model was given.

    Returns:
        The error; its detail names the turn, from 1.
    """
    limits = TURN_LIMITS[kind]
    if len(turns) < limits.turns[0]:
        return _turn_error("too_few_turns", f"{len(turns)} of at least {limits.turns[0]}")
    if len(turns) > limits.turns[1]:
        return _turn_error("too_many_turns", f"{len(turns)} of at most {limits.turns[1]}")
    context_text = _ContextText.of(context)
    for number, turn in enumerate(turns, 1):
        reason = _check_exchange(turn, limits) or context_text.check(turn, limits)
        if reason:
            return _turn_error(reason, f"turn {number}")
    long_answers = [turn.answer for turn in turns if len(turn.answer.split()) >= _MIN_WORDS_COMPARED]
    if any(
        len({normalize_text(text) for text in texts}) < len(texts)
        for texts in ([turn.question for turn in turns], long_answers)
    ):
        return _turn_error("repeated", "")
    return None


def check_text(text: str, limits: TurnLimits, context: ImageContext) -> str:
    """Return the reason code of a text about an image that answers no question, such as a caption; empty if it passes.

    Args:
        text: the text.
        limits: bounds, of which those on questions do not matter.
        context: what is known of the image; may be empty.
    """
    turn = Exchange("Describe", text)
    return _check_exchange(turn, limits) or _ContextText.of(context).check(turn, limits)


def _turn_error(reason: str, detail: str) -> OutputError:
    return OutputError(reason, TURN_REASONS[reason].retry_hint, detail)


def _check_exchange(turn: Exchange, limits: TurnLimits) -> str:
    """Return the reason code for an error in the form of a turn, or an empty string."""
    both = (turn.question, turn.answer)
    if any(_BLANK.fullmatch(text) for text in both):
        return "empty_turn"
    if any(_MARK.search(text) for text in both):
        return "image_token"
    if any(_TURN_WITHIN.search(text) for text in both):
        return "not_alternating"
    if "?" not in turn.question and not _ASKS.match(turn.question.strip()):
        return "no_question"
    if limits.flowing and (_JSON.match(turn.answer) or len(_LIST.findall(turn.answer)) >= _LIST_LINES):
        return "list_formatting"
    return _check_length(turn, limits)


def _check_length(turn: Exchange, limits: TurnLimits) -> str:
    question_words, answer_words = len(turn.question.split()), len(turn.answer.split())
    if question_words < limits.question[0]:
        return "no_question"
    if question_words > limits.question[1]:
        return "question_too_long"
    if answer_words < limits.answer[0]:
        return "too_short"
    return "too_long" if answer_words > limits.answer[1] else ""


def _label_reference_pattern(context: ImageContext) -> re.Pattern[str] | None:
    """Return a pattern for boxes named by their label ('labeled "dog"', "one dog instance"); None without labels."""
    labels = {box.label for box in context.boxes} | {name for name, _ in context.more}
    if not labels:
        return None
    names = "|".join(re.escape(label) for label in sorted(labels, key=lambda label: (-len(label), label)))
    called = r"\b(?:labels?|label(?:l)?ed|tag(?:ged)?|marked|categori[sz]ed|classified)(?: (?:as|with|simply|only|just|a|an|is|the|of))*"
    return re.compile(
        rf"{called} ?[\"'“‘](?:{names})s?[\"'”’.,;!?]|{called} (?:{names})s?(?:[.,;!?]|\Z)"
        rf"|\b(?:{names})s? instances?\b|\binstances? of (?:a |an |the )?[\"'“‘]?(?:{names})(?:s|es)?\b",
        re.IGNORECASE,
    )


@dataclass(frozen=True, slots=True)
class _ContextText:
    """The text of the captions, whose words and numbers a turn may use, and the coordinates of the boxes, which it may not."""

    text: str
    edges: frozenset[float]
    labelled: re.Pattern[str] | None

    @classmethod
    def of(cls, context: ImageContext) -> "_ContextText":
        text = " ".join(context.captions).lower()
        edges = frozenset(edge for box in context.boxes for edge in box_corners(box))
        return cls(text, edges, _label_reference_pattern(context))

    def check(self, turn: Exchange, limits: TurnLimits) -> str:
        """Return the reason code for an error in the content of a turn, or an empty string."""
        question, answer = (text.replace("’", "'").lower() for text in (turn.question, turn.answer))
        for text in (question, answer):
            if _ANY_SOURCE.search(text) and self._mentions_source(text):
                # "It is not mentioned" is both; that there is no answer is the more specific reason.
                return "unanswerable" if _is_open(answer, limits) else "mentions_source"
            if self.labelled is not None and self.labelled.search(text) and "label" not in self.text:
                return "mentions_source"
            if self._has_coordinates(text):
                return "coordinates"
        return "unanswerable" if _is_open(answer, limits) else ""

    def _mentions_source(self, text: str) -> bool:
        said = frozenset(re.findall(r"[a-z]+", self.text))
        return any(pattern.search(text) and said.isdisjoint(words) for pattern, words in _SOURCES)

    def _has_coordinates(self, text: str) -> bool:
        if _LIST_OF_NUMBERS.search(text) or _AXIS.search(text) or _OF_PICTURE.search(text):
            return True
        fractions = [found[0] for found in _FRACTION.finditer(text) if found[0] not in self.text]
        return any(len(each.partition(".")[2]) > 1 or float(each) in self.edges for each in fractions)


def _is_open(answer: str, limits: TurnLimits) -> bool:
    return _SURELY_OPEN.search(answer) is not None or (not limits.open_ended and _OPEN.search(answer) is not None)
