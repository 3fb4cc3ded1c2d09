"""Whether an exchange of two stretches is the swap that was asked for, and what it says of the image."""

from collections.abc import Callable, Sequence
from typing import Final

from pairwright.generators.captions.box_truth import may_count, place_in_doubt
from pairwright.generators.captions.caption import Caption
from pairwright.generators.captions.lists import is_one_description, is_one_list
from pairwright.generators.edit_checks.kinds import ATTRIBUTE, OBJECT, Asked, kinds_of_swap, noun_after
from pairwright.generators.edit_checks.swaps import Swap
from pairwright.generators.edit_checks.truth import joins_with_and, same_count, says_the_same
from pairwright.generators.language.tokens import Token

_WITHIN: Final = frozenset({"JJ", "RB", "CC", "CD", "HYPH"})  # between words that describe one thing
_ARTICLES: Final = frozenset({"a", "an"})


def swap_trouble(  # noqa: PLR0913, PLR0917 - a swap, its source and its caption
    caption: Caption,
    asked: Asked,
    source: Sequence[Token],
    new: Sequence[Token],
    swap: Swap,
    is_alive: Callable[[str], bool],
) -> str:
    """Return what is wrong with a swap, or an empty string; ``is_alive`` tells of a noun whether it is somebody."""
    if asked.kind == "hard_positive":
        owned = any(token.tag == "PRP$" for token in source[slice(*swap.second)])  # "a man and his dog"
        return "" if joins_with_and(source[slice(*swap.between)]) and not owned else "may_be_false"
    if asked.target not in _kinds_of_swap(source, swap):
        return "another_target"
    return _mends_an_article(source, new, swap) or _truth(caption, source, swap, asked.target, is_alive)


def _truth(caption: Caption, source: Sequence[Token], swap: Swap, target: str, is_alive: Callable[[str], bool]) -> str:
    between = source[slice(*swap.between)]
    if target == OBJECT:
        first, second = _noun_of(source, swap.first), _noun_of(source, swap.second)
        if place_in_doubt(caption.words, second, _wording(between), first):
            return "true_of_image"
        stays = any(t.tag in {"JJ", "CD"} for t in source[max(0, swap.first[0] - 1) : swap.first[0]])
        if between and says_the_same(between) and not stays:
            return "same_meaning"
        whole = not stays and source[swap.second[0] - 1].tag not in {"JJ", "CD"}
        return "true_of_image" if whole and is_one_list(source, swap.first, swap.second, is_alive) else ""
    if same_count(_word_of(source, swap.first), _word_of(source, swap.second)):
        return "same_meaning"  # "some people look at three pictures": there may be three people, too
    longer = max(swap.first, swap.second, key=lambda span: span[1] - span[0])
    past = between or source[slice(*longer)]
    described = bool(between) and is_one_description(source, swap.first[1] - 1, swap.second[0])
    if described or all(token.tag in _WITHIN or token.pos == "PUNCT" for token in past):
        return "same_meaning"  # both describe one thing
    said = any(
        caption.words.said_with(*pair, elsewhere=True) or may_count(caption.words, *pair)
        for pair in _newly_described(source, swap)
    )
    return "true_of_image" if said else ""


def _noun_of(source: Sequence[Token], span: tuple[int, int]) -> str:
    return next((source[at].lemma for at in reversed(range(*span)) if source[at].pos in {"NOUN", "PROPN"}), "")


def _word_of(source: Sequence[Token], span: tuple[int, int]) -> str:
    return " ".join(token.text.lower() for token in source[slice(*span)])


def _wording(tokens: Sequence[Token]) -> str:
    return " ".join(t.text.lower() for t in tokens if t.tag != "DT" or t.text.lower() == "the").removesuffix(" the")


def _kinds_of_swap(source: Sequence[Token], swap: Swap) -> frozenset[str]:
    if swap.first[1] < swap.second[0]:
        return kinds_of_swap(source, swap.first, swap.second)
    moved = min(swap.first, swap.second, key=lambda span: span[1] - span[0])
    # One word moved past others: it describes another thing now, or it is no swap of two things.
    return kinds_of_swap(source, moved, moved) & {ATTRIBUTE}


def _newly_described(source: Sequence[Token], swap: Swap) -> list[tuple[str, str]]:
    """Return each thing (lemma of its noun) with the word that describes it only after the exchange."""
    (start, middle), (second, end) = swap.first, swap.second
    if middle < second:
        nouns = noun_after(source, middle), noun_after(source, end)
        found = [(nouns[0], source[end - 1]), (nouns[1], source[middle - 1])]
    elif middle - start < end - second:
        found = [(noun_after(source, end), source[middle - 1])]
    else:
        found = [(noun_after(source, start), source[end - 1])]
    return [(noun, word.text.lower()) for noun, word in found if noun]


def _mends_an_article(source: Sequence[Token], new: Sequence[Token], swap: Swap) -> str:
    """Return a reason when an article changed before a word that stayed where it was."""
    outside = [*range(swap.first[0] - 1), *range(swap.second[1], len(source))]
    return (
        "repaired"
        if any(
            source[at].text.lower() != new[at].text.lower() for at in outside if source[at].text.lower() in _ARTICLES
        )
        else ""
    )
