"""The plug-in shapes of text makers: by rules, and by asking a model.

A rule generator is constructed with what it needs (pool statistics, WordNet table, options) and holds no
state that changes. It is then asked pair by pair; the tokens of the caption come with the pair, since tagging
is batched by the caller. Chance comes in as a stream that belongs to this pair alone.

Every attempt is answered: an attempt that makes nothing is an annotation with status ``rejected`` and a reason
(``no_edit`` when the caption holds nothing to edit), so that candidates = kept + rejected.
"""

import random
from collections.abc import Sequence
from typing import Protocol

from pairwright.datasets.records import Annotation, Pair
from pairwright.generators.language.tokens import Token
from pairwright.generators.llm.client.steps import LLMStep


class RuleGenerator(Protocol):
    """Makes annotations for one pair at a time, without a model or a network."""

    @property
    def name(self) -> str:
        """Name under which users ask for it; it enters ids and the origin of each row."""
        ...

    @property
    def version(self) -> int:
        """Raised whenever the same input would give another output."""
        ...

    def annotate(self, pair: Pair, tokens: Sequence[Token], rng: random.Random) -> list[Annotation]:
        """Return the annotations of ``pair``, kept and rejected.

        Args:
            pair: the pair.
            tokens: tokens of ``pair.caption``.
            rng: the random stream of (seed, epoch, generator, version, pair key).
        """
        ...


class LLMGenerator(Protocol):
    """Makes annotations for one pair by asking a model, without touching a client.

    The caller holds the talk: it sends what the talk asks, through cache, budget, pacing and retries. The same pair,
    stream and answers give the same annotations.
    """

    @property
    def name(self) -> str:
        """Name under which users ask for it; it enters ids and the origin of each row."""
        ...

    @property
    def version(self) -> int:
        """Raised whenever the same input and answers would give another output."""
        ...

    @property
    def kind(self) -> str:
        """Kind of its annotations (of several, the commonest); rows whose talk breaks off are rejected under it."""
        ...

    @property
    def prompts(self) -> Sequence[str]:
        """The prompts in use, each as ``name@hash``."""
        ...

    def annotate(
        self, pair: Pair, tokens: Sequence[Token], rng: random.Random, *, attempt: int = 0
    ) -> LLMStep[list[Annotation]]:
        """Return the talk about ``pair``, which ends in its annotations, kept and rejected.

        Args:
            pair: the pair.
            tokens: tokens of ``pair.caption``.
            rng: the random stream of (seed, epoch, generator, version, pair key).
            attempt: from 0; a higher one asks anew what was answered before (`Request.sample`).
        """
        ...
