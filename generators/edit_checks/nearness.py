"""Which words are too near to stand for each other in a written negative.

Sisters in WordNet are what a negative wants: a chair is no bench. Too near are

- synonyms, by our own table or WordNet's, and words of which one is a kind of the other (`knowledge.Thesaurus.related`);
- nouns that captioners use for the same thing (`synonyms.LOOSELY_SAME`), but for those pairs that they were measured to
  tell apart (`APART`). The measure, over five captions each of 20,264 photographs: among the images whose captions have
  the rarer noun, the share of those where one caption has one noun, another has the other, and none has both. Told
  apart are pairs with a share below 10% that is also below 2.5 times the share of all images that have the commoner
  noun; pairs seen in fewer than 20 images stay near. `benchmarks/noun_substitutions.py` prints the table.

Grown people and children are told apart by what the words mean. Of qualities that a viewer may take for each other
(`attributes.NEIGHBOURS`) those are told apart that captioners hardly exchange (`QUALITIES_APART`): where two captions
of a photograph each give a noun a quality of one class, the pair stands in fewer than 5% of at least 50 such pairs of
captions that have the rarer of the two. Between any two colours that are no neighbours it is up to 6%.

The makers by rules leave out all of `LOOSELY_SAME` and `NEIGHBOURS`: they have others to choose from.
"""

from functools import lru_cache
from typing import Final

from pairwright.generators.captions.context import plural_of
from pairwright.generators.words.attributes import exclude_each_other, place
from pairwright.generators.words.synonyms import ATTRIBUTES, OBJECTS, reword_each_other

# The first word of each group is told apart from the others.
_APART: Final = """
aircraft airliner; automobile cab taxi van; backpack purse suitcase; baggage purse; basin faucet; bat racket
racquet; bathroom toilet urinal; bed couch sofa; beef ham; bench chair couch counter countertop desk dresser
shelf sofa sofas stool table; bicycle motorcycle; billboard poster; blanket mat; board ski; boot sneaker; bottle
cup glass mug pitcher; bowl platter tray; branch flower; breakfast dish entree salad snack; bun sub toast;
burger sub toast; cab van vehicle; canoe sailboat ship; cap helmet; car railway subway train; carpet towel;
ceiling floor; child lady man woman; coat shirt sweater t-shirt vest; computer television tv; couch mattress
stool; counter desk dresser; countertop desk dresser shelf; cup glass pitcher; cupcake pie; cycle moped; day
night; desk shelf; desktop television tv; dinner snack; dish lunch; engine subway train trolley; entree lunch
snack; fence wall; floor wall; flower forest shrub tree wood; forest shrub; fork knife spoon; gate railing wall;
glass mug pitcher; green salad; ham steak; hamburger toast; handbag luggage suitcase suitcases; hat helmet;
hotdog toast; jacket shirt sweater t-shirt; jar pitcher; jean short; keyboard television tv; kid lady woman;
knife spoon; laptop television tv; locomotive subway trolley; match sport; mattress sofa; mirror window; mug
pitcher; pant short; pickup trailer truck; plant wood; railing wall; roll toast; rug towel; salad snack; semi
van; shirt suit vest; shrub wood; sofas stool; sub toast; subway trolley; suit sweater t-shirt; sweater t-shirt;
t-shirt vest; taxi van; trailer van
"""
_GROWN: Final = "adult child kid; gentleman child kid"
_QUALITIES: Final = """
black blue; blue green; brown gray orange red yellow; glass metal plastic; leather plastic wood; metal plastic;
paper wood; purple red; white yellow
"""


# Relations that may be told of the same two things, by lemma: who rides a bike is on it, what is next to a car is near
# it. None of a group undoes another. What two wordings share may be cut off: "next" and "adjacent".
_TOGETHER: Final = tuple(
    frozenset(each.strip() for each in group.split(","))
    for group in """
near, close to, close, nearby, by, next to, next, beside, alongside, adjacent to, adjacent, side by side with, at, against
in front of, before
behind, in back of, after
follow, run behind, walk behind, go behind, ride behind, run after, walk after, go after, ride after
chase, run behind, run after, go after
in, inside, inside of, within, among, amid
on, upon, on top of, atop, over, above
on, ride, sit on, stand on
down, along, on
up, along, on
with, wear, in, dress in, have
with, hold, carry
with, of, top with, fill with, cover with, cover in, full of
look at, look, watch, stare at, stare, gaze at, gaze, face, look toward
sit, rest, relax, lounge
to, toward, towards
from, out of, off, off of
""".strip().splitlines()
)


def may_hold_together(one: str, other: str) -> bool:
    """Whether two relations, by their lemmas, may be told of the same two things at once."""
    return any(one in group and other in group for group in _TOGETHER)


def _pairs(groups: str) -> frozenset[frozenset[str]]:
    return frozenset(
        frozenset((first, other)) for first, *others in map(str.split, groups.split(";")) for other in others
    )


_INSTEAD: Final = _pairs(
    "street road roadway; road roadway; field meadow; grass lawn; shore coast; purse handbag; rock stone; shop store; "
    "bathroom restroom; phone cellphone telephone; pup puppy; airplane aircraft; plane aircraft; forest wood; path trail; "
    "photo picture image; photograph picture image; picture image"
)
APART: Final = _pairs(_APART) | _pairs(_GROWN)
QUALITIES_APART: Final = _pairs(_QUALITIES)


def near(one: str, other: str) -> bool:
    """Whether two lemmas may be said of one thing."""
    return reword_each_other(one, other) and (frozenset((one, other)) not in APART or _synonyms(one, other))


def reworded(one: str, other: str) -> bool:
    """Whether a word may be written for another, and what is said stays as true: by tables of synonyms.

    Of nouns that captioners use for the same thing most say something else (a lake, a river; a cake, a pie).
    """
    tables = other in OBJECTS.get(one, ()) or one in OBJECTS.get(other, ()) or frozenset((one, other)) in _INSTEAD
    first, second = ATTRIBUTES.get(one), ATTRIBUTES.get(other)
    return one == other or tables or bool(first and other in first.others) or bool(second and one in second.others)


def unlike(one: str, other: str) -> bool:
    """Whether what a thing has by one word it has not by the other: both of one class, and told apart."""
    first, second = place(one), place(other)
    if first is None or second is None or first.group != second.group:
        return exclude_each_other(one, other)
    return exclude_each_other(one, other) or frozenset((first.concept, second.concept)) in QUALITIES_APART


def _synonyms(one: str, other: str) -> bool:
    return other in OBJECTS.get(one, ()) or one in OBJECTS.get(other, ())


@lru_cache(maxsize=20_000)
def same_forms(noun: str) -> frozenset[str]:
    """Return the words, in either number, that say the same as a noun."""
    words = {noun, *OBJECTS.get(noun, ())}
    return frozenset(words | {plural_of(word) for word in words})
