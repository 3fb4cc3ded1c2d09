"""Generation of annotations by rules, without a build (``pairwright generate``).

The pool, without --pool the input, is read first. If a sample of its captions shows that the bundled edit model knows
their words, that model is used; else the first `POOL_CAPTIONS` captions are tagged, and statistics and a model are
learned from them. Then every pair is annotated. Batches are distributed to processes and their results are used in order,
so the rows do not depend on the number of processes. Memory: the captions of the pool, the batches in progress, and for
formats other than JSON lines all rows.
"""

import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairwright.datasets.atomic_files import remove_stale_temporaries
from pairwright.datasets.captions.cleaning import clean_web_caption
from pairwright.datasets.count_phrases import count_phrase, verb_form
from pairwright.datasets.option_names import WITHOUT_OPTIONS
from pairwright.datasets.progress import open_step, track
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.records import Annotation, Pair
from pairwright.datasets.shards.content_counts import count_exchanges
from pairwright.flows.commands.annotation_files import open_balanced_writer, refuse_training_rows
from pairwright.flows.commands.annotation_workers import (
    BatchAnnotator,
    GeneratorSetup,
    Waiting,
    tag_and_count,
    tag_and_count_words,
)
from pairwright.flows.commands.checked_pool import CHECKED_CAPTIONS, pool_or_note
from pairwright.flows.commands.pair_inputs import BATCH, total_for_progress
from pairwright.flows.config.vocabulary import vocabulary_hint, wants_vocabulary
from pairwright.flows.llm.saved_statistics import load_or_count
from pairwright.flows.runners.ordered_pool import OrderedPool
from pairwright.flows.state.overwrite_checks import refuse_overwriting
from pairwright.generators.balance import BalanceLimits, BalanceReport, BalanceResult, balanced_kind
from pairwright.generators.counts import AnnotationCounts, LengthBalance
from pairwright.generators.edits.edit_model import load_bundled_model, load_bundled_statistics
from pairwright.generators.language.packed_tokens import PackedTokens, unpack
from pairwright.generators.language.pool_statistics import PoolCounts, PoolStatistics
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.tokens import Token
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.registry import Materials, balanced_types, needs_edit_model, needs_pool

if TYPE_CHECKING:
    from pairwright.generators.language.cloze.examples import ClozeSample

POOL_CAPTIONS = 200_000  # for word statistics of generators
_SAMPLED_CAPTIONS = 1_000  # that tell whether the bundled edit model fits: the share of known slots to half a per cent


@dataclass(frozen=True)
class GenerateRequest:
    """Input, generator and output of a run.

    Attributes:
        generator: name in the registry.
        options: of the generator.
        seed: of the run.
        read: options of the reader, with the input.
        pool: reference captions for word statistics; empty for those of the input.
        out: file to write.
        limits: of the set.
        workers: processes (0 = one per core); the rows do not depend on it.
    """

    generator: str
    options: Mapping[str, Any]
    seed: int
    read: ReadOptions
    pool: str
    out: Path
    limits: BalanceLimits = field(default_factory=BalanceLimits)
    workers: int = 1


@dataclass
class GenerateCounts:
    """Counts of a run.

    Attributes:
        account: of the rows that limits apply to (`generators.balance.balanced_kind`).
        verdict: result of the limits.
        tally: of all rows, by type.
        lengths: of negatives and the texts that they are compared with.
        captions: annotated so far.
        turns: of conversations.
        labels: of the boxes of the pairs.
        support: texts that were compared with captions and boxes, things in them, and unsupported ones.
        broken: skipped rows of the input, by reason.
        web_captions: captions with what `clean_captions` would remove.
        started: time of the start.
    """

    account: BalanceReport
    verdict: BalanceResult = field(default_factory=BalanceResult)
    tally: AnnotationCounts = field(default_factory=AnnotationCounts)
    lengths: LengthBalance = field(default_factory=LengthBalance)
    captions: int = 0
    turns: int = 0
    labels: set[str] = field(default_factory=set)
    support: Counter[str] = field(default_factory=Counter)
    broken: SkipCounts = field(default_factory=SkipCounts)
    web_captions: int = 0
    started: float = field(default_factory=time.perf_counter)

    @classmethod
    def of(cls, generator: str) -> "GenerateCounts":
        """Return empty counts for a generator."""
        return cls(BalanceReport(balanced_kind(generator)))

    def judged(self, verdict: BalanceResult) -> None:
        """Store the result of the limits."""
        self.verdict = verdict

    def add(self, rows: Sequence[Annotation]) -> None:
        """Count the annotations of a pair."""
        self.account.add(rows)
        self.tally.add(rows)
        self.lengths.add(rows)
        self.captions += 1
        self.turns += sum([count_exchanges(row) for row in rows if row.turns])
        for row in rows:
            if "things" in row.scores:
                self.support["texts"] += 1
                self.support["things"] += int(row.scores["things"])
                self.support["unsupported"] += int(row.scores["unsupported_things"])

    def result(self, out: Path) -> dict[str, Any]:
        """Return captions, types (made, kept, rejected by reason), account, lengths, limits, turns, broken, broken_captions, seconds, out.

        The account counts inserted words and their positions (`generators.balance.BalanceReport`); limits are by type
        (`generators.balance.BalanceResult`), empty without limits.
        """
        return {
            "captions": self.captions,
            "types": self.tally.by_type(),
            "account": self.account.as_json(),
            "lengths": self.lengths.as_json(),
            "limits": self.verdict.as_json(),
            "turns": self.turns,
            **({"support": dict(self.support)} if self.support else {}),
            **self.broken.as_json(),
            "seconds": round(time.perf_counter() - self.started, 2),
            "out": str(out),
        }


def run_generator(request: GenerateRequest, note: Callable[[str], None]) -> dict[str, Any]:
    """Annotate every pair of an input by rules and write the rows.

    Returns:
        The summary of `GenerateCounts.result`.

    Raises:
        InputError: when the input is not readable or has no valid pair; the output is not changed.
        UsageError: for an extension without a layout for such rows.
    """
    refuse_overwriting(request.out, request.read.input, request.pool)
    refuse_training_rows(request.out, request.options.get("types", ()))
    remove_stale_temporaries(request.out)
    work = GenerateCounts.of(request.generator)
    with (
        open_balanced_writer(request.out, request.generator, request.limits, work.add, work.judged) as write,
        OrderedPool(request.workers) as processes,
        tempfile.TemporaryDirectory(prefix="pairwright-") as folder,
    ):
        materials, known = _load_for_generator(request, processes, note)
        setup = GeneratorSetup(request.generator, request.options, materials, request.seed)
        annotate = BatchAnnotator(setup, Path(folder) / "setup.pickle")
        batches = _batches(request.read, work, known)
        with open_step("writing texts", total_for_progress(request.read), "captions") as done:
            for pairs, made in processes.map_jobs(annotate, batches):
                for (pair, _), rows in zip(pairs, made, strict=True):
                    work.labels.update(box.label for box in pair.boxes)
                    write(pair, rows)
                done.advance(len(pairs))
    if work.web_captions:
        have = verb_form(work.web_captions, "have")
        what = (
            f"{count_phrase(work.web_captions, 'caption')} {have} HTML, addresses, hashtags, emoji or notes of agencies"
        )
        note(f"{what}, which stay in the texts. To remove them: {request.read.option_names.flag('clean_captions')}.")
    if wants_vocabulary(request.generator, request.options):
        note(vocabulary_hint(work.labels))
    return work.result(request.out)


def _batches(read: ReadOptions, work: GenerateCounts, known: Mapping[str, PackedTokens]) -> Iterator[list[Waiting]]:
    """Yield the pairs of an input with known tokens; ``work`` counts skipped rows and captions of the web."""
    for batch in read_pairs(replace(read, batch_size=BATCH)):
        work.broken.add(batch.rejects)
        if not read.clean_captions:
            work.web_captions += sum(clean_web_caption(pair.caption) != pair.caption for pair in batch.pairs)
        yield [(pair, known.get(pair.caption)) for pair in batch.pairs]


def check_pool(request: GenerateRequest) -> None:
    """Read the beginning of the pool of a request, if it has one of its own.

    Raises:
        InputError: the pool is not readable or has no valid pair.
    """
    if request.pool:
        next(read_pairs(_pool_options(request)))


def load_materials(
    request: GenerateRequest, processes: OrderedPool, note: Callable[[str], None], cache: Path
) -> Materials:
    """Return the materials of a generator that only checks texts.

    Args:
        request: of the run.
        processes: count words.
        note: receives a message if the pool is too small.
        cache: file of the response cache, next to which word statistics are saved.
    """
    wordnet = load_wordnet()
    if not needs_pool(request.generator):
        return Materials(wordnet, load_bundled_statistics(), request.seed)
    captions = list(islice(_captions(_pairs(_pool_options(request))), CHECKED_CAPTIONS))

    def count() -> PoolStatistics:
        counts = PoolCounts()
        with open_step("counting words", len(captions), "captions") as done:
            for batch, part in processes.map_jobs(tag_and_count_words, _slices(captions)):
                counts = counts.merged(part)
                done.advance(len(batch))
        return counts.frozen()

    statistics = load_or_count(captions, load_tagger().name, cache, count)
    return Materials(wordnet, pool_or_note(statistics, note), request.seed)


def _load_for_generator(
    request: GenerateRequest, processes: OrderedPool, note: Callable[[str], None]
) -> tuple[Materials, dict[str, PackedTokens]]:
    """Return the materials of a generator, and the tokens of the tagged captions by caption."""
    bundled = Materials(load_wordnet(), load_bundled_statistics(), request.seed)
    if not needs_pool(request.generator):
        return bundled, {}
    from pairwright.generators.edits.learning import bundled_model_for, learn_edit_model  # imports all editors
    from pairwright.generators.edits.materials import are_of_photographs

    learns = needs_edit_model(request.generator)
    if learns:
        some = tag_pool([pair.caption for pair in sample_pairs(request)], processes)
        if bundled_model_for(some.slots) and are_of_photographs(some.counts.frozen()):
            return replace(bundled, edits=load_bundled_model()), some.tokens
    captions, pairs = read_pool(request)
    tagged = tag_pool(captions, processes)
    pool = pool_or_note(tagged.counts.frozen(), note)
    if pool is bundled.pool or not learns:
        return replace(bundled, pool=pool), tagged.tokens
    with open_step("learning from captions", None, ""):
        types = balanced_types(request.generator, request.options)
        tagged_pairs = tagged.with_tokens(pairs)
        edits = learn_edit_model(tagged.slots, tagged_pairs, bundled.wordnet, pool, types, threads=processes.workers)
    return replace(bundled, pool=pool, edits=edits), tagged.tokens


def sample_pairs(request: GenerateRequest) -> Sequence[Pair]:
    """Return a random sample of the pairs of the pool of a request, which tells whether all of the pool must be read."""
    sample = PairSample(_SAMPLED_CAPTIONS)
    pairs = sample.watch(islice(_pairs(_pool_options(request)), POOL_CAPTIONS))
    deque(track(pairs, "sampling captions", unit="captions"), maxlen=0)
    return sample.pairs()


def read_pool(request: GenerateRequest) -> tuple[Sequence[str], Sequence[Pair]]:
    """Return the captions of the pool of a request, those of an image once each, and a random sample of its pairs."""
    from pairwright.generators.edits.learning import BALANCE_CAPTIONS

    pairs = PairSample(BALANCE_CAPTIONS)
    found = _captions(pairs.watch(_pairs(_pool_options(request))))
    return list(islice(track(found, "reading captions", unit="captions"), POOL_CAPTIONS)), pairs.pairs()


@dataclass(frozen=True)
class TaggedPool:
    """What is read of some captions of a pool.

    Attributes:
        counts: of their words.
        slots: on which the cloze model is trained.
        tokens: by caption.
    """

    counts: PoolCounts
    slots: "ClozeSample"
    tokens: dict[str, PackedTokens]

    def with_tokens(self, pairs: Iterable[Pair]) -> list[tuple[Pair, list[Token]]]:
        """Return the pairs whose captions were tagged, with the tokens."""
        known = [pair for pair in pairs if pair.caption in self.tokens]
        return [(pair, unpack(pair.caption, self.tokens[pair.caption])) for pair in known]


def tag_pool(captions: Sequence[str], processes: OrderedPool) -> TaggedPool:
    """Tag captions, and count their words."""
    from pairwright.generators.language.cloze.examples import ClozeSample, ClozeSampler

    counts, slots = PoolCounts(), [ClozeSampler().sample()]
    tokens: dict[str, PackedTokens] = {}
    with open_step("tagging captions", len(captions), "captions") as done:
        for batch, part in processes.map_jobs(tag_and_count, _slices(captions)):
            counts = counts.merged(part.counts)
            slots.append(part.slots)
            tokens.update(zip(batch, part.tokens, strict=True))
            done.advance(len(batch))
    return TaggedPool(counts, ClozeSample.merged(slots), tokens)


def _pool_options(request: GenerateRequest) -> ReadOptions:
    if not request.pool:
        return request.read
    return replace(
        request.read, input=request.pool, format="", columns={}, on_error="skip", option_names=WITHOUT_OPTIONS
    )


class PairSample:
    """The ``size`` pairs with the lowest keys; keys are hashes, so these are a random sample."""

    def __init__(self, size: int) -> None:
        self._pairs: list[Pair] = []
        self._size = size

    def watch(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield pairs, and add them to the sample."""
        for pair in pairs:
            self._pairs.append(pair)
            if len(self._pairs) > 2 * self._size:
                self._pairs = list(self.pairs())
            yield pair

    def pairs(self) -> Sequence[Pair]:
        """Return the sample, in the order of keys."""
        return sorted(self._pairs, key=lambda pair: pair.key)[: self._size]


def _slices(captions: Sequence[str]) -> Iterator[list[str]]:
    return (list(captions[start : start + BATCH]) for start in range(0, len(captions), BATCH))


def _pairs(options: ReadOptions) -> Iterator[Pair]:
    return (pair for batch in read_pairs(options) for pair in batch.pairs)


def _captions(pairs: Iterable[Pair]) -> Iterator[str]:
    """Yield each caption of each image once; all pairs of an image have all its captions."""
    seen: set[tuple[str, str, str]] = set()
    for pair in pairs:
        for caption in (pair.caption, *pair.captions):
            named = (pair.source_id, pair.image, caption)
            if named not in seen:
                seen.add(named)
                yield caption
