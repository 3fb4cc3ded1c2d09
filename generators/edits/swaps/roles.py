"""Object swaps between roles: two things change what the caption says of them.

"A woman holds a baby while a man takes a picture" gives "a man holds a baby while a woman takes a picture". Persons,
animals and vehicles fill each other's roles; a table on a plate is odd. What is said must tell the two apart, which the
constraints on swaps of objects check.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.phrases import NounPhrase
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.table import Constraint, first_violated
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.slots import find_relations, lexicon_key
from pairwright.generators.edits.swaps.attributes import FURTHEST, Swap
from pairwright.generators.edits.swaps.objects import exchange_nouns, nouns_of
from pairwright.generators.lexicon.nouns import flagged
from pairwright.generators.lexicon.relations import load_relations

_AGENTS: Final = frozenset({"person", "animal", "vehicle"})


def swap_roles(caption: Caption, materials: EditMaterials, constraints: Sequence[Constraint]) -> Iterator[Swap | str]:
    """Yield the swaps of two nouns of one class, or reason codes of rejections."""
    known = materials.knowledge
    agents = [each for each in caption.things if not _AGENTS.isdisjoint(known.nouns.classes(caption.head(each)))]
    near = ((one, other) for at, one in enumerate(agents, 1) for other in agents[at : at + FURTHEST])
    for one, other in near:
        if other.start - one.end > FURTHEST:
            continue
        reason = _reject(caption, materials, constraints, one, other)
        yield reason or exchange_nouns(caption, materials, (one, nouns_of(one)), (other, nouns_of(other)))


def _reject(
    caption: Caption, materials: EditMaterials, constraints: Sequence[Constraint], one: NounPhrase, other: NounPhrase
) -> str:
    """Return why two nouns are not exchanged, or an empty string."""
    nouns, names = materials.knowledge.nouns, (caption.head(one), caption.head(other))
    if names[0] == names[1]:
        return "identical"
    if nouns.classes(names[0]).isdisjoint(nouns.classes(names[1])):
        return "no_candidate"
    babies = [name in flagged("baby") for name in names]
    if babies[0] is not babies[1] or not (nouns.is_alive(names[0]) or _are_apart(caption, other)):
        return "no_candidate"  # a baby bathes no woman, a boat tows no truck
    sexed = [name in flagged("male") | flagged("female") for name in names]
    if not nouns.exclusive(*names) and sexed[0] is not sexed[1]:
        return "true_of_image"  # the skier may be the man; the catcher is not the umpire
    if any(len(caption.by_head[name]) > 1 for name in names):
        return "true_of_image"  # a man, another man and a woman
    first, second = nouns_of(one), nouns_of(other)
    edit = ProposedEdit(caption, "swap", "object", *names, "", "", *first, second)
    violated = first_violated(constraints, edit, materials.knowledge)
    return violated.reason if violated is not None else ""


def _are_apart(caption: Caption, second: NounPhrase) -> bool:
    """Return whether the relation to a phrase is one of position alone: "behind a car"."""
    slots = (slot for slot in find_relations(caption) if slot.end == second.start)
    return any(load_relations().keeps_apart(lexicon_key(slot.key)) for slot in slots)
