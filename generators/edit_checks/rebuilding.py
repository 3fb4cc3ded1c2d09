"""From a difference to changes of the source, so that nothing of the source changes but where the texts differ.

Whoever writes a caption anew also sets capitals, spaces and a final mark as they please, and these alone tell the
texts apart. So the new words are put into the source as it was written, by `edits.rewrite`.
"""

from collections.abc import Callable, Iterator, Sequence

from pairwright.generators.edit_checks.alignment import Hunk
from pairwright.generators.edit_checks.swaps import Swap
from pairwright.generators.edits.realisation import Change
from pairwright.generators.language.tokens import Token

IsName = Callable[[Token], bool]
_ARTICLES = frozenset({"a", "an"})
FINAL_MARKS = frozenset(".!?,;:…")


def without_final_mark(tokens: Sequence[Token]) -> Sequence[Token]:
    """Return the tokens up to the marks that end the text."""
    end = len(tokens)
    while end and FINAL_MARKS.issuperset(tokens[end - 1].text):
        end -= 1
    return tokens[:end]


def changes_of_hunk(source: Sequence[Token], text: Sequence[Token], hunk: Hunk, is_name: IsName) -> Change:
    """Return the change of the source that a difference asks for."""
    new = text[hunk.new_start : hunk.new_end]
    words = written(new, opens=hunk.new_start == 0, is_name=is_name)
    if hunk.start < hunk.end:
        start, end = source[hunk.start].start, source[hunk.end - 1].end
        return Change(start, end, words) if words else _removal(source, hunk)
    gap = text[hunk.new_end].start > new[-1].end if hunk.new_end < len(text) else True
    if hunk.start == 0:
        first = source[0]
        return Change(first.start, first.end, words + " " * gap + written([first], opens=True, is_name=is_name))
    before = text[hunk.new_start - 1].end
    at = source[hunk.start - 1].end
    return Change(at, at, " " * (new[0].start > before) + words)


def comma_for_and(source: Sequence[Token], first: Hunk) -> Change:
    """Return the change of the "and" at, or right before which, a list's first difference stands, to a comma."""
    return Change(source[first.start - 1].end, source[first.start].end, ",")


def _removal(source: Sequence[Token], hunk: Hunk) -> Change:
    start = source[hunk.start - 1].end if hunk.start else source[0].start
    end = source[hunk.end - 1].end if hunk.start or hunk.end == len(source) else source[hunk.end].start
    return Change(start, end, "")


def changes_of_swap(source: Sequence[Token], text: Sequence[Token], swap: Swap, is_name: IsName) -> list[Change]:
    """Return the changes that exchange two stretches, and those of the words that agree with them."""
    (start, middle), (second, end) = swap.first, swap.second
    left, right = middle - start, end - second
    if middle == second:
        return _moved(source, text, swap, is_name)
    changes = [
        Change(*_span(source, start, middle), _moved_words(source[second:end], text[start : start + right], is_name)),
        Change(*_span(source, second, end), _moved_words(source[start:middle], text[end - left : end], is_name)),
    ]
    kept = [*((at, at) for at in range(start)), *((at, at) for at in range(end, len(source)))]
    kept += ((at, at - left + right) for at in range(middle, second))
    return _side_by_side([*changes, *_agreeing(source, text, kept)])


def _side_by_side(changes: list[Change]) -> list[Change]:
    """Return the changes, those with one space between them as one: "two arms" for "one arm"."""
    made: list[Change] = []
    for change in sorted(changes, key=lambda each: each.start):
        if made and change.start == made[-1].end + 1:
            made[-1] = Change(made[-1].start, change.end, f"{made[-1].after} {change.after}")
        else:
            made.append(change)
    return made


def _moved(source: Sequence[Token], text: Sequence[Token], swap: Swap, is_name: IsName) -> list[Change]:
    """Return the changes that take the shorter stretch out and put it in at the other end of the longer one."""
    (start, middle), (_, end) = swap.first, swap.second
    left, right = middle - start, end - middle
    forwards = left <= right
    if forwards:
        out = Change(source[start].start, source[middle].start, "")
        if start and _other_article(source[start - 1], text[start - 1]):  # it goes with the word that comes next
            out = Change(source[start - 1].start, source[middle].start, _like(text[start - 1], source[start - 1]) + " ")
        words = _moved_words(source[start:middle], text[end - left : end], is_name)
        put = Change(source[end - 1].end, source[end - 1].end, " " + words)
        kept = ((at, at - left) for at in range(middle, end))
    else:
        out = Change(source[middle - 1].end, source[end - 1].end, "")
        if middle - 1 > start and _other_article(source[middle - 1], text[middle - 1 + right]):
            out = Change(source[middle - 1].start, source[end - 1].end, text[middle - 1 + right].text.lower())
        words = _moved_words(source[middle:end], text[start : start + right], is_name)
        first = _moved_words(source[start : start + 1], text[start + right : start + right + 1], is_name)
        put = Change(*_span(source, start, start + 1), f"{words} {first}")
        kept = ((at, at + right) for at in range(start + 1, middle))
    opened = forwards and start == 0
    changes = [out, put, *_agreeing(source, text, list(kept))]
    if opened:  # the word behind the one that is gone opens the sentence now
        follower = source[middle]
        changes[0] = Change(source[start].start, follower.end, written([text[0]], opens=True, is_name=is_name))
        changes = [change for change in changes if change.start != follower.start]
    return changes


def _other_article(old: Token, new: Token) -> bool:
    return old.text.lower() in _ARTICLES and old.text.lower() != new.text.lower()


def _like(token: Token, old: Token) -> str:
    """Return an article with the capital of another."""
    return token.text.capitalize() if old.text[:1].isupper() else token.text.lower()


def _agreeing(source: Sequence[Token], text: Sequence[Token], kept: Sequence[tuple[int, int]]) -> Iterator[Change]:
    for at, new in kept:
        # An article is for `rewrite` to mend, which makes it part of the edit behind it.
        if source[at].text.lower() not in _ARTICLES and source[at].text.lower() != text[new].text.lower():
            yield Change(source[at].start, source[at].end, text[new].text.lower())


def _moved_words(source: Sequence[Token], text: Sequence[Token], is_name: IsName) -> str:
    """Return the words of a moved stretch: the source's own, but for those that agree with another noun now."""
    made = [
        old
        if old.text.lower() == new.text.lower()
        else Token(new.text, old.start, old.end, new.tag, new.pos, new.lemma)
        for old, new in zip(source, text, strict=True)
    ]
    words, end = "", made[0].start
    for token in made:
        words += " " * (token.start > end) + written([token], opens=token.start == 0, is_name=is_name)
        end = token.end
    return words


def written(tokens: Sequence[Token], *, opens: bool, is_name: IsName) -> str:
    """Return words as they stand in the middle of a sentence, their spaces as written but single."""
    parts: list[str] = []
    for at, token in enumerate(tokens):
        if at and token.start > tokens[at - 1].end:
            parts.append(" ")
        parts.append(token.text)
    words = "".join(parts)
    first = tokens[0] if tokens else None
    if first is None or not opens or is_name(first) or first.text[1:] != first.text[1:].lower():
        return words
    return words[:1].lower() + words[1:]


def _span(tokens: Sequence[Token], start: int, end: int) -> tuple[int, int]:
    return tokens[start].start, tokens[end - 1].end
