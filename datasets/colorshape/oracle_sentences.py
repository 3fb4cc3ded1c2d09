"""Verdicts on statements: a text is cut into sentences, each is read in every way and evaluated.

What the words and structures mean is said in `oracle`, where users of the oracle come in.
"""

from enum import Enum

from pairwright.datasets.colorshape.oracle_grammar import readings
from pairwright.datasets.colorshape.oracle_tokens import Tokens, tokenise
from pairwright.datasets.colorshape.oracle_truth import outcomes
from pairwright.datasets.colorshape.scenes import Scene


class Verdict(Enum):
    """What the oracle says of a sentence."""

    TRUE = "true"
    FALSE = "false"
    OUTSIDE = "outside"


def judge(sentence: str, scene: Scene) -> Verdict:
    """Say whether a sentence, or a text of several, is true of ``scene``.

    Args:
        sentence: English text; a leading "Yes," or "No," is passed over.
        scene: the truth.

    Returns:
        TRUE or FALSE, or OUTSIDE when the text is not in the grammar, badly formed, ambiguous or a border case.
    """
    tokens = tokenise(sentence)
    return Verdict.OUTSIDE if tokens is None else judge_tokens(tokens, scene)


def judge_tokens(tokens: Tokens, scene: Scene) -> Verdict:
    """Judge a tokenised text: every sentence has to be true."""
    verdicts = {_judge_one(without_prefix(sentence)[1], scene) for sentence in sentences(tokens)}
    if not verdicts or Verdict.OUTSIDE in verdicts:
        return Verdict.OUTSIDE
    return Verdict.FALSE if Verdict.FALSE in verdicts else Verdict.TRUE


def _judge_one(tokens: Tokens, scene: Scene) -> Verdict:
    values = {value for reading in readings(tokens) for value in outcomes(reading, scene)}
    if len(values) != 1:
        return Verdict.OUTSIDE
    return Verdict.TRUE if values.pop() else Verdict.FALSE


def sentences(tokens: Tokens) -> list[Tokens]:
    """Split a text at its full stops; an empty sentence ("..") stays, and is outside the grammar."""
    parts: list[Tokens] = []
    start = 0
    for place, mark in enumerate(tokens):
        if mark == ".":
            parts.append(tokens[start:place])
            start = place + 1
    if start < len(tokens):
        parts.append(tokens[start:])
    return parts


def without_prefix(tokens: Tokens) -> tuple[str, Tokens]:
    """Return a leading "yes," or "no," (empty without one) and the rest."""
    if len(tokens) > 1 and tokens[0] in {"yes", "no"} and tokens[1] == ",":
        return tokens[0], tokens[2:]
    return "", tokens
