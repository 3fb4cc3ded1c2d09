"""Stage ``words``: word counts and the edit model of the pool.

The counts of the parts are summed: those of up to `_AT_ONCE` parts each in jobs of their own, then all in one; another
job takes a sample of bounded size of their slots meanwhile, on which each network of the cloze model is trained in a job
of its own. The word balance of the edit model is learned on the
first `BALANCE_CAPTIONS` pairs, in a job for each batch of them, for the types of edits that are made.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.record_tables import PAIRS
from pairwright.flows.stages.tag import load_pool, partial_statistics_path, slots_path, statistics_path
from pairwright.flows.state.inputs import file_state
from pairwright.flows.state.layout import pairs_path, part_name, tokens_path
from pairwright.flows.state.receipts import Counts, JobResult
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.edit_model import MIN_CAPTIONS, EditModel, load_bundled_model
from pairwright.generators.edits.editors import BALANCED_TYPES, EditorSet
from pairwright.generators.edits.learning import (
    BALANCE_BATCH,
    BALANCE_CAPTIONS,
    allowed_proposals,
    balanced_editors,
    bundled_model_for,
    merge_balances,
    types_to_balance,
)
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.language.cloze.context import SLOT_KINDS
from pairwright.generators.language.cloze.examples import ClozeSample
from pairwright.generators.language.cloze.model import ClozeModel, ClozeNetwork
from pairwright.generators.language.cloze.training import train_network
from pairwright.generators.language.pool_merging import count_all_captions, merge_counts, merged_statistics
from pairwright.generators.language.token_storage import read_tokens
from pairwright.generators.language.wordnet import load_wordnet

if TYPE_CHECKING:
    from pairwright.flows.config.build import BuildConfig
    from pairwright.flows.runners.engine import StageJobs
    from pairwright.flows.stages.definition import StageRun

STATISTICS: Final[tuple[str, ...]] = (
    "statistics/words.parquet",
    *(str(path) for path in EditModel.files(Path("statistics"))),
)
_AT_ONCE = 16  # parts whose counts a job sums
_SAMPLES = 6  # samples of slots that are merged at once, of at most 30 MB each

Span = tuple[str, int, int]
"""A part, and the numbers of a first pair in it and of the one after the last."""


def words_jobs(run: "StageRun") -> "StageJobs":
    """Return the jobs of stage ``words``; the edit model is for generators by rules."""
    config, parts, merged = run.config, run.parts, list[str]()
    if len(parts) > 2 * _AT_ONCE:
        groups = [parts[start : start + _AT_ONCE] for start in range(0, len(parts), _AT_ONCE)]
        merged = [f"merged-{part_name(number)}" for number in range(len(groups))]
        summed = yield [
            run.job(merge_parts, group, name, part=name) for group, name in zip(groups, merged, strict=True)
        ]
    else:
        summed = ()
    types = _balanced_types(config)
    jobs = [run.job(count_pool, merged or parts, part="counts", after=summed)]
    if any(section is not None and section.method == "rules" for section in (config.negatives, config.positives)):
        jobs.append(run.job(sample_pool, merged or parts, part="slots", after=summed))
    counted, *sampled = yield jobs
    counts = Counts("caption", counted.facts["captions"], counted.facts["captions"])
    if not (sampled and sampled[0].facts["to_train"]):
        return [run.total_job(counts, {}, after=(counted, *sampled))]
    networks = yield [run.job(train_slot_kind, kind, part=f"network-{kind}", after=sampled) for kind in SLOT_KINDS]
    trained = yield [run.job(join_networks, bool(types), part="cloze", after=networks)]
    if not types:
        return [run.total_job(counts, {}, after=(counted, *trained))]
    spans = _first_pairs(zip(parts, (each.counts.kept for each in run.receipts("tag")), strict=True))
    balanced = yield [
        run.job(propose, types, number, span, part=f"proposals-{part_name(number)}", after=(counted, *trained))
        for number, span in enumerate(spans)
    ]
    return [run.job(balance_words, types, len(spans), counts.kept, after=(*trained, *balanced))]


def _balanced_types(config: "BuildConfig") -> tuple[str, ...]:
    """Return the types of edits whose word balance the generators of a build read; third-party ones may read any."""
    if config.generators:
        return tuple(BALANCED_TYPES)
    section = config.negatives
    if section is None or section.method != "rules":
        return ()
    return types_to_balance(section.types, both_sides=section.both_sides)


def merge_parts(root: Path, parts: list[str], name: str) -> JobResult:
    """Sum the counts of some parts, and merge their samples of slots."""
    merge_counts([partial_statistics_path(root, part) for part in parts], partial_statistics_path(root, name))
    _merged_slots(root, parts).save(slots_path(root, name))
    return JobResult([partial_statistics_path(root, name), slots_path(root, name)], Counts("caption"))


def count_pool(root: Path, names: list[str]) -> JobResult:
    """Sum all counts.

    Args:
        root: the build directory.
        names: of the parts, or of merged ones.
    """
    pool, path = merged_statistics([partial_statistics_path(root, name) for name in names]), statistics_path(root)
    pool.save(path)
    return JobResult([path], Counts("caption"), {"captions": pool.captions})


def sample_pool(root: Path, names: list[str]) -> JobResult:
    """Write the slots on which the cloze model of a pool is trained, or the bundled edit model if it knows most of them.

    The fact ``to_train`` tells which; a pool of too few captions has neither.

    Args:
        root: the build directory.
        names: of the parts, or of merged ones.
    """
    if count_all_captions([partial_statistics_path(root, name) for name in names]) < MIN_CAPTIONS:
        return JobResult([], Counts("caption"), {"to_train": False})
    sample, folder = _merged_slots(root, names), statistics_path(root).parent
    if model := bundled_model_for(sample):
        model.save(folder)
        return JobResult(EditModel.files(folder), Counts("caption"), {"to_train": False})
    sample.save(_sample_path(root))
    return JobResult([_sample_path(root)], Counts("caption"), {"to_train": True})


def train_slot_kind(root: Path, kind: str) -> JobResult:
    """Train the network of a slot kind."""
    network = train_network(ClozeSample.load(_sample_path(root)), kind, load_bundled_model().cloze)
    ClozeModel({kind: network}).save(_network_path(root, kind))
    return JobResult([_network_path(root, kind)], Counts("caption"))


def join_networks(root: Path, to_balance: bool) -> JobResult:  # noqa: FBT001 - a job's argument
    """Write the cloze model; with an empty word balance if later jobs do not learn one."""
    files = EditModel.files(statistics_path(root).parent)
    networks: dict[str, ClozeNetwork] = {}
    for kind in SLOT_KINDS:
        networks |= ClozeModel.load(_network_path(root, kind)).networks
    model = EditModel(ClozeModel(networks))
    if to_balance:
        files = files[:1]
        model.cloze.save(files[0])
    else:
        model.save(files[0].parent)
    return JobResult(files, Counts("caption"))


def propose(root: Path, types: tuple[str, ...], number: int, spans: Sequence[Span]) -> JobResult:
    """Write the edits that could be made of some pairs, on which the word balance of some types is learned."""
    captions = [caption for span in spans for caption in _captions(root, span)]
    path = statistics_path(root)
    state = file_state([path, EditModel.files(path.parent)[0]])
    found = allowed_proposals(_editors(path, types, state), captions, number * BALANCE_BATCH)
    outputs = []
    for name, proposals in found.items():
        outputs.append(_proposals_path(root, name, number))
        with replace_atomically(outputs[-1]) as temporary, temporary.open("wb") as handle:
            np.save(handle, proposals)
    return JobResult(outputs, Counts("caption"))


def balance_words(root: Path, types: tuple[str, ...], batches: int, captions: int) -> JobResult:
    """Learn the word balance of the edit model for some types; the unit is a caption."""
    found = [
        {name: np.load(_proposals_path(root, name, number), allow_pickle=False) for name in types}
        for number in range(batches)
    ]
    folder = statistics_path(root).parent
    cloze = ClozeModel.load(EditModel.files(folder)[0])
    EditModel(cloze, merge_balances(cloze, types, found)).save_balance(folder)
    return JobResult([EditModel.files(folder)[1]], Counts("caption", captions, captions))


def _merged_slots(root: Path, names: Sequence[str]) -> ClozeSample:
    """Return the sample of slots of several parts."""
    merged: list[ClozeSample] = []
    for start in range(0, len(names), _SAMPLES):
        merged += [ClozeSample.load(slots_path(root, name)) for name in names[start : start + _SAMPLES]]
        merged = [ClozeSample.merged(merged)]
    return merged[0]


def _first_pairs(parts: Iterator[tuple[str, int]]) -> list[tuple[Span, ...]]:
    """Return the first pairs of the pool in batches, given the number of pairs of each part."""
    batches: list[list[Span]] = []
    taken = 0
    for part, count in parts:
        start = 0
        while start < count and taken < BALANCE_CAPTIONS:
            if taken % BALANCE_BATCH == 0:
                batches.append([])
            stop = min(count, start + BALANCE_BATCH - taken % BALANCE_BATCH)
            batches[-1].append((part, start, stop))
            taken, start = taken + stop - start, stop
    return [tuple(batch) for batch in batches]


def _captions(root: Path, span: Span) -> list[Caption]:
    part, start, stop = span
    pairs = PAIRS.read(pairs_path(root, part))
    tokens = read_tokens(tokens_path(root, part), [pair.caption for pair in pairs])
    return [Caption(pair, words) for pair, words in list(zip(pairs, tokens, strict=True))[start:stop]]


@lru_cache(maxsize=1)
def _editors(path: Path, types: tuple[str, ...], _state: str) -> EditorSet:
    """Return the editors of the pool with these statistics, which a process keeps for its next batch."""
    model = EditModel(ClozeModel.load(EditModel.files(path.parent)[0]))
    return balanced_editors(EditMaterials.of(load_wordnet(), load_pool(path), model), types)


def _sample_path(root: Path) -> Path:
    return statistics_path(root).with_name("slots.npz")


def _network_path(root: Path, kind: str) -> Path:
    return statistics_path(root).with_name(f"network-{kind}.npz")


def _proposals_path(root: Path, name: str, number: int) -> Path:
    return root / "statistics" / f"proposals-{name}-{part_name(number)}.npy"
