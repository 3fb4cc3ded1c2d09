"""Protocols of generators: by rules, and by asking a language model.

A rule generator is constructed with its materials (pool statistics, WordNet table, options), is stateless afterwards, and
is called once a pair. The caller tags captions in batches and passes the tokens, and a random generator that belongs to
this pair alone.

An attempt without a result is an annotation with status ``rejected`` and a reason (``no_edit`` if the caption has nothing
to edit), so that candidates = kept + rejected.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

from pairwright.datasets.records import Annotation, Pair
from pairwright.datasets.rng import make_rng
from pairwright.generators.language.tokens import Token
from pairwright.generators.llm.client.steps import LLMStep

Found = TypeVar("Found")

ANNOTATED_AT_ONCE: Final = 250  # pairs; more do not save time


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


@runtime_checkable
class BatchRuleGenerator(RuleGenerator, Protocol):
    """A rule generator that annotates several pairs in less time than one by one."""

    def annotate_batch(
        self, pairs: Sequence[Pair], tokens: Sequence[Sequence[Token]], rngs: Sequence[random.Random]
    ) -> list[list[Annotation]]:
        """Return the annotations of each pair, which are those of `annotate`."""
        ...


class _AskingGenerator(Protocol):
    """What all generators have that ask a model."""

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


class LLMGenerator(_AskingGenerator, Protocol):
    """Generates annotations for one pair by asking a model, without access to a client.

    `annotate` is a generator function, ``replies = yield requests``; the caller sends the requests through cache, budget,
    pacing and retries. The same pair, random numbers and answers give the same annotations.

    It runs on the event loop, so it builds requests and reads answers, and does nothing that takes long. A generator that
    tags texts is a `CheckedLLMGenerator`.
    """

    def annotate(self, pair: Pair, rng: random.Random, *, attempt: int = 0) -> LLMStep[list[Annotation]]:
        """Return the steps for ``pair``, which end in its annotations, kept and rejected.

        Args:
            pair: the pair.
            rng: the random stream of (seed, epoch, generator, version, pair key).
            attempt: from 0; a higher one requests new samples (`Request.sample`). A generator with an attribute
                ``retries_texts`` that is True does so for those texts alone that no earlier attempt gave; then a pair is
                retried when one of its texts failed, otherwise when all did.
        """
        ...


@runtime_checkable
class CheckedLLMGenerator(_AskingGenerator, Protocol[Found]):
    """Generates annotations in two stages: ask a model about one pair, and check the answers for many pairs.

    ``Found`` is what the answers for a pair contain: a small value that can be pickled. `ask` runs on the event loop, as
    `LLMGenerator.annotate`. `check` runs in worker processes, each of which constructs its own generator, so neither of
    them may depend on what the other one stores in the generator. `ask` needs no pool statistics: it may run before they
    are counted.
    """

    def ask(self, pair: Pair, rng: random.Random, *, attempt: int = 0) -> LLMStep[Found]:
        """Return the steps for ``pair``, which end in what the answers contain; arguments as `LLMGenerator.annotate`."""
        ...

    def check(self, batch: Sequence[tuple[Pair, Found]]) -> list[list[Annotation]]:
        """Return the annotations of each pair, kept and rejected; they do not depend on the rest of the batch."""
        ...


AnyLLMGenerator = LLMGenerator | CheckedLLMGenerator[Any]


def pair_rng(generator: RuleGenerator | AnyLLMGenerator, seed: int, pair: Pair) -> random.Random:
    """Return the random stream of a generator for one pair, in a run with this seed.

    A generator with an attribute ``draws`` that is False gets none: to seed one takes as long as to build a request.
    """
    if not getattr(generator, "draws", True):
        return _NO_NUMBERS
    return make_rng(seed, 0, generator.name, generator.version, pair.key)


class _NoNumbers(random.Random):
    """The random stream of a generator that draws nothing."""

    def random(self) -> float:
        raise RuntimeError("a generator whose attribute `draws` is False has drawn a random number")

    def getrandbits(self, k: int, /) -> int:  # noqa: ARG002 - the base class's
        return int(self.random())


_NO_NUMBERS: Final = _NoNumbers(0)


def annotate_pairs(
    generator: RuleGenerator, pairs: Iterable[tuple[Pair, Sequence[Token]]], seed: int
) -> Iterator[list[Annotation]]:
    """Yield the annotations of each pair in a run with this seed; pairs come with the tokens of their captions."""
    if not isinstance(generator, BatchRuleGenerator):
        yield from (generator.annotate(pair, tokens, pair_rng(generator, seed, pair)) for pair, tokens in pairs)
        return
    rest = iter(pairs)
    while batch := list(islice(rest, ANNOTATED_AT_ONCE)):
        chosen, tokens = zip(*batch, strict=True)
        yield from generator.annotate_batch(chosen, tokens, [pair_rng(generator, seed, pair) for pair in chosen])
