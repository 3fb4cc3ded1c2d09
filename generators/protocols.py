"""Protocols of generators: by rules, and by asking a language model.

A rule generator is constructed with its materials (pool statistics, WordNet table, options), is stateless afterwards, and
is called once a pair. The caller tags captions in batches and passes the tokens, and a random generator that belongs to
this pair alone.

An attempt without a result is an annotation with status ``rejected`` and a reason (``no_edit`` if the caption has nothing
to edit), so that candidates = kept + rejected.
"""

import random
from collections.abc import Sequence
from typing import Protocol

from pairwright.datasets.records import Annotation, Pair
from pairwright.generators.language.tokens import Token
from pairwright.generators.llm.client.steps import LLMStep


class RuleGenerator(Protocol):
    """Generates annotations for one pair at a time, without a model or a network."""

    @property
    def name(self) -> str:
        """Name for users; part of ids and of the origin of each row."""
        ...

    @property
    def version(self) -> int:
        """Increased whenever the same input would give another output."""
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
    """Generates annotations for one pair by asking a model, without access to a client.

    `annotate` is a generator function, ``replies = yield requests``; the caller sends the requests through cache, budget,
    pacing and retries. The same pair, random numbers and answers give the same annotations.
    """

    @property
    def name(self) -> str:
        """Name for users; part of ids and of the origin of each row."""
        ...

    @property
    def version(self) -> int:
        """Increased whenever the same input and answers would give another output."""
        ...

    @property
    def kind(self) -> str:
        """Kind of its annotations (the most common one of several); failed rows are rejected under it."""
        ...

    @property
    def prompts(self) -> Sequence[str]:
        """The prompts in use, each as ``name@hash``."""
        ...

    def annotate(
        self, pair: Pair, tokens: Sequence[Token], rng: random.Random, *, attempt: int = 0
    ) -> LLMStep[list[Annotation]]:
        """Return the steps for ``pair``, which end in its annotations, kept and rejected.

        Args:
            pair: the pair.
            tokens: tokens of ``pair.caption``.
            rng: the random stream of (seed, epoch, generator, version, pair key).
            attempt: from 0; a higher one requests new samples (`Request.sample`).
        """
        ...
