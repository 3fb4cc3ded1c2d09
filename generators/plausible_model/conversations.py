"""Template answers to the conversation prompts, from captions and boxes."""

from collections.abc import Sequence
from functools import lru_cache

from pairwright.datasets.records import Box, Pair, pair_key
from pairwright.datasets.rng import make_rng
from pairwright.generators.captions.phrases import noun_phrases
from pairwright.generators.conversations.template_generator import ConversationOptions, TemplateConversations
from pairwright.generators.language.tokens import Tagger

MAX_TURNS = 5  # after the first one
SEED = "plausible"


class ConversationWriter:
    """Writes conversations, descriptions and reasoning about an image.

    Args:
        tagger: tags captions.
    """

    def __init__(self, tagger: Tagger) -> None:
        self._tagger = tagger
        self._templates = TemplateConversations(ConversationOptions(types=("conversation",), max_turns=MAX_TURNS))
        self._tagged = lru_cache(maxsize=10_000)(lambda caption: self._tagger.tag([caption])[0])

    def turns(self, captions: Sequence[str], boxes: Sequence[Box]) -> list[tuple[str, str]]:
        """Return at least two questions with answers.

        Args:
            captions: captions of one image, at least one.
            boxes: boxes of the image.
        """
        things = self._things(captions[0])
        turns = [("What does the picture show?", f"It shows this: {_sentence(captions[0])}")]
        turns += self._facts(captions, boxes)
        if len(turns) == 1:
            turns.append(("What is the main thing in the picture?", f"The main thing is {things[0]}."))
        return turns

    def detail(self, captions: Sequence[str], boxes: Sequence[Box]) -> str:
        """Return a description of several sentences; arguments as in `turns`."""
        sentences = [_sentence(caption) for caption in dict.fromkeys(captions)]
        sentences += [answer for _, answer in self._facts(captions, boxes)]
        things = self._things(captions[0])
        sentences.append(f"What stands out first is {things[0]}, and it takes up a good part of the scene.")
        if len(things) > 1:
            sentences.append(f"Then the eye goes on to {things[-1]}.")
        return " ".join(sentences)

    def reasoning(self, captions: Sequence[str], boxes: Sequence[Box]) -> tuple[str, str]:
        """Return a question that requires reasoning, and its answer; arguments as in `turns`."""
        things = self._things(captions[0])
        facts = " ".join(answer for _, answer in self._facts(captions, boxes)[:2])
        answer = (
            f"What matters first is what can be seen. {_sentence(captions[0])} {facts} So {things[0]} is what a person "
            "who comes into this scene would look at and pay attention to. What happens next is not certain, but most "
            "likely things go on in the same way for a while."
        )
        return "What should a person who comes into this scene pay attention to first, and why?", " ".join(
            answer.split()
        )

    def _facts(self, captions: Sequence[str], boxes: Sequence[Box]) -> list[tuple[str, str]]:
        caption = captions[0]
        pair = Pair(pair_key(SEED, caption, caption), caption, captions=tuple(captions[1:]), boxes=tuple(boxes))
        rng = make_rng(0, SEED, caption)
        return [(fact.question(rng), fact.full()) for fact in self._templates.facts(pair, self._tagged(caption), rng)]

    def _things(self, caption: str) -> list[str]:
        """Return the objects of a caption with "the"; "the scene" if it has none."""
        tokens = self._tagged(caption)
        return [f"the {tokens[phrase.head].text.lower()}" for phrase in noun_phrases(tokens)] or ["the scene"]


def _sentence(caption: str) -> str:
    """Return a caption as a sentence with a capital and a full stop."""
    text = " ".join(caption.split()).rstrip(" .")
    return f"{text[:1].upper()}{text[1:]}."
