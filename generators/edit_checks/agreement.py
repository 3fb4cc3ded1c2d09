"""Whether a written text agrees with itself: nouns with number words, articles with nouns, verbs with their subjects.

A model writes "two woman stand" or "an dog" now and then. A *slip* is a word in a form that what stands before it does
not allow. Only slips that the source does not have count, since its own grammar is not ours to mend; and only those
about which tags leave no doubt: where a subject is joined to others behind a preposition, or is one of a group ("a pair
of"), nothing is said of its verb.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pairwright.generators.edit_checks.alignment import Hunk
from pairwright.generators.knowledge.sources import Thesaurus
from pairwright.generators.language.inflection import article, inflect
from pairwright.generators.language.tokens import Token
from pairwright.generators.words.attributes import PLACES
from pairwright.generators.words.nouns import MASS, PLURAL_ONLY
from pairwright.generators.words.wordlists import word_set

_ARTICLES: Final = frozenset({"a", "an"})
_ONE: Final = _ARTICLES | word_set("one each every another")
_MANY: Final = word_set(
    "two three four five six seven eight nine ten eleven twelve several many few both these those multiple various numerous"
)
_AMOUNTS: Final = word_set("few couple dozen hundred thousand many lot number great")
_MEASURES: Final = word_set(
    "story storey tier door level piece man person way lane wheel seat deck floor burner foot inch mile year hour day "
    "bedroom line row part layer sided compartment stage"
)
_COLLECTIVE: Final = word_set(
    "group couple pair bunch herd number lot variety row line team family crowd flock set kind type majority collection "
    "series dozen handful assortment some all one most half rest part plenty none any"
)
_NO_NUMBER: Final = word_set("sheep deer fish cattle people police buffalo bison moose aircraft series species")
_NOUNS: Final = frozenset({"NN", "NNS", "NNP", "NNPS"})
_PLURAL: Final = frozenset({"NNS", "NNPS"})
_BEFORE_NOUN: Final = frozenset({"JJ", "JJR", "JJS", "VBN", "VBG", "RB", "CD"})
_OPENS_PHRASE: Final = frozenset({"DT", "PDT", "PRP$", "POS", "HYPH", "WP$"}) | _BEFORE_NOUN
_CLAUSE: Final = frozenset({"VBD", "VBZ", "VBP", "MD", "WDT", "WP", "WRB", ":", "VB", "EX", "SYM", "``", "''", "-LRB-"})
_CLAUSE_WORDS: Final = word_set("while as when where because if although but that which who so than then though")
_PRONOUNS: Final = {"he": False, "she": False, "it": False, "they": True, "we": True}
_BE: Final = {
    "is": "are", "was": "were", "has": "have", "does": "do", "are": "is", "were": "was", "have": "has", "do": "does",
}  # fmt: skip
_PLURAL_VERBS: Final = frozenset({"are", "were", "have", "do"})


@dataclass(frozen=True, slots=True)
class Slip:
    """A word in a wrong form: its place, what asks for another form, and the right one; empty where there is none."""

    at: int
    anchor: str
    word: str


def tagged_as(source: Sequence[Token], text: Sequence[Token], hunks: Sequence[Hunk]) -> list[Token]:
    """Return the text's tokens, those that are the source's own tagged as there.

    What differs in between is what a tagger stumbles over: "men stands" is two nouns to it.
    """
    made, at, new_at = list(text), 0, 0
    for start, end, new_start, new_end in [
        *((h.start, h.end, h.new_start, h.new_end) for h in hunks),
        (len(source), len(source), len(text), len(text)),
    ]:
        for old, new in zip(range(at, start), range(new_at, new_start), strict=True):
            word, own = text[new], source[old]
            if word.tag != own.tag:
                made[new] = Token(word.text, word.start, word.end, own.tag, own.pos, own.lemma)
        at, new_at = end, new_end
    return made


def mended(source: Sequence[Token], text: Sequence[Token], thesaurus: Thesaurus) -> dict[int, Token] | None:
    """Return the words that put right what disagrees in the text alone, by place; None where no form would do."""
    found = list(_slips(text, thesaurus))
    if not found:
        return {}
    own = {slip.anchor for slip in _slips(source, thesaurus)}
    made: dict[int, Token] = {}
    for slip in found:
        if slip.anchor in own:
            continue
        if not slip.word:
            return None
        token = text[slip.at]
        made[slip.at] = Token(slip.word, token.start, token.end, _tag(token, slip.word), token.pos, token.lemma)
    return made


def mends_the_source(source: Sequence[Token], places: Iterable[int], thesaurus: Thesaurus) -> bool:
    """Whether one of the words at these places was wrong in the source already: nobody asked for that to be mended."""
    found = frozenset(places)
    return bool(found) and any(slip.at in found for slip in _slips(source, thesaurus))


def with_words(text: Sequence[Token], words: dict[int, Token]) -> list[Token]:
    """Return the tokens with some put in."""
    return [words.get(at, token) for at, token in enumerate(text)]


def _tag(token: Token, word: str) -> str:
    if token.pos == "NOUN":
        return "NN" if token.tag == "NNS" else "NNS"
    return {"VBZ": "VBP", "VBP": "VBZ"}.get(token.tag, token.tag) if word else token.tag


def _slips(tokens: Sequence[Token], thesaurus: Thesaurus) -> Iterator[Slip]:
    numbers: dict[int, bool] = {}  # of heads that a number word sets right
    shouted = all(token.text.isupper() for token in tokens if token.text.isalpha())
    for at, token in enumerate(tokens[:-1]):
        word = token.text.lower()
        if token.tag in {"DT", "CD", "JJ", "PDT"} and (word in _ONE or word in _MANY) and not _is_pronoun(tokens, at):
            yield from _of_determiner(tokens, at, thesaurus, numbers, shouted=shouted)
    for at, token in enumerate(tokens):
        if at and token.text.lower() in _BE and tokens[at - 1].tag == "EX":
            yield from _of_there(tokens, at, thesaurus, numbers)
        elif at and (token.text.lower() in _BE or token.tag in {"VBZ", "VBP"}):
            yield from _of_verb(tokens, at, numbers)


def _counts_several(tokens: Sequence[Token], at: int) -> bool:
    """Whether a plural noun stands behind a number word: "a | three trees", but not "a | two story house"."""
    if tokens[at].text.lower() not in _MANY - _AMOUNTS:
        return False
    for place, token in enumerate(tokens[at + 1 :], at + 1):
        if token.tag in _PLURAL:
            following = tokens[place + 1].tag if place + 1 < len(tokens) else ""
            return token.lemma not in _MEASURES and following not in _NOUNS | {"HYPH", "POS"}
        if token.tag not in {"JJ", "JJR", "JJS"}:
            return False
    return False


def _is_pronoun(tokens: Sequence[Token], at: int) -> bool:
    return tokens[at + 1].text.lower() in {"other", "another", "of"} and tokens[at].text.lower() in {"each", "one"}


def _of_determiner(
    tokens: Sequence[Token], at: int, thesaurus: Thesaurus, numbers: dict[int, bool], *, shouted: bool
) -> Iterator[Slip]:
    word, following = tokens[at].text.lower(), tokens[at + 1].text
    if word in _ARTICLES and _counts_several(tokens, at + 1):
        yield Slip(at, f"{word} {following.lower()}", "")
        return
    head = _head(tokens, at + 1, thesaurus)
    slip = _of_head(tokens, at, head, thesaurus) if head else None
    if slip is not None:
        numbers[slip.at] = word in _MANY
        yield slip
    if word in _ARTICLES and following[0].isalnum():
        said = slip.word if slip is not None and slip.at == at + 1 and slip.word else following
        right = article(said.lower() if shouted else said)
        if right != word and tokens[at].tag == "DT":
            yield Slip(at, f"{word} {said.lower()}", _as(tokens[at].text, right))


def _as(written: str, word: str) -> str:
    return word.capitalize() if written[:1].isupper() else word


def _head(tokens: Sequence[Token], start: int, thesaurus: Thesaurus) -> int:
    """Return where the noun of the phrase from ``start`` stands; 0 where it is in doubt.

    Of several nouns in a row the last may be a verb to anybody but a tagger ("a balloon floats"), unless the dictionary
    has them together.
    """
    first = head = 0
    for at in range(start, len(tokens)):
        token, word = tokens[at], tokens[at].text.lower()
        if token.tag in {"HYPH", "POS"} or word in _AMOUNTS or (word.endswith("ing") and not head and at > start):
            return 0
        if token.tag in _NOUNS:
            first, head = first or at, at
        elif head or token.tag not in _BEFORE_NOUN or token.tag == "CD":
            break
    after = [token.tag for token in tokens[head + 1 : head + 3]]
    if len(after) > 1 and after[0] in _BEFORE_NOUN and after[1] in _NOUNS:
        return 0  # "two graffiti covered walls"
    name = " ".join([*(token.text.lower() for token in tokens[first:head]), tokens[head].lemma])
    return head if first == head or thesaurus.has(name, "NOUN") else 0


def _of_head(tokens: Sequence[Token], at: int, head: int, thesaurus: Thesaurus) -> Slip | None:
    word, noun = tokens[at].text.lower(), tokens[head]
    form, lemma = noun.text.lower(), noun.lemma
    if not form.isalpha() or lemma in _NO_NUMBER or not thesaurus.has(lemma, "NOUN"):
        return None
    if word in _ONE:
        if noun.tag != "NNS" or form == lemma:
            return None
        if form in PLURAL_ONLY or lemma in PLURAL_ONLY:
            return Slip(head, f"{word} {form}", "")
        known = inflect(lemma, "NNS") == form and not thesaurus.has(form, "NOUN")  # a candelabra
        return Slip(head, f"{word} {form}", lemma) if known else None
    before = tokens[at - 1].tag if at else ""
    measures = head > at + 1 and tokens[at + 1].text.lower() in _MEASURES  # "two story house"
    plural = inflect(lemma, "NNS")
    if noun.tag != "NN" or lemma in MASS or before in {"DT", "PRP$", "POS"} or measures or plural == form:
        return None
    return Slip(head, word, plural if form == lemma else "")


def _of_verb(tokens: Sequence[Token], at: int, numbers: dict[int, bool]) -> Iterator[Slip]:
    word = tokens[at].text.lower()
    known = _number_of_subject(tokens, at, numbers)
    if known is None:
        return
    plural = word in _PLURAL_VERBS if word in _BE else tokens[at].tag == "VBP"
    if plural == known:
        return
    lemma = tokens[at].lemma
    right = _BE.get(word) or (lemma if known else inflect(lemma, "VBZ"))
    if right != word:
        yield Slip(at, word, right)


def _of_there(tokens: Sequence[Token], at: int, thesaurus: Thesaurus, numbers: dict[int, bool]) -> Iterator[Slip]:
    """Give the slip of "there is two dogs"; "there are a dog and a cat" is left alone."""
    word, opening = tokens[at].text.lower(), tokens[at + 1].text.lower() if at + 1 < len(tokens) else ""
    head = _head(tokens, at + 1 + (opening in _ONE or opening in _MANY), thesaurus)
    if not head or tokens[head].lemma in _COLLECTIVE | _NO_NUMBER or any(t.tag == "CC" for t in tokens[head:]):
        return
    plural = opening in _MANY or numbers.get(head, tokens[head].tag in _PLURAL)
    if plural != (word in _PLURAL_VERBS):
        yield Slip(at, f"there {word}", _BE[word])


def _number_of_subject(tokens: Sequence[Token], verb: int, numbers: dict[int, bool]) -> bool | None:
    """Return whether the subject of a verb is plural; None where that is in doubt."""
    start, end = verb, verb
    while start and tokens[start - 1].tag not in _CLAUSE and tokens[start - 1].text.lower() not in _CLAUSE_WORDS:
        start -= 1
    while end > start and tokens[end - 1].tag in {"RB", "RBR"}:
        end -= 1
    first, before = tokens[start], tokens[start - 1].tag if start else ""
    if end - start == 1 and first.text.lower() in _PRONOUNS:
        return _PRONOUNS[first.text.lower()]
    follows = before[:2] in {"VB", "MD"} and (first.tag != "CC" or before not in {"VBZ", "VBP", "VBD"})
    if start == end or first.tag == "VBG" or follows:
        return None  # a relative clause or a question, or what the verb before has for an object
    return _number(tokens, start + (first.tag == "CC"), end, numbers)


def _number(tokens: Sequence[Token], start: int, end: int, numbers: dict[int, bool]) -> bool | None:
    """Return whether the noun phrases of a stretch are a plural subject."""
    phrases = _phrases(tokens, start, end)
    if phrases is None or phrases[1] & {"or", "but", "nor"}:
        return None
    head, joints = phrases
    if "and" in joints:
        return True
    noun, opening = tokens[head], tokens[start].text.lower()
    in_doubt = (
        "," in joints
        or opening in _COLLECTIVE - {"one"}
        or noun.lemma in _COLLECTIVE | _NO_NUMBER
        or tokens[head + 1].text.lower() == "of"  # a pack of wolves
        or noun.tag not in {"NN", "NNS"}
        or (noun.tag == "NNS" and noun.text.lower() == noun.lemma)
    )
    return None if in_doubt else opening in _MANY or numbers.get(head, noun.tag == "NNS")


def _phrases(tokens: Sequence[Token], start: int, end: int) -> tuple[int, set[str]] | None:
    """Return the first head noun of a stretch, and the words that join others to it.

    What stands behind a preposition or participle belongs to a noun, and not to the subject; when something is joined
    to that in turn ("a man with a dog and a cat"), tags do not tell to which: None, as for any other doubt.
    """
    head, joints, joint, behind, opened = -1, set[str](), "", False, False
    for at in range(start, end):
        token = tokens[at]
        following = tokens[at + 1].tag if at + 1 < end else ""
        if token.tag in _NOUNS:
            colour = token.lemma in PLACES and following == "CC"  # "red and blue planes"
            opened = colour or following in _NOUNS | {"HYPH", "POS"}
            if opened:
                continue
            if behind and joint:
                return None
            head = at if head < 0 else head
            joints |= {joint} - {""}
            joint = ""
        elif token.tag == "CC" or token.text == ",":
            if opened and behind:
                return None
            joint = joint if opened else token.text.lower()  # "black and white"
        elif token.tag in {"IN", "TO", "RP"} or (token.tag in {"VBG", "VBN"} and head >= 0 and not opened):
            if head < 0 or joint:
                return None
            behind = True
        elif token.tag in _OPENS_PHRASE:
            opened = True
        else:
            return None
    return None if head < 0 or joint or opened else (head, joints)
