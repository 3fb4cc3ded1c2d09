"""Verdicts on turns of a conversation: a question (`question_grammar.py`) with its answer.

A turn is TRUE if the answer is true, its "yes" or "no" is right, and it addresses the question: it counts what was counted,
gives the colour of the object whose colour was asked, and so on. It is FALSE if the answer is false or its "yes" or "no"
wrong. It is OUTSIDE if question or answer are outside the grammar, the truth is a border case, or the answer is about
something else. "It" and short answers ("Red.", "Two.", "To the left of the square.") are completed from the question.
Questions about the image as a whole or with a format for the answer (options, "a single word or phrase"):
`image_questions.py`.
"""

from pairwright.datasets.colorshape.oracle.grammar import parse_sentence
from pairwright.datasets.colorshape.oracle.image_questions import judge_image_question, split_question
from pairwright.datasets.colorshape.oracle.lexicon import NUMBERS
from pairwright.datasets.colorshape.oracle.logical_forms import (
    ANY_SHAPE,
    DescriptionConstraint,
    LogicalClause,
    NounPhraseEntity,
    ObjectRelation,
    Quantity,
    Reading,
    RelationConstraint,
)
from pairwright.datasets.colorshape.oracle.question_grammar import (
    AttributeQuestion,
    ComparisonQuestion,
    CountQuestion,
    LocationQuestion,
    OpenQuestion,
    PolarQuestion,
    Question,
    RelationQuestion,
    mentioned_shapes,
    parse_question,
)
from pairwright.datasets.colorshape.oracle.statements import OracleVerdict, judge_tokens, split_sentences, strip_yes_no
from pairwright.datasets.colorshape.oracle.tokenizer import Tokens, tokenise
from pairwright.datasets.colorshape.oracle.truth_conditions import find_referent, possible_truth_values
from pairwright.datasets.colorshape.scenes import Scene

_LOCATIONS = frozenset(ObjectRelation) - {
    ObjectRelation.LARGER, ObjectRelation.SMALLER, ObjectRelation.SAME_SIZE, ObjectRelation.SAME_COLOUR, ObjectRelation.SAME_SHAPE,
}  # fmt: skip


def judge_turn(question: str, answer: str, scene: Scene) -> OracleVerdict:
    """Return whether ``answer`` is a true answer to ``question`` about ``scene``.

    Args:
        question: a question or an instruction ("Describe the image briefly."), in free wording.
        answer: full sentences of the scene grammar, or a short answer.
        scene: the truth.

    Returns:
        TRUE, FALSE, or OUTSIDE, as described in the module. An ambiguous question is judged only if all readings give the
        same verdict.
    """
    stem, options = split_question(question)
    if not options:
        return _judge_stem(stem, answer, scene)
    verdicts = {letter: _judge_stem(stem, option, scene) for letter, option in options.items()}
    chosen = verdicts.pop(answer.strip().rstrip(".)"), OracleVerdict.OUTSIDE)
    return (
        chosen
        if chosen is not OracleVerdict.TRUE or set(verdicts.values()) <= {OracleVerdict.FALSE}
        else OracleVerdict.OUTSIDE
    )


def _judge_stem(question: str, answer: str, scene: Scene) -> OracleVerdict:
    tokens = tokenise(answer)
    if not tokens:
        return OracleVerdict.OUTSIDE
    truth = judge_image_question(question, answer, scene)
    if truth is not None:
        return OracleVerdict.TRUE if truth else OracleVerdict.FALSE
    verdicts = {_judge(asked, tokens, scene) for asked in parse_question(question)}
    # A reading that the answer does not address was not the one meant.
    decided = verdicts - {OracleVerdict.OUTSIDE}
    return decided.pop() if len(decided) == 1 else OracleVerdict.OUTSIDE


def _judge(asked: Question, answer: Tokens, scene: Scene) -> OracleVerdict:
    if isinstance(asked, OpenQuestion):
        return judge_tokens(answer, scene)
    if isinstance(asked, PolarQuestion):
        return _judge_polar(asked, answer, scene)
    if isinstance(asked, CountQuestion) and (len(answer) == 1 or answer[1:] == (".",)) and answer[0] in NUMBERS:
        return _judge_number(asked, NUMBERS[answer[0]], scene)
    full = _complete_answer(asked, answer)
    first = parse_sentence(strip_yes_no(split_sentences(full)[0])[1])
    if not any(_addresses_question(asked, reading, scene) for reading in first):
        return OracleVerdict.OUTSIDE
    return judge_tokens(full, scene)


def _judge_polar(asked: PolarQuestion, answer: Tokens, scene: Scene) -> OracleVerdict:
    values = {value for reading in asked.statement for value in possible_truth_values(reading, scene)}
    if len(values) != 1:
        return OracleVerdict.OUTSIDE
    truth = "yes" if values == {True} else "no"
    if answer in {("yes",), ("yes", "."), ("no",), ("no", ".")}:
        return OracleVerdict.TRUE if answer[0] == truth else OracleVerdict.FALSE
    prefix, first = strip_yes_no(split_sentences(answer)[0])
    topic = frozenset[str]().union(*map(mentioned_shapes, asked.statement))
    spoken = frozenset[str]().union(*map(mentioned_shapes, parse_sentence(first)))
    verdict = judge_tokens(answer, scene)
    if verdict is OracleVerdict.OUTSIDE or not (topic & spoken or topic == spoken):
        return OracleVerdict.OUTSIDE
    return OracleVerdict.FALSE if prefix and prefix != truth else verdict


def _judge_number(asked: CountQuestion, number: int, scene: Scene) -> OracleVerdict:
    values = possible_truth_values(
        (LogicalClause((NounPhraseEntity(asked.description, Quantity.EXACTLY, number),)),), scene
    )
    if len(values) != 1:
        return OracleVerdict.OUTSIDE
    return OracleVerdict.TRUE if values.pop() else OracleVerdict.FALSE


def _complete_answer(asked: Question, answer: Tokens) -> Tokens:
    """Return the answer as a full sentence, completed from the question."""
    body = answer[:-1] if answer[-1] == "." else answer
    if isinstance(asked, CountQuestion | ComparisonQuestion | RelationQuestion | PolarQuestion | OpenQuestion):
        return answer
    if body[:2] == ("it", "is"):
        return (*asked.words, *answer[1:])
    statement = (*asked.words, "is", *body)
    return statement if parse_sentence(statement) and not {"is", "are"} & set(body) else answer


def _addresses_question(asked: Question, reading: Reading, scene: Scene) -> bool:
    """Return whether a reading of the answer addresses the question, true or not."""
    if len(reading) != 1:
        return False
    clause = reading[0]
    if isinstance(asked, CountQuestion):
        return _states_number(asked, clause)
    if clause.negated:
        return False
    if isinstance(asked, AttributeQuestion):
        return any(
            isinstance(c, DescriptionConstraint)
            and not c.negated
            and _states_attribute(asked, c)
            and _same_referent(clause.entities[c.subject], asked.thing, scene)
            for c in clause.constraints
        )
    return any(
        isinstance(c, RelationConstraint) and not c.negated and _states_relation(asked, c, clause, scene)
        for c in clause.constraints
    )


def _states_number(asked: CountQuestion, clause: LogicalClause) -> bool:
    if len(clause.entities) != 1 or clause.constraints or clause.entities[0].description != asked.description:
        return False
    return clause.negated or clause.entities[0].quantity is Quantity.EXACTLY


def _states_attribute(asked: AttributeQuestion, said: DescriptionConstraint) -> bool:
    if asked.attribute == "shape":
        return said.description.shape != ANY_SHAPE
    return getattr(said.description, asked.attribute) is not None


def _states_relation(asked: Question, said: RelationConstraint, clause: LogicalClause, scene: Scene) -> bool:
    subject = clause.entities[said.subject]
    others = [clause.entities[other] for other in said.others]
    if isinstance(asked, LocationQuestion):
        about = asked.reference is None or any(_same_referent(other, asked.reference, scene) for other in others)
        return said.relation in _LOCATIONS and _same_referent(subject, asked.thing, scene) and about
    if isinstance(asked, ComparisonQuestion) and len(others) == 1:
        one, two = asked.things
        straight = _same_referent(subject, one, scene) and _same_referent(others[0], two, scene)
        crossed = _same_referent(subject, two, scene) and _same_referent(others[0], one, scene)
        return said.relation in {ObjectRelation.LARGER, ObjectRelation.SMALLER} and (straight or crossed)
    if isinstance(asked, RelationQuestion):
        return said.relation is asked.relation and any(
            _same_referent(other, asked.reference, scene) for other in others
        )
    return False


def _same_referent(a: NounPhraseEntity, b: NounPhraseEntity, scene: Scene) -> bool:
    """Return whether two noun phrases denote the same object: by the same words, or the same single object."""
    if a.description == b.description:
        return True
    first = find_referent(a, scene)
    return first is not None and first is find_referent(b, scene)
