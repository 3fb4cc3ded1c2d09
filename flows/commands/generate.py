"""A generator over any input, without a build: what ``pairwright generate`` runs.

Two passes over the input when it is its own pool: words are counted over its first `POOL_CAPTIONS` captions, whose
tokens are kept for the second pass; then every pair is annotated. Both are shared out to processes in batches, whose
results are taken in order, so the rows are the same for any number of them. Memory: the batches in work, and the rows
when the output's format has to be written at once (everything but JSON lines).
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import remove_stale_temporaries
from pairwright.datasets.option_names import WITHOUT_OPTIONS
from pairwright.datasets.progress import has_listener, open_step, track
from pairwright.datasets.readers.pairs import ReadBatch, ReadOptions, read_pairs
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.records import Annotation, Pair
from pairwright.datasets.shards.content_counts import count_exchanges
from pairwright.flows.commands.annotation_files import refuse_training_rows
from pairwright.flows.commands.annotation_workers import BatchAnnotator, GeneratorSetup, Waiting, tag_and_count
from pairwright.flows.commands.balanced_files import open_balanced_writer
from pairwright.flows.config.vocabulary import vocabulary_hint, wants_vocabulary
from pairwright.flows.runners.process_pool import OrderedPool
from pairwright.flows.state.overwrite_checks import refuse_overwriting
from pairwright.generators.balance import BalanceLimits, BalanceReport, BalanceResult, balanced_kind
from pairwright.generators.counts import AnnotationCounts
from pairwright.generators.edits.general_english import GeneralEnglish, pool_or_general_english
from pairwright.generators.language.pool_statistics import PoolCounts, PoolStatistics
from pairwright.generators.language.token_storage import PackedTokens
from pairwright.generators.language.tokens import Tagger, Token
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.registry import Materials, needs_pool

POOL_CAPTIONS = 200_000  # whose words are counted for what is written
CHECKED_CAPTIONS = 50_000  # ... and for checks, which tag them in one process
BATCH = 512


@dataclass(frozen=True)
class GenerateRequest:
    """What to generate: which generator with which options, over what, into which file, within which limits.

    Attributes:
        generator: a name in the registry.
        options: for the generator.
        seed: of the run.
        read: what to read.
        pool: captions to count words in; empty: those of the input.
        out: file to write.
        limits: of the set.
        workers: processes for generators by rules; 0: one a core. The rows are the same for any number.
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
    """What a run has done: its rows, counted, and what was skipped of the input, by reason.

    Attributes:
        account: of the rows that limits are for (`generators.balance.limited_kind`).
        verdict: what limits left of them.
        labels: of the boxes that were seen.
    """

    account: BalanceReport
    verdict: BalanceResult = field(default_factory=BalanceResult)
    tally: AnnotationCounts = field(default_factory=AnnotationCounts)
    captions: int = 0
    turns: int = 0
    labels: set[str] = field(default_factory=set)
    broken: SkipCounts = field(default_factory=SkipCounts)
    started: float = field(default_factory=time.perf_counter)

    @classmethod
    def of(cls, generator: str) -> "GenerateCounts":
        """Return the work of a generator, by its name, before it begins."""
        return cls(BalanceReport(balanced_kind(generator)))

    def judged(self, verdict: BalanceResult) -> None:
        """Take down what limits left."""
        self.verdict = verdict

    def add(self, rows: Sequence[Annotation]) -> None:
        """Count the annotations of a pair."""
        self.account.add(rows)
        self.tally.add(rows)
        self.captions += 1
        self.turns += sum(map(count_exchanges, rows))

    def result(self, out: Path) -> dict[str, Any]:
        """Return captions, types (made, kept, rejected by reason), account, limits, turns, broken, broken_captions, seconds, out.

        The account tells which words were put in, and where (`generators.balance.Account`); limits, what these left of
        each type (`generators.balance.Given`; empty where there are none).
        """
        return {
            "captions": self.captions,
            "types": self.tally.by_type(),
            "account": self.account.as_json(),
            "limits": self.verdict.as_json(),
            "turns": self.turns,
            **self.broken.as_json(),
            "seconds": round(time.perf_counter() - self.started, 2),
            "out": str(out),
        }


def run_generator(request: GenerateRequest, note: Callable[[str], None]) -> dict[str, Any]:
    """Annotate every pair of an input by rules and write the rows.

    Returns:
        As `Work.result`.

    Raises:
        InputError: when the input cannot be read, or no row of it makes a pair; OUT stays as it is.
        UsageError: when OUT's ending names no format that holds such rows, or a benchmark's and rows are for training.
    """
    refuse_overwriting(request.out, request.read.input, request.pool)
    refuse_training_rows(request.out, request.options.get("types", ()))
    remove_stale_temporaries(request.out)
    work = GenerateCounts.of(request.generator)
    with (
        open_balanced_writer(request.out, request.generator, request.limits, work.add, work.judged) as write,
        OrderedPool(request.workers) as crew,
        tempfile.TemporaryDirectory(prefix="pairwright-") as folder,
    ):
        chosen, known = _load_for_generator(request, crew, note)
        annotating = BatchAnnotator(
            GeneratorSetup(request.generator, request.options, chosen, request.seed), Path(folder)
        )
        batches = _batches(request.read, work.broken, known)
        with open_step("writing texts", total_for_progress(request.read), "captions") as done:
            for pairs, made in crew.map_jobs(annotating, batches):
                for (pair, _), rows in zip(pairs, made, strict=True):
                    work.labels.update(box.label for box in pair.boxes)
                    write(pair, rows)
                done.advance(len(pairs))
    if wants_vocabulary(request.generator, request.options):
        note(vocabulary_hint(work.labels))
    return work.result(request.out)


def _batches(read: ReadOptions, broken: SkipCounts, known: Mapping[str, PackedTokens]) -> Iterator[list[Waiting]]:
    """Yield the pairs of an input with the tokens that are known; ``broken`` counts what is skipped."""
    for batch in read_pairs(replace(read, batch_size=BATCH)):
        broken.add(batch.rejects)
        yield [(pair, known.get(pair.caption)) for pair in batch.pairs]


def tagged_pairs(read: ReadOptions, tagger: Tagger, broken: SkipCounts) -> Iterator[tuple[Pair, Sequence[Token]]]:
    """Yield the pairs of an input with the tokens of their captions; ``broken`` counts what is skipped."""
    for batch in read_pairs(replace(read, batch_size=BATCH)):
        broken.add(batch.rejects)
        yield from zip(batch.pairs, tagger.tag([pair.caption for pair in batch.pairs]), strict=True)


def load_materials(request: GenerateRequest, note: Callable[[str], None]) -> Materials:
    """Return what a generator may draw on; ``note`` is told when the pool is too small to go by."""
    with OrderedPool(request.workers) as crew:
        return _load_for_generator(request, crew, note)[0]


def _load_for_generator(
    request: GenerateRequest, crew: OrderedPool, note: Callable[[str], None]
) -> tuple[Materials, dict[str, PackedTokens]]:
    """Return what a generator may draw on, and the tokens of the captions that were tagged for it."""
    wordnet = load_wordnet()
    if not needs_pool(request.generator):
        return Materials(wordnet, GeneralEnglish(wordnet), request.seed), {}
    statistics, known = count_pool(request, crew)
    pool = pool_or_general_english(statistics, wordnet)
    if not isinstance(pool, PoolStatistics):
        note("Too few captions to tell which words go together: going by general English. --pool FILE does better.")
    return Materials(wordnet, pool, request.seed), known


def count_pool(request: GenerateRequest, crew: OrderedPool) -> tuple[PoolStatistics, dict[str, PackedTokens]]:
    """Return the statistics of a request's pool, and the tokens of its captions, which may well be asked for again."""
    read = request.read
    if request.pool:
        read = replace(read, input=request.pool, format="", columns={}, on_error="skip", wording=WITHOUT_OPTIONS)
    captions = list(islice(track(_captions(read_pairs(read)), "reading captions", unit="captions"), POOL_CAPTIONS))
    counts = PoolCounts()
    known: dict[str, PackedTokens] = {}
    with open_step("tagging captions", len(captions), "captions") as done:
        for batch, (part, tokens) in crew.map_jobs(tag_and_count, _slices(captions)):
            counts = counts.merged(part)
            known.update(zip(batch, tokens, strict=True))
            done.advance(len(batch))
    return counts.frozen(), known


def total_for_progress(read: ReadOptions) -> int | None:
    """Return how many pairs an input holds, for a bar; None where nobody listens, and for tars: counting takes as long."""
    inputs = (read.input,) if isinstance(read.input, str) else read.input
    return None if not has_listener() or any(each.endswith(".tar") for each in inputs) else count_pairs(read)


def count_pairs(read: ReadOptions) -> int:
    """Return how many pairs an input holds; reads all of it."""
    return sum(len(batch.pairs) for batch in track(read_pairs(read), "counting rows", unit="batches"))


def _slices(captions: Sequence[str]) -> Iterator[list[str]]:
    return (list(captions[start : start + BATCH]) for start in range(0, len(captions), BATCH))


def _captions(batches: Iterator[ReadBatch]) -> Iterator[str]:
    """Yield each caption of each image once, though all pairs of an image hold all its captions."""
    seen: set[tuple[str, str, str]] = set()
    for batch in batches:
        for pair in batch.pairs:
            for caption in (pair.caption, *pair.captions):
                named = (pair.source_id, pair.image, caption)
                if named not in seen:
                    seen.add(named)
                    yield caption
