"""Stage ``tag``: each caption is tagged once, and the words of the pool are counted part by part."""

from pathlib import Path

from pairwright.datasets.record_tables import PAIRS
from pairwright.flows.state.layout import pairs_path, tokens_path
from pairwright.flows.state.receipts import Counts, JobResult
from pairwright.generators.language.pool_statistics import PoolCounts, PoolStatistics, count_captions
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.token_storage import write_tokens
from pairwright.generators.language.tokens import tag_all


def partial_statistics_path(root: Path, part: str) -> Path:
    """Return where the counts of one part stand."""
    return root / "statistics" / f"words-{part}.parquet"


def statistics_path(root: Path) -> Path:
    """Return where the counts of the whole pool stand."""
    return root / "statistics" / "words.parquet"


def tag_part(root: Path, part: str, tagger_name: str, exploded: bool) -> JobResult:  # noqa: FBT001 - a job's argument
    """Tag the captions of a part, store the tokens, and count words over all captions of its images.

    When the input was exploded every caption is a pair of its own, and the others are not counted again.
    """
    pairs = PAIRS.read(pairs_path(root, part))
    tagger = load_tagger(tagger_name)
    tokens = tag_all(tagger, [pair.caption for pair in pairs])
    write_tokens([pair.key for pair in pairs], tokens, tokens_path(root, part))
    others = [] if exploded else tag_all(tagger, [caption for pair in pairs for caption in pair.captions])
    count_captions([*tokens, *others]).exact().save(partial_statistics_path(root, part))
    outputs = [tokens_path(root, part), partial_statistics_path(root, part)]
    return JobResult(outputs, Counts("caption", len(pairs), len(pairs)), {"tagger": tagger.name})


def merge_statistics(root: Path, parts: list[str]) -> JobResult:
    """Add up the counts of all parts."""
    counts = PoolCounts()
    for part in parts:
        counts = counts.merged(PoolCounts.of(PoolStatistics.load(partial_statistics_path(root, part))))
    counts.frozen().save(statistics_path(root))
    return JobResult([statistics_path(root)], Counts("caption", counts.captions, counts.captions))
