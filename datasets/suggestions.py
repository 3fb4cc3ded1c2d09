"""Suggestions for unknown names: "Did you mean ...?" and the valid ones."""

import difflib
from collections import Counter
from collections.abc import Iterable

from pairwright.datasets.errors import UsageError

_SIMILARITY_CUTOFF = 0.6  # difflib's ratio


def require_known(what: str, words: Iterable[str], known: Iterable[str]) -> None:
    """Require that all words are known.

    Args:
        what: beginning of the message, such as "no such type of negative:".
        words: as the user wrote them.
        known: the valid names, in the order of the message.

    Raises:
        UsageError: naming the unknown words, similar names, and all valid names.
    """
    names = list(known)
    if unknown := sorted(set(words).difference(names)):
        raise UsageError(f"{what} {', '.join(unknown)}. {suggest_alternatives(unknown, names)}.")


def find_duplicates(words: Iterable[str]) -> list[str]:
    """Return the words that occur more than once, each once."""
    return [word for word, times in Counter(words).items() if times > 1]


def suggest_alternatives(words: Iterable[str], known: Iterable[str]) -> str:
    """Return ``Did you mean swap-object? There are: replace-object, swap-object``."""
    names = list(known)
    hint = did_you_mean(words, names)
    listed = ", ".join(name or '""' for name in names)
    return f"{hint}{' ' if hint else ''}There are: {listed}"


def did_you_mean(words: Iterable[str], known: Iterable[str], mark: str = "") -> str:
    """Return ``Did you mean dog?``; empty if no known word is similar to any of them.

    Args:
        words: as the user wrote them; case is ignored.
        known: the valid names.
        mark: printed around each name.
    """
    by_letters = {name.casefold(): name for name in known}
    near = [difflib.get_close_matches(word.casefold(), by_letters, n=1, cutoff=_SIMILARITY_CUTOFF) for word in words]
    found = dict.fromkeys(by_letters[match] for matches in near for match in matches)
    return f"Did you mean {', '.join(f'{mark}{name}{mark}' for name in found)}?" if found else ""
