"""Generator of template conversations: questions whose answers follow from boxes and captions.

Types, as in LLaVA and LLaVA-1.5, but without a model:

- *brief*: the naive expansion, an instruction with the caption as the answer;
- *conversation*: several grounded turns about one image, answered in sentences;
- *short*: the same kinds of questions, with the prompt for an answer in a word or phrase;
- *choice*: questions with four options, with the prompt for the option's letter. In every conversation each letter is
  right equally often, to within one.

Questions (`grounding`, `box_facts`, `caption_facts`) are about presence, numbers, colours, actions, places, positions
and sizes. "No" is as frequent as "yes": exactly so for presence, in every conversation and only for labels in
`vocabulary`, which the source annotates in every image; elsewhere on average. Without a vocabulary a missing box proves
nothing, and presence and numbers of boxes are not asked about. The presence of a label is asked before anything else
about it.

HTML entities and tags are removed from captions. A pair without facts is rejected as `no_context`, and so is a brief
answer that would be a placeholder or a URL; one that is not in English as `other_language`, since the question is; a
caption with an image token as `image_token`. Left, right, above, below and size refer to the image plane.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from pairwright.datasets.captions.cleaning import clean_caption, has_content
from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import IMAGE_TOKEN, Annotation, Origin, Pair, Turn, annotation_id
from pairwright.datasets.rng import make_rng
from pairwright.datasets.suggestions import require_known
from pairwright.generators.conversations import question_templates
from pairwright.generators.conversations.facts import Fact
from pairwright.generators.conversations.grounding import Grounding
from pairwright.generators.conversations.question_templates import PromptPlace, PromptTurns
from pairwright.generators.language.identification import other_language
from pairwright.generators.language.tokens import Token
from pairwright.generators.lexicon.label_sets import labels_of

NAME = "template-conversations"
VERSION = 7
TEMPLATE_TYPES = ("conversation", "brief", "short", "choice")
LETTERS = "ABCD"

_Turns = tuple[Turn, ...]
_Question = tuple[str, tuple[str, ...]]  # question, lines of its options


@dataclass(frozen=True, slots=True)
class ConversationOptions:
    """Options of `TemplateConversations`.

    Attributes:
        types: requested types, of `TEMPLATE_TYPES`.
        vocabulary: labels (singular) that the source annotates in every image; ``coco`` means COCO's 80 categories.
        max_turns: maximum number of question-answer turns; 0 = unlimited.
        short_prompt: response-format prompt of type short; empty for none.
        choice_prompt: response-format prompt of type choice; empty for none.
        prompt_place: position of that prompt: on a line below question and options, after the question on its line, or
            on a line above it.
        prompt_turns: add that prompt to each turn or only to the first, as in LLaVA-1.5's mixture.
        seed: stored in the origin of each row.
    """

    types: tuple[str, ...] = ("conversation", "brief")
    vocabulary: tuple[str, ...] = ()
    max_turns: int = question_templates.MAX_TURNS
    short_prompt: str = question_templates.SHORT_FORMAT
    choice_prompt: str = question_templates.CHOICE_FORMAT
    prompt_place: PromptPlace = "below"
    prompt_turns: PromptTurns = "each"
    seed: int = 0


class TemplateConversations:
    """Generates template conversations; a `protocols.RuleGenerator`.

    Raises:
        UsageError: an option has an unknown or negative value.
    """

    name = NAME
    version = VERSION

    def __init__(self, options: ConversationOptions | None = None) -> None:
        self.options = options or ConversationOptions()
        require_known("no such type of conversation:", self.options.types, TEMPLATE_TYPES)
        if self.options.max_turns < 0:
            raise UsageError(f"max_turns must be 0 (unlimited) or more, not {self.options.max_turns}.")
        for name, value, known in (
            ("prompt_place", self.options.prompt_place, get_args(PromptPlace)),
            ("prompt_turns", self.options.prompt_turns, get_args(PromptTurns)),
        ):
            require_known(f"no such {name}:", [value], known)
        self._vocabulary = labels_of(self.options.vocabulary)
        self._makers: dict[str, Callable[[Pair, Sequence[Token], random.Random], _Turns]] = {
            "conversation": self._conversation,
            "brief": self._brief,
            "short": self._short,
            "choice": self._choice,
        }

    def annotate(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> list[Annotation]:
        """Return one annotation for each requested type, kept or rejected."""
        seed = rng.getrandbits(64)
        return [
            self._annotation(pair, kind, self._makers[kind](pair, tokens, make_rng(seed, kind)))
            for kind in self.options.types
        ]

    def facts(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> list[Fact]:
        """Return the facts that a conversation about ``pair`` asks about, in order."""
        return self._chosen(Grounding.of(pair, tokens, self._vocabulary).facts(rng), rng)

    def _annotation(self, pair: Pair, kind: str, made: _Turns) -> Annotation:
        marked = any(IMAGE_TOKEN in turn.text for turn in made)
        turns = () if marked else made
        foreign = kind == "brief" and bool(turns) and bool(other_language(turns[-1].text))  # the question is English
        turns = () if foreign else turns
        origin = Origin(NAME, VERSION, self.options.seed)
        text = "\n".join(turn.text for turn in turns)
        return Annotation(
            id=annotation_id(pair.key, kind, origin, kind, text),
            key=pair.key,
            kind=kind,
            origin=origin,
            turns=turns,
            status="kept" if turns else "rejected",
            reason="" if turns else "image_token" if marked else "other_language" if foreign else "no_context",
        )

    def _brief(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> _Turns:
        del tokens
        caption = clean_caption(pair.caption).strip()
        if not has_content(caption):
            return ()
        return Turn("human", rng.choice(question_templates.BRIEF)), Turn("assistant", caption)

    def _conversation(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> _Turns:
        return _to_turns((fact.question(rng), fact.full()) for fact in self.facts(pair, tokens, rng))

    def _short(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> _Turns:
        grounding = Grounding.of(pair, tokens, self._vocabulary)
        kinds = [[fact for fact in facts if fact.says or fact.short] for facts in grounding.facts(rng)]
        facts = self._chosen(kinds, rng)
        return self._prompted((((fact.question(rng), ()), fact.brief()) for fact in facts), self.options.short_prompt)

    def _choice(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> _Turns:
        grounding = Grounding.of(pair, tokens, self._vocabulary)
        kinds = [[fact for fact in facts if len(fact.wrong) >= len(LETTERS) - 1] for facts in grounding.facts(rng)]
        facts = self._chosen([*kinds, grounding.which_present(rng)], rng)
        right = [letter for _ in range(0, len(facts), len(LETTERS)) for letter in rng.sample(LETTERS, len(LETTERS))]
        exchanges = ((_format_choice(fact, letter, rng), letter) for fact, letter in zip(facts, right, strict=False))
        return self._prompted(exchanges, self.options.choice_prompt)

    def _prompted(self, exchanges: Iterable[tuple[_Question, str]], prompt: str) -> _Turns:
        """Return the turns with the response-format prompt, as the options require."""
        only_first = self.options.prompt_turns == "first"
        return _to_turns(
            (_format_question(question, "" if only_first and number else prompt, self.options.prompt_place), answer)
            for number, (question, answer) in enumerate(exchanges)
        )

    def _chosen(self, kinds: Sequence[Sequence[Fact]], rng: random.Random) -> list[Fact]:
        """Return the facts to ask about, drawn from the kinds in turn for variety."""
        queues = [rng.sample(facts, len(facts)) for facts in kinds if facts]
        most = self.options.max_turns or sum(map(len, queues))
        chosen: list[Fact] = []
        while queues and len(chosen) < most:
            queues = [queue for queue in queues if queue]
            chosen += [queue.pop() for queue in queues]
        return _presence_first(_balance_yes_no(chosen[:most], rng))


def _balance_yes_no(facts: list[Fact], rng: random.Random) -> list[Fact]:
    """Return the facts in random order with as many "yes" as "no" among the presence questions."""
    yes = [fact for fact in facts if fact.presence and fact.says == "yes"]
    no = [fact for fact in facts if fact.presence and fact.says == "no"]
    fewer = min(len(yes), len(no))
    kept = [fact for fact in facts if not fact.presence] + yes[:fewer] + no[:fewer]
    rng.shuffle(kept)
    return kept


def _presence_first(facts: list[Fact]) -> list[Fact]:
    """Return the facts with questions about presence before other questions about the same thing."""
    ordered: list[Fact] = []
    for fact in facts:
        later = (
            at for at, other in enumerate(ordered) if fact.presence and not set(fact.about).isdisjoint(other.about)
        )
        ordered.insert(next(later, len(ordered)), fact)
    return ordered


def _to_turns(exchanges: Iterable[tuple[str, str]]) -> _Turns:
    """Return the turns, each question once."""
    answers: dict[str, str] = {}
    for question, answer in exchanges:
        answers.setdefault(question, answer)
    return tuple(
        turn for question, answer in answers.items() for turn in (Turn("human", question), Turn("assistant", answer))
    )


def _format_question(question: _Question, prompt: str, place: PromptPlace) -> str:
    text, options = question
    line = f"{text} {prompt}" if prompt and place == "behind" else text
    above = [prompt] if prompt and place == "above" else []
    below = [prompt] if prompt and place == "below" else []
    return "\n".join((*above, line, *options, *below))


def _format_choice(fact: Fact, letter: str, rng: random.Random) -> _Question:
    """Return the question and its four options, with the right one at ``letter``."""
    options = rng.sample(fact.options(), len(LETTERS) - 1)
    options.insert(LETTERS.index(letter), fact.brief())
    lines = tuple(f"{name}. {option}" for name, option in zip(LETTERS, options, strict=True))
    return fact.question(rng), lines
