"""Generator of captions by a model that sees the image; the pair may have no text at all.

One request asks for all forms: *short* (a sentence), *long* (a paragraph) and *tags* (nouns, separated by commas). The
image is most of its tokens, so several captions of each form are requested in one answer as well.

Each caption is checked for its form and length, for talk about the image instead of its content, and for its language.
Where the pair has captions or boxes, it is checked against these, which the model is not shown: a number above that of the
boxes rejects it, and things without support are counted in ``scores``: ``things``, ``unsupported_things`` and
``hallucination``, their share (`conversations.hallucination`), above `LLMCaptionOptions.max_hallucination` of which the
caption is rejected. A number below that of the boxes passes, since a caption may speak of some, and so does
another colour: of 3,000 captions of COCO, 15 give a thing a colour that the other captions of the image contradict.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import BaseModel, ValidationError, field_validator

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id, compact_json, pair_key
from pairwright.datasets.suggestions import require_known
from pairwright.generators.captions.box_checks import exceeds_boxes, number_of
from pairwright.generators.captions.image_words import ImageWords
from pairwright.generators.captions.phrases import noun_phrases
from pairwright.generators.conversations.hallucination import HypernymLookup, ObjectSupport, SupportedObjects
from pairwright.generators.conversations.image_context import ImageContext
from pairwright.generators.conversations.turn_checks import TurnLimits, check_text
from pairwright.generators.language.identification import answers_in_other_language
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.language.vocabulary import normalize_text
from pairwright.generators.llm.client.messages import Image, Request
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.images import MessageImages, missing_image_reason
from pairwright.generators.llm.output.answers import request_answers
from pairwright.generators.llm.output.json_parsing import strip_control_tokens
from pairwright.generators.llm.output.json_schema import build_schema
from pairwright.generators.llm.output.lists import ListEntry, ListShape
from pairwright.generators.prompts.book import PromptBook

NAME = "llm-captions"
VERSION = 4
PROMPT = "captions"

Form = Literal["short", "long", "tags"]
FORMS: tuple[str, ...] = Form.__args__  # type: ignore[attr-defined]
KINDS: Mapping[str, str] = {"short": "short-caption", "long": "long-caption", "tags": "tags"}

FORM_OF: Mapping[str, str] = {kind: form for form, kind in KINDS.items()}

CAPTION_REASONS: Mapping[str, str] = {
    "missing": "the answer has fewer captions of the form than requested",
    "spare": "the answer has more captions of the form than requested",
    "not_asked": "a form that was not requested",
    "too_short": "fewer words (tags: fewer tags) than the form has",
    "too_long": "more words (tags: more tags, or tags of more than 4 words) than the form has",
    "hedged": "says that something is unclear, unknown or cannot be seen",
    "repeated": "equal to another caption of the image",
    "above_boxes": "names more things than there are boxes of them",
    "unsupported": "the share of things that neither captions nor boxes support is above --max-hallucination",
}

# Words; wider than what the prompt requests, since models count badly.
LIMITS: Mapping[str, TurnLimits] = {
    "short": TurnLimits((1, 1), (1, 1), (3, 40), flowing=True),
    "long": TurnLimits((1, 1), (1, 1), (20, 250), flowing=True),
}
MIN_TAGS, MAX_TAGS, MAX_TAG_WORDS = 1, 30, 4
_TOKENS = {"short": 60, "long": 260, "tags": 120}  # of an entry, at most, with its JSON

_ABOUT_IMAGE = re.compile(
    r"\s*(?:(?:in|on) )?(?:the|this|an?) (?:(?:given|provided|color|close-up|black and white) )?(?:image|photo|photograph|picture|scene)"
    r"(?: here)?(?: (?:shows|showing|depicts|depicting|features|featuring|captures|capturing|displays|presents|portrays|contains|is of|of)|,)\s+"
    r"(?:us )?(?=\w)",
    re.IGNORECASE,
)


class WrittenCaption(BaseModel):
    """One of the captions of an answer."""

    form: Form
    caption: str

    @field_validator("form", mode="before")
    @classmethod
    def _in_lower_case(cls, value: object) -> object:
        return value.strip().lower().removesuffix(" caption") if isinstance(value, str) else value

    @field_validator("caption", mode="before")
    @classmethod
    def _tags_may_be_a_list(cls, value: object) -> object:
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return ", ".join(value)
        return value


class WrittenCaptions(BaseModel):
    """The answer to the prompt."""

    captions: list[WrittenCaption]


CAPTIONS_SHAPE = ListShape(WrittenCaptions, WrittenCaption)


@dataclass(frozen=True, slots=True)
class LLMCaptionOptions:
    """What to make.

    Attributes:
        forms: of `FORMS`.
        per_image: captions of each form.
        max_hallucination: share of unsupported things above which a caption is rejected, 0-1; only where the pair has
            captions or boxes.
        seed: recorded in the origin of each row.
    """

    forms: tuple[str, ...] = ("short",)
    per_image: int = 1
    max_hallucination: float = 1.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A caption as the model wrote it, or why there is none.

    Attributes:
        form: of `FORMS`.
        text: the caption, cleaned.
        reason: why it is rejected; empty if it is not, so far.
        request: key of the answer.
    """

    form: str
    text: str = ""
    reason: str = ""
    request: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """What captions and boxes of an image say about a new caption: support of its things, and whether it counts too many."""

    support: SupportedObjects
    overcounts: bool

    def reason(self, max_hallucination: float) -> str:
        """Return why the caption is rejected; empty if it is not."""
        if self.overcounts:
            return "above_boxes"
        return "unsupported" if self.support.share > max_hallucination else ""

    def scores(self) -> dict[str, float]:
        """Return ``things``, ``unsupported_things`` and their share ``hallucination``."""
        things, unsupported = len(self.support.things), len(self.support.unsupported)
        share = round(self.support.share, 6)
        return {"things": float(things), "unsupported_things": float(unsupported), "hallucination": share}


class LLMCaptions:
    """The generator (`protocols.CheckedLLMGenerator`) of captions.

    Args:
        kinds: WordNet.
        tagger: tags what the model wrote, and the captions of the pair.
        prompts: prompts, with `PROMPT`.
        model: name of the model at the server.
        options: what to make.
        images: reads images; None: at the default size.

    Raises:
        UsageError: an unknown form, less than one caption per image, or a share out of range.
    """

    name = NAME
    version = VERSION
    draws = False

    def __init__(  # noqa: PLR0913 - the parts of a build's materials
        self,
        kinds: HypernymLookup,
        tagger: Tagger,
        prompts: PromptBook,
        model: str,
        options: LLMCaptionOptions | None = None,
        *,
        images: MessageImages | None = None,
    ) -> None:
        self.options = options or LLMCaptionOptions()
        require_known("no such form of caption:", self.options.forms, FORMS)
        if not self.options.forms or self.options.per_image < 1 or not 0 <= self.options.max_hallucination <= 1:
            raise UsageError("captions: at least one form, at least 1 per image, max_hallucination from 0 to 1.")
        self._prompt = prompts.get(PROMPT)
        self._model, self._images, self._tagger = model, images or MessageImages(), tagger
        self._support = ObjectSupport(kinds, tagger)

    @property
    def kind(self) -> str:
        """Kind of the first form."""
        return KINDS[self.options.forms[0]]

    @property
    def prompts(self) -> tuple[str, ...]:
        """The prompt, as ``name@hash``."""
        return (self._prompt.id,)

    def ask(self, pair: Pair, rng: random.Random, *, attempt: int = 0) -> LLMStep[list[WrittenText]]:
        """Return the steps for ``pair``, which end in the captions of the answer."""
        del rng
        image = self._images.of_pair(pair)
        if image is None:
            return [WrittenText(form, reason=missing_image_reason(pair.image)) for form in self.options.forms]
        [answer] = yield from request_answers([self._request(pair, image, attempt)], CAPTIONS_SHAPE)
        if answer.value is None:
            return [WrittenText(form, "", answer.reason, answer.key) for form in self.options.forms]
        written = [_written(entry, answer.key) for entry in answer.value]
        for form in self.options.forms:
            missing = self.options.per_image - sum(each.form == form for each in written)
            written += [WrittenText(form, "", "missing", answer.key)] * missing
        return written

    def check(self, batch: Sequence[tuple[Pair, Sequence[WrittenText]]]) -> list[list[Annotation]]:
        """Return one annotation for each caption of each pair, kept or rejected."""
        contexts = [ImageContext.of(pair) for pair, _ in batch]
        texts = [(pair, each, context) for (pair, own), context in zip(batch, contexts, strict=True) for each in own]
        compared = [one for one in texts if one[1].text and not one[1].reason and _is_known(one[2])]
        tokens = self._tagger.tag([each.text for _, each, _ in compared])
        found = {
            id(each): Compared(self._support.of_tokens([own], context), _overcounts(pair, own))
            for (pair, each, context), own in zip(compared, tokens, strict=True)
        }
        return [
            [
                self._annotation(pair, each, reason, ordinal, found.get(id(each)))
                for ordinal, (each, reason) in enumerate(self._reasons(own, context, found))
            ]
            for (pair, own), context in zip(batch, contexts, strict=True)
        ]

    def _request(self, pair: Pair, image: Image, attempt: int) -> Request:
        count = self.options.per_image
        room = count * sum(_TOKENS[form] for form in self.options.forms)
        request = self._prompt.request(
            {"forms": list(self.options.forms), "count": count},
            model=self._model,
            row=pair.key,
            sample=attempt,
            schema=build_schema(WrittenCaptions),
            images=[image],
            max_tokens=max(room, int(self._prompt.parameters.get("max_tokens", 0))),
        )
        return replace(request, expects=_expected(request.expects, self.options.forms, count))

    def _reasons(
        self, written: Sequence[WrittenText], context: ImageContext, found: Mapping[int, Compared]
    ) -> Iterator[tuple[WrittenText, str]]:
        """Yield the captions of an image, each with the reason why it is rejected; empty if it is kept."""
        seen = {_normalized(caption) for caption in context.captions}
        kept: Counter[str] = Counter()
        for each in written:
            reason = each.reason or self._form_reason(each, context)
            if not reason and (compared := found.get(id(each))):
                reason = compared.reason(self.options.max_hallucination)
            if not reason:
                reason = self._surplus_reason(each, kept, seen)
            if not reason:
                kept[each.form] += 1
                seen.add(_normalized(each.text))
            yield each, reason

    def _form_reason(self, one: WrittenText, context: ImageContext) -> str:
        """Return the reason of a caption's length, wording or language."""
        if answers_in_other_language(one.text, self._prompt.messages[0].text, context.captions):
            return "other_language"
        reason = _tags_reason(one.text) if one.form == "tags" else check_text(one.text, LIMITS[one.form], context)
        return "hedged" if reason == "unanswerable" else reason

    def _surplus_reason(self, one: WrittenText, kept: Mapping[str, int], seen: AbstractSet[str]) -> str:
        if one.form not in self.options.forms:
            return "not_asked"
        if _normalized(one.text) in seen:
            return "repeated"
        return "spare" if kept[one.form] == self.options.per_image else ""

    def _annotation(
        self, pair: Pair, one: WrittenText, reason: str, ordinal: int, compared: Compared | None
    ) -> Annotation:
        kind = KINDS[one.form]
        origin = Origin(NAME, VERSION, self.options.seed, self._model, self._prompt.id, one.request)
        return Annotation(
            id=annotation_id(pair.key, kind, origin, str(ordinal), one.text),
            key=pair.key,
            kind=kind,
            origin=origin,
            text=one.text,
            source_text=pair.caption,
            scores=compared.scores() if compared is not None else {},
            status="rejected" if reason else "kept",
            reason=reason,
        )


def captioned_pairs(pair: Pair, rows: Sequence[Annotation]) -> Iterator[Pair]:
    """Yield a pair for each kept caption of an image.

    The other captions of the image, its own first and tags excluded, are the ``captions`` of each pair; ``meta`` has the
    form, the scores and the origin of its caption as well.
    """
    kept = [row for row in rows if row.status == "kept"]
    sentences = [row.text for row in kept if FORM_OF[row.kind] != "tags"]
    known = [caption for caption in dict.fromkeys([pair.caption, *pair.captions, *sentences]) if caption]
    for row in kept:
        origin = row.origin
        made = {"generator": origin.generator, "model": origin.model, "prompt": origin.prompt}
        yield replace(
            pair,
            key=pair_key(pair.source, pair.source_id or pair.image, row.text),
            caption=row.text,
            captions=tuple(caption for caption in known if caption != row.text),
            meta=compact_json({**json.loads(pair.meta), "form": FORM_OF[row.kind], **row.scores, **made}),
        )


def _is_known(context: ImageContext) -> bool:
    return bool(context.captions or context.boxes)


def _normalized(text: str) -> str:
    return normalize_text(text).rstrip(" .")


def _expected(typical: str, forms: Sequence[str], count: int) -> str:
    """Return a typical answer with ``count`` captions of each form, from one that has all forms; for cost estimates."""
    try:
        entries = WrittenCaptions.model_validate_json(typical).captions
    except ValidationError:  # a prompt of the user
        return typical
    wanted = [entry for form in forms for entry in entries if entry.form == form for _ in range(count)]
    return WrittenCaptions(captions=wanted).model_dump_json()


def _written(entry: ListEntry[WrittenCaption], request: str) -> WrittenText:
    """Return an entry of an answer, cleaned of control characters and of an opening that speaks of the image."""
    if entry.value is None:
        form, text = (entry.fields.get(name) for name in ("form", "caption"))
        reason = entry.error.word if entry.error is not None else "malformed"
        known = form if isinstance(form, str) and form in FORMS else FORMS[0]
        return WrittenText(known, text if isinstance(text, str) else "", reason, request)
    form, text = entry.value.form, " ".join(strip_control_tokens(entry.value.caption)[0].split())
    return WrittenText(form, ", ".join(_tags(text)) if form == "tags" else without_opening(text), "", request)


def _overcounts(pair: Pair, tokens: Sequence[Token]) -> bool:
    """Return whether a text names more things than there are boxes of them, and no caption of the pair says that number."""
    words = ImageWords(pair)
    for phrase in noun_phrases(tokens):
        said, noun = tokens[phrase.count].text.lower() if phrase.count >= 0 else "", tokens[phrase.head].lemma
        if (
            (number := number_of(said)) > 1
            and exceeds_boxes(words, noun, number)
            and not words.states_attribute(noun, said)
        ):
            return True
    return False


def without_opening(text: str) -> str:
    """Return a caption without an opening such as "The image shows", which says nothing about the content."""
    found = _ABOUT_IMAGE.match(text)
    rest = text[found.end() :] if found else text
    return rest[:1].upper() + rest[1:] if found and rest else text


def _tags(text: str) -> list[str]:
    """Return the distinct tags of a text in their order."""
    found: dict[str, str] = {}
    for tag in re.split(r"[,;\n]", text):
        if name := tag.strip(" .#-*\t"):
            found.setdefault(name.lower(), name)
    return list(found.values())


def _tags_reason(text: str) -> str:
    tags = _tags(text)
    if len(tags) < MIN_TAGS:
        return "too_short"
    too_long = len(tags) > MAX_TAGS or any(len(tag.split()) > MAX_TAG_WORDS for tag in tags)
    return "too_long" if too_long else ""
