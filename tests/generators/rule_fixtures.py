"""What the tests of rule generators share: small pools with their models, a small thesaurus, and ways to annotate a text."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from pairwright.datasets.colorshape.corpus import make_sample, sample_to_pair
from pairwright.datasets.records import Annotation, Box, Pair, pair_key
from pairwright.datasets.rng import make_rng
from pairwright.generators.edits.edit_model import EditModel
from pairwright.generators.edits.learning import sample_slots, train_edit_model
from pairwright.generators.language.pool_statistics import PoolStatistics, count_captions
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.tokens import Token
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.protocols import RuleGenerator

POOL = (
    "a dog on a bed", "a cat on a bed", "a dog on a couch", "a cat under a table", "a dog under a table",
    "a horse in a field", "a cow in a field", "a zebra in a field", "a dog in front of a house",
    "a cat behind a house", "a large red bus on a street", "a small blue car on a street", "a green truck on a street",
    "a man riding a horse", "a woman riding a bicycle", "a man riding a motorcycle", "two dogs and three cats",
    "four horses in a field", "a wooden table and a metal chair", "a black dog and a white cat", "a table in a kitchen",
    "a bed in a bedroom", "a toilet in a bathroom", "a man standing on a street", "a woman sitting on a bench",
    "a dog lying on a bed", "a sofa in a room", "a couch in a room", "a red car next to a blue truck",
    "a bicycle beside a bus", "an orange cat on a chair", "an open door", "a closed door", "an open window",
    "a closed window", "a big dog", "a little cat", "a yellow bus", "a brown horse", "a black cow", "six birds",
    "a man on a horse", "a woman on a horse", "a dog on a horse", "a ball to the left of a box", "a box right of a ball",
    "a small bus", "a man standing on a bench", "a table with a dog",
)  # fmt: skip


@lru_cache(maxsize=1)
def small_pool() -> PoolStatistics:
    """Statistics of `POOL`, each caption counted three times."""
    return counted(POOL * 3)


def counted(captions: Iterable[str]) -> PoolStatistics:
    """Return the statistics of captions, to be read only: each caption is tagged once for all tests."""
    return _counted(tuple(captions))


@lru_cache(maxsize=64)
def _counted(captions: tuple[str, ...]) -> PoolStatistics:
    return count_captions(tokens_of_all(captions)).frozen()


COLOURS, SHAPES = ("red", "blue", "pink"), ("hexagon", "pentagon", "rhombus")
SHAPED = tuple(f"a {colour} trapezoid on a {shape}" for colour in COLOURS for shape in SHAPES)


def tiny_edit_model(captions: Sequence[str]) -> EditModel:
    """Return the edit model of captions, each an image of its own."""
    return learned(captions, [pair_of(caption) for caption in dict.fromkeys(captions)])


def learned(captions: Sequence[str], pairs: Sequence[Pair]) -> EditModel:
    """Return the edit model of captions, with the word balance of pairs."""
    wordnet = load_wordnet()
    sample = sample_slots(captions, tokens_of_all(captions), wordnet)
    tagged = list(zip(pairs, tokens_of_all([pair.caption for pair in pairs]), strict=True))
    return train_edit_model(sample, tagged, wordnet, counted(captions))


@dataclass(frozen=True)
class Scenes:
    """ColorShape scenes as pairs, with the tokens, the statistics and the edit model of their captions."""

    pairs: Sequence[Pair]
    tokens: Sequence[Sequence[Token]]
    pool: PoolStatistics
    model: EditModel


@lru_cache(maxsize=2)
def scenes(number: int = 250) -> Scenes:
    """Return the first scenes; learned once for all tests of a process."""
    pairs = [sample_to_pair(make_sample(11, index)) for index in range(number)]
    captions = [pair.caption for pair in pairs]
    return Scenes(pairs, tokens_of_all(captions), counted(captions), learned(captions, pairs))


_TAGGED: dict[str, Sequence[Token]] = {}


def tokens_of_all(captions: Sequence[str]) -> list[Sequence[Token]]:
    """Tag captions, those together that were not tagged before."""
    new = [caption for caption in dict.fromkeys(captions) if caption not in _TAGGED]
    if new:
        _TAGGED.update(zip(new, load_tagger().tag(new), strict=True))
    return [_TAGGED[caption] for caption in captions]


def tokens_of(caption: str) -> Sequence[Token]:
    """Tag one caption."""
    return tokens_of_all([caption])[0]


def pair_of(caption: str, *others: str, boxes: tuple[Box, ...] = (), crowds: tuple[str, ...] = ()) -> Pair:
    """Return a pair with its other captions, boxes, and crowds as the reader of COCO notes them."""
    regions = [{"label": label, "x1": 0.0, "y1": 0.0, "x2": 1.0, "y2": 0.5} for label in crowds]
    meta = json.dumps({"crowd": regions} if regions else {})
    return Pair(key=pair_key("test", "", caption), caption=caption, captions=others, boxes=boxes, meta=meta)


def annotate(generator: RuleGenerator, pair: Pair, seed: int = 0) -> list[Annotation]:
    """Annotate one pair as a stage would."""
    return generator.annotate(pair, tokens_of(pair.caption), make_rng(seed, generator.name, pair.key))


def texts(make: Callable[[int], list[Annotation]], seeds: int = 20) -> set[str]:
    """Return all texts kept under different seeds."""
    return {a.text for seed in range(seeds) for a in make(seed) if a.status == "kept"}


def assert_order_is_free(pairs: Sequence[Pair], make: Callable[[], RuleGenerator]) -> None:
    """Fail unless one generator annotates pairs forwards and backwards as new ones do that saw no other pair."""
    expected = {pair.key: annotate(make(), pair) for pair in pairs}
    generator = make()
    for order in (pairs, pairs[::-1]):
        assert {pair.key: annotate(generator, pair) for pair in order} == expected
