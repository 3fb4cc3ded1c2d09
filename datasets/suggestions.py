"""What is said of a name that there is not: the one that was probably meant, and those that there are."""

import difflib
from collections import Counter
from collections.abc import Iterable

from pairwright.datasets.errors import UsageError

_SIMILARITY_CUTOFF = 0.6  # of the letters, as difflib counts them


def require_known(what: str, words: Iterable[str], known: Iterable[str]) -> None:
    """Refuse words that are not known.

    Args:
        what: they were meant to be, such as "no such type of negative:".
        words: as the user wrote them.
        known: in the order in which they are told.

    Raises:
        UsageError: naming the unknown words, what was probably meant, and what there is.
    """
    names = list(known)
    if unknown := sorted(set(words).difference(names)):
        raise UsageError(f"{what} {', '.join(unknown)}. {suggest_alternatives(unknown, names)}.")


def find_duplicates(words: Iterable[str]) -> list[str]:
    """Return the words that stand there more than once, each once: where each is to be made once, that is a slip."""
    return [word for word, times in Counter(words).items() if times > 1]


def suggest_alternatives(words: Iterable[str], known: Iterable[str]) -> str:
    """Return ``Did you mean swap-object? There are: replace-object, swap-object``."""
    names = list(known)
    hint = did_you_mean(words, names)
    told = ", ".join(name or '""' for name in names)
    return f"{hint}{' ' if hint else ''}There are: {told}"


def did_you_mean(words: Iterable[str], known: Iterable[str], mark: str = "") -> str:
    """Return ``Did you mean dog?``, or nothing where no known word is near any of them.

    Args:
        words: as the user wrote them; capitals count as small letters.
        known: the right ones.
        mark: that stands around a name.
    """
    by_letters = {name.casefold(): name for name in known}
    near = [difflib.get_close_matches(word.casefold(), by_letters, n=1, cutoff=_SIMILARITY_CUTOFF) for word in words]
    found = dict.fromkeys(by_letters[match] for matches in near for match in matches)
    return f"Did you mean {', '.join(f'{mark}{name}{mark}' for name in found)}?" if found else ""
