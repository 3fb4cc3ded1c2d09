"""Why a written conversation is not taken, in words of a closed set.

What can be wrong with a model's answer as such (refused, malformed, run_on, ...) stands in `llm.troubles`, and why no
answer came in `llm.failures`. Here is what is wrong with turns that could be read, and why a pair was not asked about.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TurnReason:
    """What a word means (a clause), and what a model is told of it (a sentence; empty: it is not asked again)."""

    means: str
    tell: str = ""


TURN_REASONS: Mapping[str, TurnReason] = {
    "no_context": TurnReason("nothing can be asked that captions or boxes prove"),
    "no_image": TurnReason("the image was to be shown, and the pair has none that can be read"),
    "empty_turn": TurnReason("a question or an answer is empty", "A question or an answer is empty."),
    "too_few_turns": TurnReason("there are fewer turns than asked for", "There are too few turns."),
    "too_many_turns": TurnReason("there are more turns than asked for", "There are too many turns."),
    "not_alternating": TurnReason(
        "a turn holds another one, so questions and answers do not alternate",
        "A question or an answer holds further turns. Write one question and one answer each.",
    ),
    "no_question": TurnReason(
        "what should be a question asks nothing", "What stands as a question has to be one, or an instruction."
    ),
    "image_token": TurnReason(
        "a turn holds the mark that stands for the image in training", "Leave out marks such as <image>."
    ),
    "mentions_source": TurnReason(
        "it speaks of captions, descriptions, boxes, labels or what was given",
        "You spoke of what you were given. Write as if you saw the image, and mention no captions, descriptions or boxes.",
    ),
    "coordinates": TurnReason(
        "it gives coordinates", "You gave coordinates. Say positions in words, such as 'on the left'."
    ),
    "unanswerable": TurnReason(
        "a question has no answer in what is known of the image",
        "A question cannot be answered from what is known. Ask only what has a certain answer.",
    ),
    "other_language": TurnReason(
        "an answer is in another language than its question",
        "An answer is in another language than its question. Write both in the same one.",
    ),
    "repeated": TurnReason("the same question or answer stands there twice", "A question or an answer is repeated."),
    "question_too_long": TurnReason("a question is longer than asked for", "A question is too long."),
    "too_short": TurnReason("an answer is shorter than asked for", "The answer is too short. Say more."),
    "too_long": TurnReason("an answer is longer than asked for", "The answer is too long. Be brief."),
    "list_formatting": TurnReason(
        "an answer has a list, headings or JSON where one text was asked for",
        "Write one flowing text, without a list, a heading or JSON.",
    ),
}
