"""Stages ``tag`` and ``words``: tags of all captions; word counts and the edit model of the pool."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pairwright.datasets.record_tables import PAIRS
from pairwright.datasets.records import Pair
from pairwright.flows.state.inputs import file_state
from pairwright.flows.state.layout import pairs_path, tokens_path
from pairwright.flows.state.receipts import Counts, Job, JobResult, contents_of
from pairwright.generators.edits.edit_model import EditModel
from pairwright.generators.edits.general_english import MIN_CAPTIONS
from pairwright.generators.edits.learning import BALANCE_CAPTIONS, learn_edit_model, sample_slots
from pairwright.generators.language.cloze.examples import ClozeSample
from pairwright.generators.language.pool_statistics import PoolCounts, PoolStatistics, count_captions
from pairwright.generators.language.tagger import BUNDLED_PIPELINE, choose_pipeline, load_tagger, tagger_status
from pairwright.generators.language.token_storage import read_tokens, write_tokens
from pairwright.generators.language.tokens import Token, tag_all
from pairwright.generators.language.wordnet import load_wordnet

if TYPE_CHECKING:
    from pairwright.flows.stages.definition import StageRun

STATISTICS: Final[tuple[str, ...]] = (
    "statistics/words.parquet",
    *(str(path) for path in EditModel.files(Path("statistics"))),
)


def tag_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the jobs of stage ``tag``; each depends on its own part only, so that appended input keeps the others."""
    config, state = run.config, _tagger_state(run.config.tagger)
    content = contents_of(run.receipts("pairs"))
    return [
        run.job(
            *(tag_part, part, config.tagger, config.input.explode),
            part=part,
            state=f"{state} {content[f'pairs/{part}.parquet']}",
        )
        for part in run.parts
    ]


def words_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the job of stage ``words``; the edit model is for generators by rules."""
    config = run.config
    by_rules = any(
        section is not None and section.method == "rules" for section in (config.negatives, config.positives)
    )
    return [run.job(merge_statistics, run.parts, by_rules)]


def partial_statistics_path(root: Path, part: str) -> Path:
    """Return the file of the word counts of one part."""
    return root / "statistics" / f"words-{part}.parquet"


def slots_path(root: Path, part: str) -> Path:
    """Return the file of the slots of one part, on which the edit model is trained."""
    return root / "statistics" / f"slots-{part}.npz"


def statistics_path(root: Path) -> Path:
    """Return the file of the word counts of the whole pool."""
    return root / "statistics" / "words.parquet"


def tag_part(root: Path, part: str, tagger_name: str, exploded: bool) -> JobResult:  # noqa: FBT001 - a job's argument
    """Tag the captions of a part, write the tokens, and count words over all captions of its images.

    In an exploded input each caption is a pair of its own, so the other captions of a pair are not counted again.
    """
    pairs = PAIRS.read(pairs_path(root, part))
    tagger = load_tagger(tagger_name)
    tokens = tag_all(tagger, [pair.caption for pair in pairs])
    write_tokens([pair.key for pair in pairs], tokens, tokens_path(root, part))
    captions, others = [pair.caption for pair in pairs], list[str]()
    if not exploded:
        others = [caption for pair in pairs for caption in pair.captions]
        tokens += tag_all(tagger, others)
    count_captions(tokens).exact().save(partial_statistics_path(root, part))
    sample_slots([*captions, *others], tokens, load_wordnet()).save(slots_path(root, part))
    outputs = [tokens_path(root, part), partial_statistics_path(root, part), slots_path(root, part)]
    return JobResult(outputs, Counts("caption", len(pairs), len(pairs)), {"tagger": tagger.name})


def merge_statistics(root: Path, parts: list[str], by_rules: bool) -> JobResult:  # noqa: FBT001 - a job's argument
    """Sum the word counts of all parts and learn the edit model; the unit is a caption."""
    counts = PoolCounts()
    for part in parts:
        counts = counts.merged(PoolCounts.of(PoolStatistics.load(partial_statistics_path(root, part))))
    pool, path = counts.frozen(), statistics_path(root)
    pool.save(path)
    outputs = [path]
    if by_rules and counts.captions >= MIN_CAPTIONS:
        sample = ClozeSample.merged([ClozeSample.load(slots_path(root, part)) for part in parts])
        learn_edit_model(sample, _pairs_of(root, parts), load_wordnet(), pool).save(path.parent)
        outputs += EditModel.files(path.parent)
    return JobResult(outputs, Counts("caption", counts.captions, counts.captions))


def _pairs_of(root: Path, parts: Sequence[str]) -> list[tuple[Pair, list[Token]]]:
    """Return pairs with their tokens, on which the word balance is learned: those of the first parts."""
    found: list[tuple[Pair, list[Token]]] = []
    for part in parts:
        pairs = PAIRS.read(pairs_path(root, part))
        found += zip(pairs, read_tokens(tokens_path(root, part), [pair.caption for pair in pairs]), strict=True)
        if len(found) >= BALANCE_CAPTIONS:
            break
    return found


def _tagger_state(name: str) -> str:
    """Return name and version of a tagger, and the state of its files if it is a pipeline in a folder."""
    source = Path(choose_pipeline(name))
    files = "" if source == BUNDLED_PIPELINE or not source.is_dir() else file_state([source])
    return f"{tagger_status(name)[1]} {files}"
