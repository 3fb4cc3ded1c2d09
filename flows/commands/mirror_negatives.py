"""Reuse of negatives that are captions of another image as its positives (``pairwright refine --mirror-negatives``)."""

from collections.abc import Callable, Iterator

import polars as pl

from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.datasets.records import Pair
from pairwright.filters.candidates.mirrored_negatives import CaptionsByImage, mirror_negatives
from pairwright.filters.candidates.rows import candidate_frame, complete_rows, edit_type_name
from pairwright.filters.validation.caption_context import check_by_context, collect_facts
from pairwright.filters.validation.verdicts import ValidationRow
from pairwright.flows.commands.checked_pool import count_checked_pool
from pairwright.flows.commands.pair_inputs import read_auxiliary_pairs
from pairwright.generators.edits.written.checks import EditChecks
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.triples import CachingTagger, Triples


def add_mirrored_negatives(frame: pl.DataFrame, corpus: str, note: Callable[[str], None]) -> pl.DataFrame:
    """Return candidate rows, followed by the rows of `mirror_negatives` that the context does not contradict.

    Args:
        frame: with the columns of `filters.candidates`.
        corpus: pairs of more images, read twice; empty for the images of the rows only.
        note: receives a message.

    Raises:
        InputError: when the corpus is not readable.
    """
    captions_by_image = CaptionsByImage()
    for pair in _pairs(frame, corpus):
        captions_by_image.add(pair)
    found = list(mirror_negatives(frame, captions_by_image))
    if not found:
        note("No negative is a caption of another image, so none is reused. Try a larger --corpus.")
        return frame
    known = collect_facts(_pairs(frame, corpus), {group for group, _ in found})
    wordnet, tagger = load_wordnet(), CachingTagger(load_tagger())
    pool = count_checked_pool((text for each in known.values() for text in each.captions), tagger)
    tagger.learn(text for _, row in found for text in (row["caption"], row["negative"]))
    questions = (
        (
            ValidationRow(row["id"], row["image"], row["caption"], row["negative"]),
            group,
            edit_type_name(row["form"], row["target"]) if row["form"] or row["target"] else "",
        )
        for group, row in found
    )
    verdicts = list(
        check_by_context(questions, known, Triples(EditChecks(wordnet, pool, tagger), tagger, as_given=True), tagger)
    )
    taken = [row for (_, row), verdict in zip(found, verdicts, strict=True) if not verdict.reason]
    note(f"{len(found):,} negatives are captions of another image; {len(taken):,} are reused as positives of it.")
    return candidate_frame((f"row {at}", row) for at, row in enumerate([*complete_rows(frame), *taken]))


def _silent(line: str) -> None:
    # Broken rows of the corpus are reported when it is read to train the scorers.
    del line


def _pairs(frame: pl.DataFrame, corpus: str) -> Iterator[Pair]:
    for key, image, caption in frame.select("key", "image", "caption").iter_rows():
        yield Pair(key, caption, image=image)
    if corpus:
        yield from read_auxiliary_pairs(ReadOptions(input=corpus), _silent)
