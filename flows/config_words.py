"""What readers say of their options, in the words of a config: who wrote `columns:` under `input:` knows no --columns.

Only the options of reading are put so. Others that a build's messages name (--out, --full) are those of its command.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pairwright.datasets.errors import InputError, PairwrightError
from pairwright.datasets.reading import Batch, ReadOptions, read_pairs

_WORDS = (
    (re.compile(r"--[a-z-]+ \w+ \(in a config, (\w+: \w+)\)"), r"`\1` SECTION"),
    (re.compile(r"--columns (\w+)=([^\s)]*[^\s).])"), r"`columns: {\1: \2}` SECTION"),
    (re.compile(r"--(columns|format)(?= \w+ \|)"), r"`\1` SECTION, one of"),
    (re.compile(r"--(columns|format)"), r"`\1` SECTION"),
)

_ADVICE = (
    ("generate negatives with --both-sides", "set `both_sides: true` under negatives"),
    ("ask for a larger --target", "set a larger `target` under refine"),
    ("A smaller --min-keep or --mend format", "A smaller `min_keep`"),
)


@contextmanager
def in_config_words(section: str = "under input") -> Iterator[None]:
    """Put the errors of what is read within into the words of a config; they stay of their kind.

    Args:
        section: where in the config the keys stand.
    """
    try:
        yield
    except PairwrightError as error:
        if isinstance(error, InputError):
            error.what, error.mend = _reworded(error.what, section), _reworded(error.mend, section)
            error.args = (f"{error.where}: {error.what}. {error.mend}",)
        else:
            error.args = tuple(_reworded(str(argument), section) for argument in error.args)
        raise


def pairs_of_config(options: ReadOptions) -> Iterator[Batch]:
    """Read the pairs of a config's input, as `read_pairs` does; nothing is looked at before the first batch is asked for."""
    with in_config_words():
        yield from read_pairs(options)


def advice_of_config(advice: str) -> str:
    """Return what refinement advises (`filters.general`), in the words of a config."""
    for words, put in _ADVICE:
        advice = advice.replace(words, put)
    return advice


def _reworded(text: str, section: str) -> str:
    for words, put in _WORDS:
        text = words.sub(put.replace("SECTION", section), text)
    return text
