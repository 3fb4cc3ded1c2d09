"""Error codes of answers that came but are invalid, and the result of parsing an answer.

Such an answer is billed, so it is not a `RequestError`, and the codes of both are distinct. An `OutputError` has a sentence
for the model, which a repair request contains, unless a repair cannot help: a model that refused would refuse again.

Generators have reasons of their own in addition (``request_answers(check=...)``).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OutputErrorCode:
    """What a code means (a clause), feedback to the model (a sentence; empty: a repair cannot help), how to fix it."""

    means: str
    feedback: str
    fix: str


OUTPUT_ERROR_CODES: Mapping[str, OutputErrorCode] = {
    "refused": OutputErrorCode(
        "the model refused to answer", "", "Reword the prompt, use another model, or remove the row."
    ),
    "filtered": OutputErrorCode(
        "a content filter stopped the answer", "", "Remove the row, or use a model that is filtered less."
    ),
    "empty_answer": OutputErrorCode(
        "the answer is empty", "Your answer was empty.", "Check the prompt, and raise max_tokens."
    ),
    "reasoning_only": OutputErrorCode(
        "the model stopped within its reasoning, without an answer",
        "",
        "Raise the token limit with --parameter max_tokens=N, or lower the reasoning effort.",
    ),
    "truncated": OutputErrorCode(
        "the answer is cut off",
        "Your answer was too long and broke off. Be brief.",
        "Raise the token limit with --parameter max_tokens=N, or the server's context if prompt and answer fill it.",
    ),
    "runaway_whitespace": OutputErrorCode(
        "the answer ends in whitespace up to the token limit, as some servers' JSON schemas let models write it",
        "Your answer broke off.",
        "Update the server, or pass --structured json.",
    ),
    "malformed": OutputErrorCode(
        "the answer does not have the requested format",
        "Your answer was not the JSON object asked for.",
        "Show an example in the prompt, or use a server that supports JSON schemas.",
    ),
    "missing_field": OutputErrorCode(
        "a field is missing", "A field is missing from your answer.", "Name every field in the prompt."
    ),
    "extra_field": OutputErrorCode(
        "there is a field that was not requested",
        "Your answer has a field that was not asked for.",
        "Name every field in the prompt.",
    ),
    "wrong_type": OutputErrorCode(
        "a value has another type than requested",
        "A value in your answer has the wrong type.",
        "Show an example in the prompt, or use a server that supports JSON schemas.",
    ),
    "wrong_value": OutputErrorCode(
        "a value is not allowed",
        "A value in your answer is not allowed.",
        "Name the allowed values in the prompt.",
    ),
    "run_on": OutputErrorCode(
        "the model continued after its answer",
        "You wrote more than the answer.",
        "State in the prompt that nothing may follow, or set a stop text.",
    ),
    "several_answers": OutputErrorCode(
        "the model gave several different answers",
        "You gave more than one answer.",
        "State in the prompt that one answer is wanted.",
    ),
    "echoed": OutputErrorCode(
        "the answer repeats parts of the prompt",
        "Your answer repeats parts of the instructions or the marks around the input.",
        "Check the row: its text may read like an instruction.",
    ),
    "copied_example": OutputErrorCode(
        "the answer is that of an example in the prompt",
        "",  # a model that copies an example copies it again
        "Use a larger model, or other demonstrations in the prompt.",
    ),
    "planned": OutputErrorCode(
        "the prompt's typical answer does not fit the shape", "", "Give the prompt a `typical` answer that fits."
    ),
}


@dataclass(frozen=True, slots=True)
class OutputError:
    """What is wrong with an answer.

    Attributes:
        word: a key of `OUTPUT_ERROR_CODES`, or a reason of a generator.
        sentence: feedback to the model; empty: that of the code.
        detail: detail for the user; never quotes the answer.
    """

    word: str
    sentence: str = ""
    detail: str = ""

    @property
    def feedback(self) -> str:
        """Feedback to the model in a repair request; empty if a repair cannot help."""
        entry = OUTPUT_ERROR_CODES.get(self.word)
        if entry is not None and not entry.feedback:
            return ""
        return self.sentence or (entry.feedback if entry is not None else "")


@dataclass(frozen=True, slots=True)
class ParsedAnswer(Generic[T]):
    """The result of parsing an answer.

    Attributes:
        value: the value; None if it is invalid.
        error: what is wrong with it.
        tolerated: keys of `structured.TOLERATED_DEFECTS`, defects that were ignored.
    """

    value: T | None
    error: OutputError | None = None
    tolerated: tuple[str, ...] = ()
