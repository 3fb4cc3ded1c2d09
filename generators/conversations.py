"""Instruction conversations by templates: questions whose answers the boxes and the caption prove.

Two kinds, as LLaVA makes them (chapter 3), but without a model: *brief*, the naive expansion (an instruction of ours,
the caption as the answer), and *conversation*, several grounded question-answer turns about one image. What is asked:

- presence and count, only of labels in `vocabulary`, the set that the source annotates in every image; "no" is asked
  as often as "yes". Without a vocabulary a missing box proves nothing and neither kind is asked;
- colour, where the caption gives one to a thing that there is only one of;
- position and size order of two things that each have exactly one box and stand clearly apart.

A pair about which nothing can be asked is rejected as `no_context`. Photographs are flat: left, right, above, below
and size are those of the picture.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pairwright.datasets.chance import stream
from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import Annotation, Origin, Pair, Turn, annotation_id
from pairwright.generators import questions
from pairwright.generators.grounding import Fact, Grounding
from pairwright.generators.language.tokens import Token

NAME = "template-conversations"
VERSION = 1
TYPES = ("conversation", "brief")


@dataclass(frozen=True, slots=True)
class ConversationOptions:
    """What to make.

    Attributes:
        types: of `TYPES`.
        vocabulary: labels (singular) that the source marks in every image where they occur.
        most_turns: question-answer turns of a conversation at most; 0 for all that can be proved.
        seed: written into the origin of each row.
    """

    types: tuple[str, ...] = TYPES
    vocabulary: tuple[str, ...] = ()
    most_turns: int = 8
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
        self._makers: dict[str, Callable[[Pair, Sequence[Token], random.Random], tuple[Turn, ...]]] = {
            "conversation": self._conversation,
            "brief": self._brief,
        }

    def annotate(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> list[Annotation]:
        """Return one annotation for each asked type, kept or rejected as ``no_context``."""
        seed = rng.getrandbits(64)
        return [
            self._annotation(pair, kind, self._makers[kind](pair, tokens, stream(seed, kind)))
            for kind in self.options.types
        ]

    def _annotation(self, pair: Pair, kind: str, turns: tuple[Turn, ...]) -> Annotation:
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

    def _brief(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> tuple[Turn, ...]:
        del tokens
        return Turn("human", rng.choice(questions.BRIEF)), Turn("assistant", pair.caption.strip())

    def _conversation(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> tuple[Turn, ...]:
        grounding = Grounding.of(pair, tokens, self.options.vocabulary)
        facts = self._chosen(grounding, rng)
        turns: list[Turn] = []
        asked: set[str] = set()
        for fact in facts:
            question = rng.choice(fact.wordings).format_map(fact.fields)
            if question not in asked:
                asked.add(question)
                turns += [Turn("human", question), Turn("assistant", fact.answer.format_map(fact.fields))]
        return tuple(turns)

    def _chosen(self, grounding: Grounding, rng: random.Random) -> list[Fact]:
        """Return the facts to ask about: kinds take turns, so that a rich image is not asked one thing only."""
        queues = [rng.sample(facts, len(facts)) for facts in grounding.facts(rng) if facts]
        most = self.options.most_turns or sum(map(len, queues))
        chosen: list[Fact] = []
        while queues and len(chosen) < most:
            queues = [queue for queue in queues if queue]
            chosen += [queue.pop() for queue in queues]
        return _balanced(chosen[:most], rng)


def _balanced(facts: list[Fact], rng: random.Random) -> list[Fact]:
    """Return the facts in random order with as many "yes" as "no" among the presence questions."""
    yes = [fact for fact in facts if fact.says == "yes"]
    no = [fact for fact in facts if fact.says == "no"]
    fewer = min(len(yes), len(no))
    kept = [fact for fact in facts if not fact.says] + yes[:fewer] + no[:fewer]
    rng.shuffle(kept)
    return kept
