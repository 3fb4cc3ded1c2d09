"""The truth oracle: is a sentence true of a ColorShape scene?

`judge` parses the sentence (`oracle_grammar`, words in `oracle_words`) and evaluates it (`oracle_truth`).
It knows nothing of how captions are worded, so it can say whether a hard negative is really false and a
hard positive really true. Only tests and reports may use it: a generator that asked it would be cheating.

What sentences mean:

- "A red circle": at least one. "Two red circles", "one circle": exactly that many. "Red circles": two or more.
- Things named in one clause are different things: "a circle and a red circle" takes two circles.
- "The X" takes exactly one X in the scene (where there is none or another, the sentence is false).
- A relation holds when some choice of objects makes it hold; a count or "the ...s" asks it of each of them.
- A text of several sentences is true when all are.
- A sentence that English reads in two ways is judged only when both give the same verdict.

OUTSIDE covers what the grammar does not know, bad English, and what is a matter of opinion (a border case).
"""

from enum import Enum

from pairwright.datasets.colorshape.oracle_grammar import Tokens, readings, tokenise
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
    for place, token in enumerate(tokens):
        if token == ".":
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
