"""A small pool of captions with its statistics and cloze model, and what additions make of a caption."""

from functools import lru_cache
from itertools import product

from pairwright.datasets.records import Box
from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.realisation import rewrite
from pairwright.generators.edits.additions.proposals import Additions
from pairwright.generators.edits.edit_model import EditModel
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.proposals import WordProposals
from pairwright.generators.edits.slots import context_of, find_slots
from pairwright.generators.language.cloze.context import ClozeExample
from pairwright.generators.language.cloze.examples import ClozeSampler
from pairwright.generators.language.cloze.training import train_cloze_model
from pairwright.generators.language.pool_statistics import PoolStatistics, count_captions
from pairwright.generators.language.wordnet import load_wordnet
from tests.generators.rule_fixtures import pair_of, tokens_of, tokens_of_all

_ANIMALS = ("dog", "cat", "horse", "zebra", "giraffe", "elephant")
_PLACES = ("a bed", "a field", "a street", "a couch", "a lawn")
_COLOURS = ("red", "blue", "green", "yellow", "black")


def _captions() -> list[str]:
    found = [f"a man with a {one} on {place}" for one, place in product(_ANIMALS, _PLACES)] * 4
    found += [f"a {one} next to a {other}" for one, other in product(_ANIMALS, _ANIMALS) if one != other]
    found += [f"a {one} and a {other} on {place}" for one, other, place in product(_ANIMALS, _ANIMALS, _PLACES)]
    found += [f"a {colour} bus on {place} with a {one}" for colour, place, one in product(_COLOURS, _PLACES, _ANIMALS)]
    found += [f"a {colour} umbrella near a {one}" for colour, one in product(_COLOURS, _ANIMALS)]
    found += [f"a plate with a fork on a table in a kitchen near a {one}" for one in _ANIMALS] * 3
    return found * 2


def _most_captions() -> list[str]:
    """Return the captions that have none of the animals, which most captions of a pool have not."""
    found = ["a kitchen with a table and a chair", "a chair at a table in a kitchen"] * 4_000
    return found + [f"a man on {place}" for place in _PLACES] * 200 + [f"a bus on {place}" for place in _PLACES] * 400


@lru_cache(maxsize=1)
def small_statistics() -> PoolStatistics:
    """Statistics of the pool."""
    return count_captions(tokens_of_all(_captions() + _most_captions())).frozen()


@lru_cache(maxsize=1)
def small_materials() -> EditMaterials:
    """What edits of captions like those of the pool are made with."""
    sampler, wordnet = ClozeSampler(), load_wordnet()
    for number, text in enumerate([*_captions(), *_most_captions()[::40]]):
        caption = Caption(pair_of(text), tokens_of(text))
        slots = find_slots(caption, wordnet)
        sampler.add(
            f"{number}",
            [
                ClozeExample(slot.kind, slot.key, context_of(caption, slot.start, slot.end, slot.before, slot.after))
                for slot in slots
            ],
        )
    return EditMaterials.of(wordnet, small_statistics(), EditModel(train_cloze_model(sampler.sample())))


@lru_cache(maxsize=1)
def small_additions() -> Additions:
    """Additions that know the pool."""
    return Additions(small_materials(), floors={"object": 0.01, "attribute": 0.01})


def caption_of(text: str, *others: str, boxes: tuple[Box, ...] = ()) -> Caption:
    """Return a caption with what else is known of its image."""
    return Caption(pair_of(text, *others, boxes=boxes), tokens_of(text))


def proposals_of(caption: Caption, target: str, *, pairs: bool = False) -> WordProposals:
    """Return the proposals for one caption."""
    return small_additions().propose([caption], target, paired=pairs)[0]


def false_texts(caption: Caption, target: str, *, pairs: bool = False) -> set[str]:
    """Return the texts of all false additions."""
    found = proposals_of(caption, target, pairs=pairs)
    return {rewrite(caption.pair.caption, [found.false_change(at)])[0] for at in range(len(found))}


def true_texts(caption: Caption, target: str) -> set[str]:
    """Return the texts of all true additions."""
    found = proposals_of(caption, target, pairs=True)
    return {rewrite(caption.pair.caption, [found.true_change(at)])[0] for at in range(len(found))}


def words_added(caption: Caption, target: str) -> set[str]:
    """Return the words that are added falsely."""
    found = proposals_of(caption, target)
    return {found.targets[new] for new in found.new}
