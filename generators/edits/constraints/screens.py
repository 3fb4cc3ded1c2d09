"""Screens: constraints on all replacements of many captions at once, as numpy masks.

A generator proposes some thirty words for the slots of a caption, and asking each constraint for each word takes most
of its time. A *screen* finds out for whole arrays of proposals which constraints they violate, and which they may
violate and have to be asked. It knows the constraints that depend on

- the place alone: asked once for each slot;
- the word and one other: a row over the vocabulary for each verb, preposition or companion, computed once;
- what captions of the image say: a row over the vocabulary for each caption, from an index of names.

The predicates of the table remain the only definition: where a mask does not decide, they are asked, and a test
compares both on real captions. A proposal is screened the same in any batch.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from pairwright.generators.captions.box_truth import is_vague, number_of
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.grammar import OTHER_SEX, sexes_of_pronouns
from pairwright.generators.edits.constraints.image import (
    is_of_many,
    is_one_of_several,
    said_deeds,
    said_relations,
)
from pairwright.generators.edits.constraints.knowledge import (
    KNOWN,
    LINKED,
    SEEN,
    TOGETHER,
    Knowledge,
    by_singular,
)
from pairwright.generators.edits.constraints.lexical import (
    is_displaced_deed,
    plain_relation,
    reworded_relations,
    split_relation,
)
from pairwright.generators.edits.constraints.plausibility import (
    Usage,
    governors_of,
    is_bare_path,
    is_behind_noun,
    lacks_usage,
    links_of,
    usage_of,
)
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.scope import ANY_DENIAL
from pairwright.generators.edits.constraints.table import Constraint
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.lexicon.attributes import same_concept
from pairwright.generators.lexicon.nouns import flagged, loosely_same

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
_Key = TypeVar("_Key", bound=Hashable)
_NOTHING: Final = np.zeros(0, np.int64)
_MOST_ROWS: Final = 8_000  # over the vocabulary, that are remembered


class Replaced(NamedTuple):
    """Words that may be replaced, of many captions, and what is proposed for them.

    Attributes:
        captions: the captions.
        edits: for each slot, an edit whose new word does not count.
        caption: of each slot, index into ``captions``, int64 (slots,).
        slot: of each proposal, index into ``edits``, int64 (proposals,).
        new: of each proposal, index into the vocabulary, int64 (proposals,).
    """

    captions: Sequence[Caption]
    edits: Sequence[ProposedEdit]
    caption: IntArray
    slot: IntArray
    new: IntArray

    def by_slot(self, answers: Iterable[bool]) -> BoolArray:
        """Return an answer for each slot as one for each of its proposals."""
        return np.fromiter(answers, bool, len(self.edits))[self.slot]


class Screened(NamedTuple):
    """What a screen found, for each proposal.

    Attributes:
        asked: bit i is set if constraint i has to be asked, int64.
        violated: the first constraint that is violated for certain; their number if none is, int64.
    """

    asked: IntArray
    violated: IntArray


class _Findings:
    def __init__(self, constraints: Sequence[Constraint], size: int) -> None:
        self._at = {each.id: at for at, each in enumerate(constraints)}
        self.asked = np.full(size, (1 << len(constraints)) - 1, np.int64)
        self.violated = np.full(size, len(constraints), np.int64)

    def decide(self, name: str, violated: BoolArray, unknown: BoolArray | None = None) -> None:
        """Note who violates a constraint; of the others, only those that are unknown may."""
        at = self._at.get(name)
        if at is None:
            return
        np.minimum(self.violated, at, out=self.violated, where=violated)
        decided = slice(None) if unknown is None else violated | ~unknown
        self.asked[decided] &= ~(1 << at)

    def limit(self, name: str, unknown: BoolArray) -> None:
        """Note which proposals may violate a constraint; no other one does."""
        at = self._at.get(name)
        if at is not None:
            self.asked[~unknown] &= ~(1 << at)


class _Rows:
    """Rows over a vocabulary by a key, computed when they are first asked for."""

    def __init__(self, find: Callable[[Any], BoolArray], width: int) -> None:
        self._find, self._width = find, width
        self._clear()

    def _clear(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._table = np.zeros((64, self._width), bool)

    def any_of(self, keys: Sequence[Sequence[Hashable]], slot: IntArray, column: IntArray) -> BoolArray:
        """Return whether one of the rows of each slot has a column, for each proposal."""
        if len(self._numbers) > _MOST_ROWS:
            self._clear()
        widest = max(map(len, keys), default=0)
        numbers = np.zeros((len(keys), widest), np.int64)  # row 0 is empty
        for at, row in enumerate(keys):
            numbers[at, : len(row)] = [self._number(key) for key in row]
        found = np.zeros(len(slot), bool)
        for of_slot in numbers.T:
            found |= self._table[of_slot[slot], column]
        return found

    def _number(self, key: Hashable) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._numbers) + 1
            if number == len(self._table):
                self._table = np.concatenate([self._table, np.zeros_like(self._table)])
            self._table[number] = self._find(key)
        return number


class Screen:
    """Screens the replacements of one kind of slots.

    Args:
        constraints: on these edits.
        targets: the vocabulary, as the lexicon has it.
        known: of words.
    """

    def __init__(self, constraints: Sequence[Constraint], targets: Sequence[str], known: Knowledge) -> None:
        self.constraints, self.targets, self.known = constraints, targets, known
        self._at_place = [each for each in constraints if each.by_place]
        self._first = _numbered(target.partition(" ")[0] for target in targets)
        self._last = _numbered(target.rpartition(" ")[2] for target in targets)
        self._denies = self.marked(lambda target: not ANY_DENIAL.isdisjoint(target.split()))

    def screen(self, replaced: Replaced) -> Screened:
        """Return which constraints proposals violate or may violate."""
        found = _Findings(self.constraints, len(replaced.new))
        for each in self._at_place:
            found.decide(each.id, replaced.by_slot(each.violated(edit, self.known) for edit in replaced.edits))
        found.limit("splits_word", replaced.by_slot(bool(edit.caption.joined) for edit in replaced.edits))
        found.decide("repeats_neighbour", self._repeats_neighbour(replaced))
        denies = replaced.by_slot(not ANY_DENIAL.isdisjoint(edit.old.split()) for edit in replaced.edits)
        found.limit("denial", denies | self._denies[replaced.new])
        self.screen_kind(replaced, found)
        return Screened(found.asked, found.violated)

    def pass_all(self, proposals: int) -> Screened:
        """Return that every constraint has to be asked."""
        found = _Findings(self.constraints, proposals)
        return Screened(found.asked, found.violated)

    def screen_kind(self, replaced: Replaced, found: _Findings) -> None:
        """Add what depends on the kind of slots."""

    def marked(self, condition: Callable[[str], bool]) -> BoolArray:
        """Return whether each word of the vocabulary meets a condition."""
        return np.fromiter(map(condition, self.targets), bool, len(self.targets))

    @property
    def counted_pool(self) -> PoolStatistics:
        """Statistics of captions, where there are any.

        Raises:
            TypeError: there are none.
        """
        pool = self.known.pool
        if not isinstance(pool, PoolStatistics):
            raise TypeError("rows over the vocabulary need statistics of captions")
        return pool

    def _repeats_neighbour(self, replaced: Replaced) -> BoolArray:
        (first, first_of), (last, last_of) = self._first, self._last
        before, behind = [], []
        for edit in replaced.edits:
            word, start, end = edit.caption.word, edit.start - 1, edit.end
            before.append(first.get(word(start - (word(start) in {",", "-"})), -1))
            behind.append(last.get(word(end + (word(end) in {",", "-"})), -1))
        same: BoolArray = np.array(before, np.int64)[replaced.slot] == first_of[replaced.new]
        same |= np.array(behind, np.int64)[replaced.slot] == last_of[replaced.new]
        return same


class NounScreen(Screen):
    """Screens replacements of nouns."""

    def __init__(self, constraints: Sequence[Constraint], targets: Sequence[str], known: Knowledge) -> None:
        super().__init__(constraints, targets, known)
        heads = [target.rpartition(" ")[2] for target in targets]
        self._of_sex = {sex: np.array([head in flagged(sex) for head in heads], bool) for sex in OTHER_SEX}
        self._usages = [np.array([lacks_usage(noun, usage, known) for noun in targets], bool) for usage in Usage]
        self._named_by: dict[str, list[int]] = {}
        self._indexed = np.zeros(len(targets), bool)
        self._by_head = _index((head,) for head in heads)
        self._parts, self._part = _numbered(part for target in targets for part in target.split())
        self._starts = np.cumsum([0, *(len(target.split()) for target in targets)])[:-1]
        self._captions_of_part = np.array([known.captions_with(part) for part in self._parts], np.int64)
        self._seldom = np.array([known.pool.linked("", "", head) < KNOWN for head in heads], bool)
        self._captions = np.array([known.captions_with(head) for head in heads], np.int64)
        self._unseen, self._strange = (_Rows(each, len(targets)) for each in (self._find_unseen, self._find_strange))

    def _index_names(self, columns: IntArray) -> None:
        """Note by which words captions may mention nouns."""
        for column in np.unique(columns[~self._indexed[columns]]).tolist():
            noun = self.targets[column]
            for names in (self.known.mentions(noun), self.known.own_mentions(noun, "replace")):
                for word in {*names.singulars, *names.exact, *names.phrases}:
                    self._named_by.setdefault(word, []).append(column)
            self._indexed[column] = True

    def screen_kind(self, replaced: Replaced, found: _Findings) -> None:
        """Add what holds for nouns."""
        found.limit("mentioned", self._may_be_mentioned(replaced))
        pronouns = [sexes_of_pronouns(edit) for edit in replaced.edits]
        disagrees = np.zeros(len(replaced.new), bool)
        for sex, other in OTHER_SEX.items():
            disagrees |= replaced.by_slot(sex in each for each in pronouns) & self._of_sex[other][replaced.new]
        found.decide("pronoun", disagrees)
        usages = [usage_of(edit.caption, edit.old, edit.end, self.known) for edit in replaced.edits]
        unused = np.zeros(len(replaced.new), bool)
        for usage, lacking in zip(Usage, self._usages, strict=True):
            unused |= replaced.by_slot(each is usage for each in usages) & lacking[replaced.new]
        found.decide("unused_form", unused)
        if not isinstance(self.known.pool, PoolStatistics):
            return  # what counts nothing is asked word by word
        unseen = self._unseen.any_of([self._governors(edit) for edit in replaced.edits], replaced.slot, replaced.new)
        compound = replaced.by_slot(is_behind_noun(edit.caption, edit.start, edit.end) for edit in replaced.edits)
        found.decide("unseen_thing", unseen, compound)
        company = [[word for word in edit.caption.company if word not in edit.old.split()] for edit in replaced.edits]
        found.decide("strange_company", self._strange.any_of(company, replaced.slot, replaced.new))

    def _may_be_mentioned(self, replaced: Replaced) -> BoolArray:
        self._index_names(replaced.new)
        named = np.zeros((len(replaced.captions), len(self.targets)), bool)
        for at, caption in enumerate(replaced.captions):
            words = caption.words
            if words.hyphenated or not words.elsewhere.isdisjoint(("bird", "birds")):
                named[at] = True
            for word in (words.all | by_singular(words.all).keys()) & self._named_by.keys():
                named[at, self._named_by[word]] = True
        return named[replaced.caption[replaced.slot], replaced.new]

    def _governors(self, edit: ProposedEdit) -> list[tuple[str, str, Hashable]]:
        """Return what stands around a noun: adjacent words, and whether captions say so of the old noun; links."""
        pool, old = self.known.pool, edit.old.rpartition(" ")[2]
        before, behind = governors_of(edit.caption, edit.start, edit.end)
        keys: list[tuple[str, str, Hashable]] = [("before", word, bool(pool.adjacency(word, old))) for word in before]
        keys += [("behind", word, bool(pool.adjacency(old, word))) for word in behind]
        keys += [
            ("link", left, by)
            for left, by, noun in links_of(edit.caption)
            if noun == old and pool.linked(left, by, old)
        ]
        return keys

    def _find_unseen(self, key: tuple[str, str, Any]) -> BoolArray:
        side, word, more = key
        pool = self.counted_pool
        if side == "link":
            return ~(self._seldom | self._marked_by(self._by_head, pool.linked_nouns(word, more)))
        adjacent = pool.followers(word) if side == "before" else pool.leaders(word)
        unseen = ~self._marked_by(self._by_head, adjacent.keys())
        return unseen if more else unseen & self._expected(self._captions, word, LINKED)

    def _find_strange(self, word: str) -> BoolArray:
        pool = self.counted_pool
        apart = self._expected(self._captions_of_part, word, TOGETHER)
        apart[[self._parts[part] for part in self._parts.keys() & pool.companions(word).keys()]] = False
        return np.logical_or.reduceat(apart[self._part], self._starts)

    def _expected(self, counts: IntArray, word: str, captions: float) -> BoolArray:
        """Return for which words chance would have them with another one in so many captions."""
        found: BoolArray = counts * self.known.captions_with(word) >= captions * self.known.pool.captions
        return found

    def _marked_by(self, index: Mapping[str, IntArray], words: Iterable[str]) -> BoolArray:
        found = np.zeros(len(self.targets), bool)
        for word in index.keys() & words:
            found[index[word]] = True
        return found


class AttributeScreen(Screen):
    """Screens replacements of attributes."""

    def __init__(self, constraints: Sequence[Constraint], targets: Sequence[str], known: Knowledge) -> None:
        super().__init__(constraints, targets, known)
        self._counts = self.marked(lambda target: any(number_of(word) or is_vague(word) for word in target.split()))
        self._qualifies = self.marked(
            lambda target: any(not number_of(word) and not is_vague(word) for word in target.split())
        )
        self._said_by = _index({like for word in target.split() for like in same_concept(word)} for target in targets)

    def screen_kind(self, replaced: Replaced, found: _Findings) -> None:
        """Add what holds for attributes."""
        said = np.zeros((len(replaced.captions), len(self.targets)), bool)
        for at, caption in enumerate(replaced.captions):
            words = caption.words.elsewhere.union(*caption.words.hyphenated) if caption.words.others else frozenset()
            for word in words & self._said_by.keys():
                said[at, self._said_by[word]] = True
        found.limit("described", said[replaced.caption[replaced.slot], replaced.new])
        found.limit("counted", self._counts[replaced.new])
        several = replaced.by_slot(
            bool(edit.after) and is_one_of_several(edit.caption, edit.after) for edit in replaced.edits
        )
        found.decide("one_of_several", several & self._qualifies[replaced.new])


class RelationScreen(Screen):
    """Screens replacements of relations that exclude each other by the lexicon."""

    def __init__(self, constraints: Sequence[Constraint], targets: Sequence[str], known: Knowledge) -> None:
        super().__init__(constraints, targets, known)
        found = [known.relations.analyse(target) for target in targets]
        self._acts = np.array([each is not None and bool(each.verb) for each in found], bool)
        self._subjects, self._subject = _numbered("" if each is None else each.subject for each in found)
        self._paths = self.marked(is_bare_path)
        self._unusual = self.marked(lambda key: known.relations.analyse(key) is None or plain_relation(key) != key)
        self._index = _index((target,) for target in targets)
        self._split = [split_relation(target) for target in targets]
        self._by_split, self._by_verb = (
            _index((each,) for each in self._split),
            _index(each[:1] for each in self._split),
        )
        self._by_place = _index((preposition,) if not verb else () for verb, preposition in self._split)
        self._placed = np.array([bool(preposition) for _, preposition in self._split], bool)
        finders = (self._find_reworded, self._find_unseen_at, self._find_unseen_of, self._find_unseen_object)
        self._reworded, self._unseen_at, self._unseen_of, self._unseen_object = (
            _Rows(find, len(targets)) for find in finders
        )

    def screen_kind(self, replaced: Replaced, found: _Findings) -> None:
        """Add what holds for relations."""
        edits, slot, new = replaced.edits, replaced.slot, replaced.new
        reworded = self._reworded.any_of([(edit.old,) for edit in edits], slot, new)
        unusual = replaced.by_slot(plain_relation(edit.old) != edit.old for edit in edits)
        found.limit("same_relation", reworded | unusual | self._unusual[new])
        said = (bool(edit.after) and any(said_relations(edit.caption, edit.before, edit.after)) for edit in edits)
        found.limit("related", replaced.by_slot(said))
        done = (any(is_displaced_deed(deed, edit.old) for deed in said_deeds(edit.caption)) for edit in edits)
        found.limit("done", replaced.by_slot(done) & self._acts[new])
        found.limit("placed", replaced.by_slot(bool(edit.caption.words.boxes) for edit in edits))
        several = (
            any(noun and is_one_of_several(edit.caption, noun) for noun in (edit.before, edit.after)) for edit in edits
        )
        found.decide("one_of_several", replaced.by_slot(several))
        found.limit("some_of_them", replaced.by_slot(map(is_of_many, edits)))
        found.decide("wrong_subject", self._has_wrong_subject(replaced))
        bare = replaced.by_slot(is_bare_path(edit.old) for edit in edits)
        found.decide("lacks_motion", self._paths[new] & ~bare)
        if not isinstance(self.known.pool, PoolStatistics):
            return  # what counts nothing is asked word by word
        unseen = self._unseen_at.any_of([(edit.after,) for edit in edits], slot, new)
        unseen |= self._unseen_of.any_of([(edit.before,) if edit.before else () for edit in edits], slot, new)
        found.decide("unseen_relation", unseen)
        misplaced = self._unseen_object.any_of([(edit.after,) if edit.after else () for edit in edits], slot, new)
        found.decide("misplaced_relation", misplaced, self._placed[new])

    def _has_wrong_subject(self, replaced: Replaced) -> BoolArray:
        analyse, slot = self.known.relations.analyse, replaced.slot
        wanted, none = self._subject[replaced.new], self._subjects.get("", -1)
        olds = [analyse(edit.old) for edit in replaced.edits]
        old = np.array([self._subjects.get(each.subject, -1) if each else none for each in olds], np.int64)[slot]
        alive = replaced.by_slot(self.known.nouns.is_alive(edit.before) for edit in replaced.edits)
        fits = replaced.by_slot(bool(edit.before) for edit in replaced.edits)
        fits &= alive == (wanted == self._subjects.get("animate", -1))
        wrong: BoolArray = (wanted != none) & (wanted != old) & ~fits
        return wrong

    def _find_unseen_at(self, thing: str) -> BoolArray:
        """Return the relations that captions do not say of an object of which they say much."""
        pool = self.counted_pool
        if pool.linked("", "", thing) < KNOWN:
            return np.zeros(len(self.targets), bool)
        seen = ~self._placed
        links = {link for noun in loosely_same(thing) for link in pool.links_to(noun)}
        for left, preposition in links:
            seen[self._by_split.get((left, preposition), _NOTHING)] = True
            seen[self._by_split.get(("", preposition), _NOTHING)] = True
        return ~seen

    def _find_unseen_of(self, subject: str) -> BoolArray:
        """Return the relations whose verb or preposition captions do not say of a subject of which they say much."""
        pool = self.counted_pool
        seen = np.zeros(len(self.targets), bool)
        if self.known.nouns.is_person(subject) or pool.linked(subject, "", "") < KNOWN:
            return seen
        for verb in self._by_verb.keys() & pool.followers(subject).keys():
            seen[self._by_verb[verb]] = True
        places = {preposition for preposition in self._by_place if pool.linked(subject, preposition, "")}
        for preposition in self._by_place:
            seen[self._by_place[preposition]] = preposition in places
        return ~seen

    def _find_unseen_object(self, thing: str) -> BoolArray:
        """Return the verbs without a preposition that captions do not have before an object."""
        unseen = ~self._placed
        for verb, count in self.counted_pool.leaders(thing).items():
            if count >= SEEN:
                unseen[self._by_split.get((verb, ""), _NOTHING)] = False
        return unseen

    def _find_reworded(self, key: str) -> BoolArray:
        found = np.zeros(len(self.targets), bool)
        for word in {key, *reworded_relations().get(key, ())} & self._index.keys():
            found[self._index[word]] = True
        return found


def _index(names: Iterable[Iterable[_Key]]) -> dict[_Key, IntArray]:
    """Return which of some things each name names."""
    found: dict[_Key, list[int]] = {}
    for at, each in enumerate(names):
        for name in each:
            found.setdefault(name, []).append(at)
    return {name: np.array(columns, np.int64) for name, columns in found.items()}


def _numbered(words: Iterable[str]) -> tuple[dict[str, int], IntArray]:
    """Return a number for each distinct word, and those of all words."""
    numbers: dict[str, int] = {}
    return numbers, np.array([numbers.setdefault(word, len(numbers)) for word in words], np.int64)
