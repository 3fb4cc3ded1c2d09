"""Truth oracle for ColorShape: is a statement true of a scene?

`judge` splits a text into sentences, parses each (`grammar.py`, words in `lexicon.py`) and evaluates every reading
(`truth_conditions.py`). It is independent of how captions are written, so it can decide whether a hard negative is false
and a hard positive true. Only tests and reports may use it, never a generator.

Meaning of sentences:

- "A red circle": at least one. "Two red circles", "one circle": exactly that many. "Red circles": two or more.
- Objects named in one clause are different: "a circle and a red circle" requires two circles.
- "The X" requires exactly one X in the scene (otherwise the sentence is false).
- A relation holds if some choice of objects makes it hold; a count or "the ...s" requires it of each of them.
- A text of several sentences is true if all are.
- An ambiguous sentence is judged only if all readings give the same verdict.

OUTSIDE covers sentences outside the grammar, ungrammatical English, and border cases. Turns of conversations: `turns.py`.
"""

from enum import Enum

from pairwright.datasets.colorshape.oracle.grammar import parse_sentence
from pairwright.datasets.colorshape.oracle.tokenizer import Tokens, tokenise
from pairwright.datasets.colorshape.oracle.truth_conditions import possible_truth_values
from pairwright.datasets.colorshape.scenes import Scene


class OracleVerdict(Enum):
    """Verdict on a sentence."""

    TRUE = "true"
    FALSE = "false"
    OUTSIDE = "outside"


def judge(sentence: str, scene: Scene) -> OracleVerdict:
    """Return whether a sentence, or a text of several, is true of ``scene``.

    Args:
        sentence: English text; a leading "Yes," or "No," is ignored.
        scene: the truth.

    Returns:
        TRUE or FALSE, or OUTSIDE if the text is outside the grammar, ungrammatical, ambiguous or a border case.
    """
    tokens = tokenise(sentence)
    return OracleVerdict.OUTSIDE if tokens is None else judge_tokens(tokens, scene)


def judge_tokens(tokens: Tokens, scene: Scene) -> OracleVerdict:
    """Judge a tokenised text: every sentence must be true."""
    verdicts = {_judge_one(strip_yes_no(sentence)[1], scene) for sentence in split_sentences(tokens)}
    if not verdicts or OracleVerdict.OUTSIDE in verdicts:
        return OracleVerdict.OUTSIDE
    return OracleVerdict.FALSE if OracleVerdict.FALSE in verdicts else OracleVerdict.TRUE


def _judge_one(tokens: Tokens, scene: Scene) -> OracleVerdict:
    values = {value for reading in parse_sentence(tokens) for value in possible_truth_values(reading, scene)}
    if len(values) != 1:
        return OracleVerdict.OUTSIDE
    return OracleVerdict.TRUE if values.pop() else OracleVerdict.FALSE


def split_sentences(tokens: Tokens) -> list[Tokens]:
    """Split a text at its full stops; an empty sentence ("..") is kept, and is outside the grammar."""
    parts: list[Tokens] = []
    start = 0
    for place, mark in enumerate(tokens):
        if mark == ".":
            parts.append(tokens[start:place])
            start = place + 1
    if start < len(tokens):
        parts.append(tokens[start:])
    return parts


def strip_yes_no(tokens: Tokens) -> tuple[str, Tokens]:
    """Return a leading "yes," or "no," (empty without one) and the rest."""
    if len(tokens) > 1 and tokens[0] in {"yes", "no"} and tokens[1] == ",":
        return tokens[0], tokens[2:]
    return "", tokens
