"""Learning of the edit model: examples of slots from the captions of a pool, and the word balance from its pairs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from pairwright.datasets.records import Pair
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.edit_model import EditModel
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.replacement_types import REPLACEMENT_TYPES, build_replacements
from pairwright.generators.edits.replacements import Replacements
from pairwright.generators.edits.scored_captions import ScoredCaption, score_captions
from pairwright.generators.edits.slots import context_of, find_slots
from pairwright.generators.edits.word_balance import AllowedProposals, learn_balance
from pairwright.generators.knowledge.sources import Thesaurus
from pairwright.generators.language.cloze.context import ClozeExample
from pairwright.generators.language.cloze.examples import ClozeSample, ClozeSampler
from pairwright.generators.language.cloze.training import train_cloze_model
from pairwright.generators.language.tokens import Token

BALANCE_CAPTIONS: Final = 3_000  # pairs on which the word balance is learned, at most
_CHECKED: Final = 24  # proposals of a caption that are checked against the constraints, the likeliest first
_BATCH: Final = 500


def sample_slots(captions: Iterable[str], tokens: Iterable[Sequence[Token]], thesaurus: Thesaurus) -> ClozeSample:
    """Return the slots of captions as training examples of a cloze model."""
    sampler = ClozeSampler()
    for caption, words in zip(captions, tokens, strict=True):
        sampler.add(caption, _examples(caption, words, thesaurus))
    return sampler.sample()


def _examples(caption: str, tokens: Sequence[Token], thesaurus: Thesaurus) -> Iterator[ClozeExample]:
    parsed = Caption(Pair("", caption), tokens)
    for slot in find_slots(parsed, thesaurus):
        yield ClozeExample(slot.kind, slot.key, context_of(parsed, slot.start, slot.end, slot.before, slot.after))


def learn_edit_model(
    sample: ClozeSample, pairs: Sequence[tuple[Pair, Sequence[Token]]], thesaurus: Any, pool: Any
) -> EditModel:
    """Return the edit model of a pool.

    Args:
        sample: slots of its captions.
        pairs: some of its pairs, with the tokens of their captions; at most `BALANCE_CAPTIONS` are read.
        thesaurus: WordNet.
        pool: statistics of the captions.
    """
    model = EditModel(train_cloze_model(sample))
    captions = [Caption(pair, tokens) for pair, tokens in pairs[:BALANCE_CAPTIONS]]
    return replace(model, balance=learn_balances(EditMaterials.of(thesaurus, pool, model), captions))


def learn_balances(materials: EditMaterials, captions: Sequence[Caption]) -> dict[str, dict[str, float]]:
    """Return the word balance of each type of replacement, learned on captions with what is said of their images."""
    makers = {name: build_replacements(name, materials) for name in REPLACEMENT_TYPES}
    kinds = [maker.proposer.kind for maker in makers.values()]
    found: dict[str, list[tuple[int, int, int, float]]] = {name: [] for name in makers}
    cloze = materials.model.cloze
    for start in range(0, len(captions), _BATCH):
        batch = captions[start : start + _BATCH]
        for at, scored in enumerate(score_captions(batch, materials.thesaurus, cloze, kinds), start):
            for name, maker in makers.items():
                found[name] += _allowed(maker, scored, at)
    return {
        name: learn_balance(cloze.targets(makers[name].proposer.kind), _as_arrays(rows)) for name, rows in found.items()
    }


def _allowed(maker: Replacements, scored: ScoredCaption, caption: int) -> Iterator[tuple[int, int, int, float]]:
    proposals = maker.propose(scored)
    for at in np.argsort(-proposals.log_ratio, kind="stable")[:_CHECKED]:
        slot, new = proposals.slots[proposals.slot[at]], proposals.targets[proposals.new[at]]
        if maker.is_allowed(scored, slot, new):
            yield caption, int(proposals.old[at]), int(proposals.new[at]), float(proposals.log_ratio[at])


def _as_arrays(rows: Sequence[tuple[int, int, int, float]]) -> AllowedProposals:
    captions, old, new, ratios = zip(*rows, strict=True) if rows else ((), (), (), ())
    return AllowedProposals(
        np.array(captions, np.int64), np.array(old, np.int64), np.array(new, np.int64), np.array(ratios, np.float32)
    )
