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

`judge_turn` judges a question with its answer: the answer has to be true *and* to answer what was asked.

OUTSIDE covers what the grammar does not know, bad English, and what is a matter of opinion (a border case).
"""

from pairwright.datasets.colorshape.oracle.statements import OracleVerdict, judge
from pairwright.datasets.colorshape.oracle.turns import judge_turn

__all__ = ["OracleVerdict", "judge", "judge_turn"]
