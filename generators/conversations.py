"""Instruction conversations by templates: questions whose answers the boxes and the captions prove.

Kinds, as LLaVA and LLaVA-1.5 have them, but without a model:

- *brief*: the naive expansion, an instruction of ours with the caption as the answer;
- *conversation*: several grounded turns about one image, answered in sentences;
- *short*: the same kinds of questions, each with the prompt for an answer in a word or phrase;
- *choice*: questions with four options, each with the prompt for the option's letter. Options are shuffled so that in
  every conversation each letter is right as often as any other, give or take one.

What is asked (`grounding`, `box_facts`, `caption_facts`): presence, numbers, colours, what somebody does, where things
are, where they stand to each other and in the picture, and which is larger. "No" is said as often as "yes": about
presence exactly, in every conversation, and only of labels in `vocabulary`, the set that the source marks in every
image; elsewhere by chance. Without a vocabulary a missing box proves nothing, and presence and numbers of boxes are not
asked. A label's presence is asked before anything else about it.

A pair about which nothing can be asked is rejected as `no_context`. Photographs are flat: left, right, above, below
and size are those of the picture.
"""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pairwright.datasets.chance import stream
from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation, Origin, Pair, Turn, annotation_id
from pairwright.generators import questions
from pairwright.generators.facts import Fact
from pairwright.generators.grounding import Grounding
from pairwright.generators.label_sets import labels_of
from pairwright.generators.language.tokens import Token

NAME = "template-conversations"
VERSION = 2
TYPES = ("conversation", "brief", "short", "choice")
LETTERS = "ABCD"

_Made = tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class ConversationOptions:
    """What to make.

    Attributes:
        types: of `TYPES`.
        vocabulary: labels (singular) that the source marks in every image where they occur; ``coco`` stands for COCO's
            80 categories.
        most_turns: question-answer turns of a conversation at most; 0 for all that can be proved.
        short_prompt: what stands below a question of kind short; empty: nothing.
        choice_prompt: what stands below the options of kind choice; empty: nothing.
        seed: written into the origin of each row.
    """

    types: tuple[str, ...] = ("conversation", "brief")
    vocabulary: tuple[str, ...] = ()
    most_turns: int = 24
    short_prompt: str = questions.SHORT_FORMAT
    choice_prompt: str = questions.CHOICE_FORMAT
    seed: int = 0


class TemplateConversations:
    """The rule generator (`protocols.RuleGenerator`) of template conversations.

    Raises:
        UsageError: the options name an unknown type or a negative number of turns.
    """

    name = NAME
    version = VERSION

    def __init__(self, options: ConversationOptions | None = None) -> None:
        self.options = options or ConversationOptions()
        unknown = sorted(set(self.options.types) - set(TYPES))
        if unknown:
            raise UsageError(f"no such type of conversation: {', '.join(unknown)}. Known: {', '.join(TYPES)}.")
        if self.options.most_turns < 0:
            raise UsageError(f"most_turns must be 0 (no limit) or more, not {self.options.most_turns}.")
        self._vocabulary = labels_of(self.options.vocabulary)
        self._makers: dict[str, Callable[[Pair, Sequence[Token], random.Random], _Made]] = {
            "conversation": self._conversation,
            "brief": self._brief,
            "short": self._short,
            "choice": self._choice,
        }

    def annotate(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> list[Annotation]:
        """Return one annotation for each asked type, kept or rejected as ``no_context``."""
        seed = rng.getrandbits(64)
        return [
            self._annotation(pair, kind, self._makers[kind](pair, tokens, stream(seed, kind)))
            for kind in self.options.types
        ]

    def _annotation(self, pair: Pair, kind: str, turns: _Made) -> Annotation:
        origin = Origin(NAME, VERSION, self.options.seed)
        said = "\n".join(turn.text for turn in turns)
        return Annotation(
            id=annotation_id(pair.key, kind, origin, kind, said),
            key=pair.key,
            kind=kind,
            origin=origin,
            turns=turns,
            status="kept" if turns else "rejected",
            reason="" if turns else "no_context",
        )

    def _brief(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> _Made:
        del tokens
        return Turn("human", rng.choice(questions.BRIEF)), Turn("assistant", pair.caption.strip())

    def _conversation(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> _Made:
        grounding = Grounding.of(pair, tokens, self._vocabulary)
        facts = self._chosen(grounding.facts(rng), rng)
        return _turns((fact.question(rng), fact.full()) for fact in facts)

    def _short(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> _Made:
        grounding = Grounding.of(pair, tokens, self._vocabulary)
        asked = [[fact for fact in facts if fact.says or fact.short] for facts in grounding.facts(rng)]
        facts = self._chosen(asked, rng)
        return _turns((_below(fact.question(rng), self.options.short_prompt), fact.brief()) for fact in facts)

    def _choice(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> _Made:
        grounding = Grounding.of(pair, tokens, self._vocabulary)
        asked = [[fact for fact in facts if len(fact.wrong) >= len(LETTERS) - 1] for facts in grounding.facts(rng)]
        facts = self._chosen([*asked, grounding.which_present(rng)], rng)
        right = [letter for _ in range(0, len(facts), len(LETTERS)) for letter in rng.sample(LETTERS, len(LETTERS))]
        return _turns(
            (_below(_with_options(fact, letter, rng), self.options.choice_prompt), letter)
            for fact, letter in zip(facts, right, strict=False)
        )

    def _chosen(self, kinds: Sequence[Sequence[Fact]], rng: random.Random) -> list[Fact]:
        """Return the facts to ask about: kinds take turns, so that a rich image is not asked one thing only."""
        queues = [rng.sample(facts, len(facts)) for facts in kinds if facts]
        most = self.options.most_turns or sum(map(len, queues))
        chosen: list[Fact] = []
        while queues and len(chosen) < most:
            queues = [queue for queue in queues if queue]
            chosen += [queue.pop() for queue in queues]
        return _in_order(_balanced(chosen[:most], rng))


def _balanced(facts: list[Fact], rng: random.Random) -> list[Fact]:
    """Return the facts in random order with as many "yes" as "no" among the presence questions."""
    yes = [fact for fact in facts if fact.presence and fact.says == "yes"]
    no = [fact for fact in facts if fact.presence and fact.says == "no"]
    fewer = min(len(yes), len(no))
    kept = [fact for fact in facts if not fact.presence] + yes[:fewer] + no[:fewer]
    rng.shuffle(kept)
    return kept


def _in_order(facts: list[Fact]) -> list[Fact]:
    """Return the facts so that whether something is there is asked before anything else is said of it."""
    ordered: list[Fact] = []
    for fact in facts:
        said = (at for at, other in enumerate(ordered) if fact.presence and not set(fact.about).isdisjoint(other.about))
        ordered.insert(next(said, len(ordered)), fact)
    return ordered


def _turns(said: Iterable[tuple[str, str]]) -> _Made:
    """Return the turns, each question once."""
    answers: dict[str, str] = {}
    for question, answer in said:
        answers.setdefault(question, answer)
    return tuple(turn for asked in answers.items() for turn in (Turn("human", asked[0]), Turn("assistant", asked[1])))


def _below(question: str, prompt: str) -> str:
    return f"{question}\n{prompt}" if prompt else question


def _with_options(fact: Fact, letter: str, rng: random.Random) -> str:
    """Return the question with four options below it, the right one at ``letter``."""
    options = rng.sample(fact.options(), len(LETTERS) - 1)
    options.insert(LETTERS.index(letter), fact.brief())
    lines = (f"{name}. {option}" for name, option in zip(LETTERS, options, strict=True))
    return "\n".join((fact.question(rng), *lines))
