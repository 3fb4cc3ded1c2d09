"""Slots of a caption: the nouns, adjectives, numbers and relation phrases that an edit may replace.

A slot has a *key*, the form of its word or phrase in the lexicon and the cloze model:

- noun: the lemma of the head, or of the last two words if WordNet has them as a compound ("fire hydrant");
- adjective: the lower-case word before a noun, including number words and nouns of a class ("brick");
- relation: a verb with the following preposition, a preposition alone, or a verb with an object ("sit on top of",
  "next to", "hold"). Verbs are lemmas; past participles keep their form ("parked on"), since they describe a state.

Slots are extracted from every caption of the pool, to train the cloze model, and from the edited caption.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from pairwright.generators.captions.caption import Caption, ParsedText
from pairwright.generators.captions.phrases import ARTICLES, NOUNS, NounPhrase
from pairwright.generators.captions.realisation import Change
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.language.cloze.context import MAX_BAG, REACH, ClozeContext, ClozeExample
from pairwright.generators.language.inflection import inflect
from pairwright.generators.language.lemmas import lemmatize
from pairwright.generators.language.wordnet import WordNet
from pairwright.generators.lexicon.attributes import concepts
from pairwright.generators.lexicon.function_words import words_with
from pairwright.generators.lexicon.relations import load_relations

NOUN, ADJECTIVE, RELATION = "noun", "adjective", "relation"
TARGETS: Final = {NOUN: "object", ADJECTIVE: "attribute", RELATION: "relation"}
FINITE: Final = frozenset({"VBZ", "VBP"})
PARTICIPLES: Final = frozenset({"VBN", "VBD"})  # the tagger confuses them after a noun
_VERBS: Final = frozenset({"VBG", "VB"}) | FINITE | PARTICIPLES
_CLAUSES: Final = words_with("opens_clause")
_VERBAL: Final = frozenset({"VB", "RB", "RP", "WD", "WP"})  # first letters: verbs, adverbs, relative pronouns
_FURTHEST: Final = 3  # tokens between a subject and its relation: "a man who is standing on"


class Slot(NamedTuple):
    """A span of a caption that another word or phrase may fill.

    Attributes:
        kind: `NOUN`, `ADJECTIVE` or `RELATION`.
        key: key of the span; see the module.
        tag: Penn Treebank tag of the inflected word: the noun, or the verb of a relation; else empty.
        before: lemma of the subject of a relation; empty if there is none.
        after: lemma of the noun that an adjective modifies, or of the object of a relation; empty for nouns.
        phrase: the noun phrase of a noun or adjective.
    """

    kind: str
    start: int
    end: int
    key: str
    tag: str = ""
    before: str = ""
    after: str = ""
    phrase: NounPhrase | None = None

    def proposed(self, caption: Caption, new: str) -> ProposedEdit:
        """Return the proposed edit that writes another key here, for constraints."""
        old, target = self.key, TARGETS[self.kind]
        if self.kind == RELATION:
            old, new = lexicon_key(old), lexicon_key(new)
        return ProposedEdit(caption, "replace", target, old, new, self.before, self.after, self.start, self.end)

    def change(self, caption: ParsedText, key: str) -> Change:
        """Return the change that writes another key here, inflected like the original."""
        return caption.change(self.start, self.end, self.form(key))

    def form(self, key: str) -> str:
        """Return a key inflected for this slot; an empty string if it has no fitting form."""
        if self.kind == NOUN:
            return inflect(key, self.tag)
        return relation_form(key, self.tag) if self.kind == RELATION else key


def find_slots(caption: ParsedText, thesaurus: WordNet) -> list[Slot]:
    """Return the slots of a caption: nouns and adjectives by phrase, then relations, each from left to right."""
    relations = list(find_relations(caption))
    inside = {at for slot in relations for at in range(slot.start, slot.end)}  # "front" of "in front of"
    found: list[Slot] = []
    for phrase in caption.phrases:
        if phrase.head not in inside:
            found += _slots_of_phrase(caption, phrase, thesaurus)
    return found + relations


def find_relations(caption: ParsedText) -> Iterator[Slot]:
    """Yield the relations among the slots of a caption."""
    lexicon, first_words, end = load_relations(), _first_words(), 0
    for at, (word, own) in enumerate(zip(caption.lower, caption.tags, strict=True)):
        if at < end or (word not in first_words and own not in _VERBS):
            continue
        length = lexicon.match_preposition(caption.lower, at)
        verb = not length and own in _VERBS and caption.tokens[at].pos == "VERB"
        if verb:
            length = 1 + lexicon.match_preposition(caption.lower, at + 1)
        thing = caption.starting_at(at + length) if length else None
        if thing is None:
            continue
        end, subject, tag = at + length, _subject(caption, at), own if verb else ""
        key = relation_key(caption.lower[at:end], tag)
        yield Slot(RELATION, at, end, key, tag, caption.head(subject) if subject else "", caption.head(thing))


@lru_cache(maxsize=1)
def _first_words() -> frozenset[str]:
    """Return the first words of prepositions."""
    return frozenset(phrase.partition(" ")[0] for phrase in load_relations().prepositions)


def context_of(  # noqa: PLR0913 - what the context consists of
    caption: ParsedText,
    start: int,
    end: int,
    before: str = "",
    after: str = "",
    *,
    left: tuple[str, ...] = (),
    right: tuple[str, ...] = (),
) -> ClozeContext:
    """Return the cloze context of what replaces the tokens ``start`` up to ``end`` between other inserted words.

    ``before`` and ``after`` are the lemmas of `Slot`.
    """
    words = caption.context_words
    left = (words[start : start + REACH] + left)[: -REACH - 1 : -1]
    right = (right + words[end + REACH : end + 2 * REACH])[:REACH]
    bag = [lemma for at, lemma in caption.content_lemmas if at < start or at >= end]
    return ClozeContext(left, right, (before, after), tuple(bag[:MAX_BAG]))


def slot_examples(text: ParsedText, thesaurus: WordNet) -> Iterator[ClozeExample]:
    """Yield the filled slots of a text with their contexts."""
    for kind, start, end, key, _, before, after, _ in find_slots(text, thesaurus):
        yield ClozeExample(kind, key, context_of(text, start, end, before, after))


def relation_key(words: Sequence[str], tag: str) -> str:
    """Return the key of the words of a relation, of which the first has a tag; empty if it is no verb."""
    lemmatized = tag.startswith("VB") and tag not in PARTICIPLES
    return " ".join((lemmatize(words[0], tag) if lemmatized else words[0], *words[1:]))


@lru_cache(maxsize=20_000)
def lexicon_key(key: str) -> str:
    """Return a relation with its verb as a lemma: "parked on" as "park on"."""
    first, gap, rest = key.partition(" ")
    return lemmatize(first, "VBN") + gap + rest if is_participle(key) else key


@lru_cache(maxsize=20_000)
def relation_form(key: str, tag: str) -> str:
    """Return a relation inflected for a tag; an empty string if it has no such form."""
    if is_participle(key):
        return key if tag in PARTICIPLES or tag in {"VBG", ""} else ""
    if not begins_with_verb(key):
        return key
    verb, gap, rest = key.partition(" ")
    return inflect(verb, "VBG" if tag in PARTICIPLES or not tag else tag) + gap + rest


@lru_cache(maxsize=20_000)
def begins_with_verb(key: str) -> bool:
    """Return whether a relation has a verb: "hold", "sit on", "parked on"; not "next to"."""
    return load_relations().match_preposition(key.split(), 0) == 0


@lru_cache(maxsize=20_000)
def is_participle(key: str) -> bool:
    """Return whether a relation begins with a past participle ("parked on")."""
    first = key.partition(" ")[0]
    verb = lemmatize(first, "VBN")
    return verb != first and begins_with_verb(key) and inflect(verb, "VBN") == first


def _slots_of_phrase(caption: ParsedText, phrase: NounPhrase, thesaurus: WordNet) -> Iterator[Slot]:
    tag = caption.tags[phrase.head]
    noun, start = caption.lemmas[phrase.head], phrase.head
    if tag in NOUNS and caption.is_whole(phrase):
        if len(phrase.nouns) > 1:
            compound = f"{caption.lower[phrase.head - 1]} {noun}"
            if thesaurus.has(compound, "NOUN"):
                start, noun = phrase.head - 1, compound
        yield Slot(NOUN, start, phrase.head + 1, noun, tag, phrase=phrase)
    described = [] if phrase.joined else [*phrase.adjectives]
    described += [at for at in phrase.nouns[:-1] if at < start and caption.lower[at] in concepts()]  # "a brick wall"
    for at in (phrase.count, *described) if phrase.count >= 0 else described:
        if caption.plural(phrase) and caption.word(at - 1) in ARTICLES:
            continue  # the article is part of the quantifier: "a few tables", "a dozen eggs"
        yield Slot(ADJECTIVE, at, at + 1, caption.lower[at], after=noun, phrase=phrase)


def _subject(caption: ParsedText, start: int) -> NounPhrase | None:
    """Return the subject of a relation: the noun phrase before it, with verbs and adverbs between."""
    at, furthest, tags = start, max(start - _FURTHEST, 0), caption.tags
    while at > furthest and tags[at - 1][:2] in _VERBAL:
        at -= 1
    if caption.word(at - 1) in _CLAUSES and caption.phrases[0].end < at:
        return caption.phrases[0]  # "a cat on a table | while sitting on": the subject is the cat
    return caption.ending_at(at)
