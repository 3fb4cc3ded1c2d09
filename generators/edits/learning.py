"""Training of the edit model: its cloze model on slots of the captions of a pool, its word balance on pairs."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from pairwright.datasets.records import Pair
from pairwright.generators.captions.caption import Caption, ParsedText
from pairwright.generators.edits.edit_model import EditModel, load_bundled_model
from pairwright.generators.edits.editors import ADDED, BALANCED_TYPES, EditorSet, WordEditor, build_editors
from pairwright.generators.edits.floors import DEFAULT_FLOOR, NULL_WEIGHTS
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.slots import slot_examples
from pairwright.generators.edits.word_balance import ALLOWED, AllowedProposals, learn_balance
from pairwright.generators.language.cloze.examples import ClozeSample, ClozeSampler
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.language.cloze.training import known_share, train_cloze_model
from pairwright.generators.language.tokens import Token
from pairwright.generators.language.wordnet import WordNet

BALANCE_CAPTIONS: Final = 8_000  # maximum number of pairs for the word balance
BALANCE_BATCH: Final = 500  # captions whose proposals are scored at once: bounds memory, does not change the result
_KNOWN_SHARE: Final = 0.8  # share of slots; the bundled model knows about 90% in other captions of photographs


def sample_slots(captions: Iterable[str], tokens: Iterable[Sequence[Token]], thesaurus: WordNet) -> ClozeSample:
    """Return the slots of captions as training examples of a cloze model."""
    sampler = ClozeSampler()
    for caption, words in zip(captions, tokens, strict=True):
        sampler.add(caption, slot_examples(ParsedText(words), thesaurus))
    return sampler.sample()


def types_to_balance(types: Iterable[str], *, both_sides: bool) -> tuple[str, ...]:
    """Return the types of negatives whose words are balanced: REPLACE, and ADD with both sides.

    Args:
        types: requested types.
        both_sides: whether each negative has a hard positive.
    """
    wanted = frozenset(types)
    return tuple(name for name in BALANCED_TYPES if name in wanted and (both_sides or name not in ADDED))


def learn_edit_model(  # noqa: PLR0913 - keywords
    sample: ClozeSample,
    pairs: Sequence[tuple[Pair, Sequence[Token]]],
    thesaurus: Any,
    pool: Any,
    types: Collection[str] = tuple(BALANCED_TYPES),
    *,
    threads: int = 1,
) -> EditModel:
    """Return the edit model of a pool, or the bundled model if it knows most slots (`bundled_model_for`).

    Args:
        sample: slots of the captions of the pool.
        pairs: pairs of the pool with the tokens of their captions; at most `BALANCE_CAPTIONS` are read.
        thesaurus: WordNet.
        pool: statistics of the captions.
        types: of `types_to_balance`.
        threads: threads for training the networks of the cloze model.
    """
    if model := bundled_model_for(sample):
        return model
    start = load_bundled_model().cloze
    return train_edit_model(sample, pairs, thesaurus, pool, types, start=start, threads=threads)


def bundled_model_for(sample: ClozeSample) -> EditModel | None:
    """Return the bundled model for a pool of which it knows most slots, else None.

    A model of 50,000 captions of photographs edits others of photographs as one of their own would (benchmarks/RESULTS.md).
    """
    bundled = load_bundled_model()
    return bundled if known_share(sample, bundled.cloze) >= _KNOWN_SHARE else None


def train_edit_model(  # noqa: PLR0913 - keywords
    sample: ClozeSample,
    pairs: Sequence[tuple[Pair, Sequence[Token]]],
    thesaurus: Any,
    pool: Any,
    types: Collection[str] = tuple(BALANCED_TYPES),
    *,
    start: ClozeModel | None = None,
    threads: int = 1,
) -> EditModel:
    """Return the edit model of a pool of any size; for the arguments see `learn_edit_model`, for ``start`` `train_cloze_model`."""
    model = EditModel(train_cloze_model(sample, start, threads=threads))
    if not types:
        return model
    return with_balance(model, pairs[:BALANCE_CAPTIONS], EditMaterials.of(thesaurus, pool, model), types)


def with_balance(
    model: EditModel, pairs: Sequence[tuple[Pair, Sequence[Token]]], materials: EditMaterials, types: Collection[str]
) -> EditModel:
    """Return an edit model with the word balances of some types, learned on all the pairs, with their tokens."""
    editors = balanced_editors(materials, types)
    found = [
        allowed_proposals(editors, [Caption(*each) for each in pairs[first : first + BALANCE_BATCH]], first)
        for first in range(0, len(pairs), BALANCE_BATCH)
    ]
    return replace(model, balance=merge_balances(model.cloze, types, found))


def balanced_editors(materials: EditMaterials, types: Collection[str]) -> EditorSet:
    """Return the editors whose proposals the word balance of some types is learned from."""
    return build_editors(materials, types, DEFAULT_FLOOR, both_sides=True)


def allowed_proposals(editors: EditorSet, captions: Sequence[Caption], first: int) -> dict[str, AllowedProposals]:
    """Return the proposals that pass the constraints for a batch of captions, by type.

    Args:
        editors: of `balanced_editors`, with the cloze model of the pool.
        captions: captions of the pool.
        first: index of the first caption.
    """
    found: dict[str, list[tuple[int, int, int, float]]] = {name: [] for name in editors.by_type}
    for name, proposals in editors.propose(captions).items():
        editor = editors.by_type[name]
        assert isinstance(editor, WordEditor)
        for at, each in enumerate(proposals, first):
            found[name] += [(at, *proposal) for proposal in editor.allowed(each)]
    return {name: np.array(rows, ALLOWED) for name, rows in found.items()}


def merge_balances(
    cloze: ClozeModel, types: Collection[str], found: Sequence[Mapping[str, AllowedProposals]]
) -> dict[str, dict[str, float]]:
    """Return the word balances of some types, learned on the proposals of all batches, in order."""
    none = np.zeros(0, ALLOWED)
    return {
        name: learn_balance(
            cloze.targets(BALANCED_TYPES[name]),
            np.concatenate([none, *(each[name] for each in found)]),
            NULL_WEIGHTS.get(name, 0.0),
        )
        for name in types
    }
