"""Verdicts on turns of a conversation: a question (`oracle_questions`) with its answer.

A turn is TRUE when the answer is true, its "yes" or "no" is right, and it answers the question: it counts
what was counted, tells the colour of the thing whose colour was asked, and so on. It is FALSE when the answer
is false or its "yes" or "no" wrong. It is OUTSIDE when question or answer are outside the grammar, when the
truth is a border case, or when the answer speaks of something else. "It" and short answers ("Red.", "Two.",
"To the left of the square.") are completed from the question. What speaks of the picture as a whole or comes with a
format for the answer (options, "a single word or phrase"): `oracle_pictures`.
"""

from pairwright.datasets.colorshape.oracle_forms import (
    ANY_SHAPE,
    Clause,
    Entity,
    Is,
    Quantity,
    Reading,
    Relation,
    Stands,
)
from pairwright.datasets.colorshape.oracle_grammar import readings
from pairwright.datasets.colorshape.oracle_pictures import picture_truth, stem_of
from pairwright.datasets.colorshape.oracle_questions import (
    Compare,
    HowMany,
    Open,
    Polar,
    Question,
    WhatStands,
    Where,
    Which,
    shapes_spoken_of,
    understood,
)
from pairwright.datasets.colorshape.oracle_sentences import Verdict, judge_tokens, sentences, without_prefix
from pairwright.datasets.colorshape.oracle_tokens import Tokens, tokenise
from pairwright.datasets.colorshape.oracle_truth import denoted, outcomes
from pairwright.datasets.colorshape.oracle_words import NUMBERS
from pairwright.datasets.colorshape.scenes import Scene

_LOCATIONS = frozenset(Relation) - {
    Relation.LARGER, Relation.SMALLER, Relation.SAME_SIZE, Relation.SAME_COLOUR, Relation.SAME_SHAPE,
}  # fmt: skip


def judge_turn(question: str, answer: str, scene: Scene) -> Verdict:
    """Say whether ``answer`` is a true answer to ``question`` about ``scene``.

    Args:
        question: a question or an instruction ("Describe the image briefly."), in free wording.
        answer: full sentences of the scene grammar, or a short answer.
        scene: the truth.

    Returns:
        TRUE, FALSE, or OUTSIDE, as the module says. A question that can be taken in two ways is judged only
        when both give the same verdict.
    """
    stem, options = stem_of(question)
    if not options:
        return _judge_stem(stem, answer, scene)
    verdicts = {letter: _judge_stem(stem, option, scene) for letter, option in options.items()}
    chosen = verdicts.pop(answer.strip().rstrip(".)"), Verdict.OUTSIDE)
    return chosen if chosen is not Verdict.TRUE or set(verdicts.values()) <= {Verdict.FALSE} else Verdict.OUTSIDE


def _judge_stem(question: str, answer: str, scene: Scene) -> Verdict:
    tokens = tokenise(answer)
    if not tokens:
        return Verdict.OUTSIDE
    truth = picture_truth(question, answer, scene)
    if truth is not None:
        return Verdict.TRUE if truth else Verdict.FALSE
    verdicts = {_judge(asked, tokens, scene) for asked in understood(question)}
    # A way to take the question that the answer does not answer was not the one meant.
    told = verdicts - {Verdict.OUTSIDE}
    return told.pop() if len(told) == 1 else Verdict.OUTSIDE


def _judge(asked: Question, answer: Tokens, scene: Scene) -> Verdict:
    if isinstance(asked, Open):
        return judge_tokens(answer, scene)
    if isinstance(asked, Polar):
        return _judge_polar(asked, answer, scene)
    if isinstance(asked, HowMany) and (len(answer) == 1 or answer[1:] == (".",)) and answer[0] in NUMBERS:
        return _judge_number(asked, NUMBERS[answer[0]], scene)
    full = _completed(asked, answer)
    first = readings(without_prefix(sentences(full)[0])[1])
    if not any(_answers(asked, reading, scene) for reading in first):
        return Verdict.OUTSIDE
    return judge_tokens(full, scene)


def _judge_polar(asked: Polar, answer: Tokens, scene: Scene) -> Verdict:
    values = {value for reading in asked.statement for value in outcomes(reading, scene)}
    if len(values) != 1:
        return Verdict.OUTSIDE
    truth = "yes" if values == {True} else "no"
    if answer in {("yes",), ("yes", "."), ("no",), ("no", ".")}:
        return Verdict.TRUE if answer[0] == truth else Verdict.FALSE
    prefix, first = without_prefix(sentences(answer)[0])
    topic = frozenset[str]().union(*map(shapes_spoken_of, asked.statement))
    spoken = frozenset[str]().union(*map(shapes_spoken_of, readings(first)))
    verdict = judge_tokens(answer, scene)
    if verdict is Verdict.OUTSIDE or not (topic & spoken or topic == spoken):
        return Verdict.OUTSIDE
    return Verdict.FALSE if prefix and prefix != truth else verdict


def _judge_number(asked: HowMany, number: int, scene: Scene) -> Verdict:
    values = outcomes((Clause((Entity(asked.description, Quantity.EXACTLY, number),)),), scene)
    if len(values) != 1:
        return Verdict.OUTSIDE
    return Verdict.TRUE if values.pop() else Verdict.FALSE


def _completed(asked: Question, answer: Tokens) -> Tokens:
    """Return the answer as a full sentence where it leaned on the question."""
    body = answer[:-1] if answer[-1] == "." else answer
    if isinstance(asked, HowMany | Compare | WhatStands | Polar | Open):
        return answer
    if body[:2] == ("it", "is"):
        return (*asked.words, *answer[1:])
    statement = (*asked.words, "is", *body)
    return statement if readings(statement) and not {"is", "are"} & set(body) else answer


def _answers(asked: Question, reading: Reading, scene: Scene) -> bool:
    """Whether a reading of the answer tells what was asked, true or not."""
    if len(reading) != 1:
        return False
    clause = reading[0]
    if isinstance(asked, HowMany):
        return _tells_number(asked, clause)
    if clause.negated:
        return False
    if isinstance(asked, Which):
        return any(
            isinstance(c, Is)
            and not c.negated
            and _tells(asked, c)
            and _same(clause.entities[c.subject], asked.thing, scene)
            for c in clause.constraints
        )
    return any(
        isinstance(c, Stands) and not c.negated and _relates(asked, c, clause, scene) for c in clause.constraints
    )


def _tells_number(asked: HowMany, clause: Clause) -> bool:
    if len(clause.entities) != 1 or clause.constraints or clause.entities[0].description != asked.description:
        return False
    return clause.negated or clause.entities[0].quantity is Quantity.EXACTLY


def _tells(asked: Which, said: Is) -> bool:
    if asked.attribute == "shape":
        return said.description.shape != ANY_SHAPE
    return getattr(said.description, asked.attribute) is not None


def _relates(asked: Question, said: Stands, clause: Clause, scene: Scene) -> bool:
    subject = clause.entities[said.subject]
    others = [clause.entities[other] for other in said.others]
    if isinstance(asked, Where):
        about = asked.reference is None or any(_same(other, asked.reference, scene) for other in others)
        return said.relation in _LOCATIONS and _same(subject, asked.thing, scene) and about
    if isinstance(asked, Compare) and len(others) == 1:
        one, two = asked.things
        straight = _same(subject, one, scene) and _same(others[0], two, scene)
        crossed = _same(subject, two, scene) and _same(others[0], one, scene)
        return said.relation in {Relation.LARGER, Relation.SMALLER} and (straight or crossed)
    if isinstance(asked, WhatStands):
        return said.relation is asked.relation and any(_same(other, asked.reference, scene) for other in others)
    return False


def _same(a: Entity, b: Entity, scene: Scene) -> bool:
    """Whether two noun phrases speak of the same thing: in the same words, or of the same one object."""
    if a.description == b.description:
        return True
    first = denoted(a, scene)
    return first is not None and first is denoted(b, scene)
