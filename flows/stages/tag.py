"""Stage ``tag``: tags of the captions of each part, its word counts, and the slots that the edit model learns from."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from pairwright.datasets.record_tables import PAIRS
from pairwright.datasets.records import Pair
from pairwright.flows.state.inputs import file_state
from pairwright.flows.state.layout import pairs_path, tokens_path
from pairwright.flows.state.receipts import Counts, Job, JobResult, contents_of
from pairwright.generators.edits.learning import sample_slots
from pairwright.generators.language.pool_statistics import PoolStatistics, count_captions
from pairwright.generators.language.tagger import BUNDLED_PIPELINE, choose_pipeline, load_tagger, tagger_status
from pairwright.generators.language.token_storage import write_tokens
from pairwright.generators.language.tokens import tag_all
from pairwright.generators.language.wordnet import load_wordnet

if TYPE_CHECKING:
    from pairwright.flows.stages.definition import StageRun


def tag_jobs(run: "StageRun") -> Sequence[Job]:
    """Return the jobs of stage ``tag``; each depends on its own part only, so that appended input keeps the others."""
    config, state = run.config, _tagger_state(run.config.tagger)
    content = contents_of(run.receipts("pairs"))
    return [
        run.job(
            *(tag_part, part, config.tagger),
            part=part,
            state=f"{state} {content[f'pairs/{part}.parquet']}",
        )
        for part in run.parts
    ]


def partial_statistics_path(root: Path, part: str) -> Path:
    """Return the file of the word counts of one part."""
    return root / "statistics" / f"words-{part}.parquet"


def slots_path(root: Path, part: str) -> Path:
    """Return the file of the slots of one part, on which the edit model is trained."""
    return root / "statistics" / f"slots-{part}.npz"


def statistics_path(root: Path) -> Path:
    """Return the file of the word counts of the whole pool."""
    return root / "statistics" / "words.parquet"


def load_pool(path: Path) -> PoolStatistics:
    """Return the word counts of a pool, which a process keeps for its next part and stage."""
    return _load_pool(path, file_state([path]))


@lru_cache(maxsize=1)
def _load_pool(path: Path, _state: str) -> PoolStatistics:
    return PoolStatistics.load(path)


def tag_part(root: Path, part: str, tagger_name: str) -> JobResult:
    """Tag the captions of a part, write the tokens, and count words over all captions of its images, each once."""
    pairs = PAIRS.read(pairs_path(root, part))
    tagger = load_tagger(tagger_name)
    tokens = tag_all(tagger, [pair.caption for pair in pairs])
    write_tokens([pair.key for pair in pairs], tokens, tokens_path(root, part))
    captions, others = [pair.caption for pair in pairs], _other_captions(pairs)
    tokens += tag_all(tagger, others)
    count_captions(tokens).exact().save(partial_statistics_path(root, part))
    sample_slots([*captions, *others], tokens, load_wordnet()).save(slots_path(root, part))
    outputs = [tokens_path(root, part), partial_statistics_path(root, part), slots_path(root, part)]
    return JobResult(outputs, Counts("caption", len(pairs), len(pairs)), {"tagger": tagger.name})


def _other_captions(pairs: Sequence[Pair]) -> list[str]:
    """Return the other captions of the images of pairs, without those that have a pair of their own."""
    counted = {(pair.source_id, pair.image, pair.caption) for pair in pairs}
    others: list[str] = []
    for pair in pairs:
        for caption in pair.captions:
            named = (pair.source_id, pair.image, caption)
            if named not in counted:
                counted.add(named)
                others.append(caption)
    return others


def _tagger_state(name: str) -> str:
    """Return name and version of a tagger, and the state of its files if it is a pipeline in a folder."""
    source = Path(choose_pipeline(name))
    files = "" if source == BUNDLED_PIPELINE or not source.is_dir() else file_state([source])
    return f"{tagger_status(name)[1]} {files}"
