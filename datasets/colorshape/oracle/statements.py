"""Verdicts on statements: a text is cut into sentences, each is read in every way and evaluated.

What the words and structures mean is said in `oracle`, where users of the oracle come in.
"""

from enum import Enum

from pairwright.datasets.colorshape.oracle.sentence_grammar import parse_sentence
from pairwright.datasets.colorshape.oracle.tokenizer import Tokens, tokenise
from pairwright.datasets.colorshape.oracle.truth_conditions import possible_truth_values
from pairwright.datasets.colorshape.scenes import Scene


class OracleVerdict(Enum):
    """What the oracle says of a sentence."""

    TRUE = "true"
    FALSE = "false"
    OUTSIDE = "outside"


def judge(sentence: str, scene: Scene) -> OracleVerdict:
    """Say whether a sentence, or a text of several, is true of ``scene``.

    Args:
        sentence: English text; a leading "Yes," or "No," is passed over.
        scene: the truth.

    Returns:
        TRUE or FALSE, or OUTSIDE when the text is not in the grammar, badly formed, ambiguous or a border case.
    """
    tokens = tokenise(sentence)
    return OracleVerdict.OUTSIDE if tokens is None else judge_tokens(tokens, scene)


def judge_tokens(tokens: Tokens, scene: Scene) -> OracleVerdict:
    """Judge a tokenised text: every sentence has to be true."""
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


def strip_yes_no(tokens: Tokens) -> tuple[str, Tokens]:
    """Return a leading "yes," or "no," (empty without one) and the rest."""
    if len(tokens) > 1 and tokens[0] in {"yes", "no"} and tokens[1] == ",":
        return tokens[0], tokens[2:]
    return "", tokens
