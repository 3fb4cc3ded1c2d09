"""What can be wrong with an answer that came, in words of a closed set.

An answer that came was paid for, so this is no `Failure` (there is none of the same word). A `Trouble` says what is
wrong in a sentence to the model, which a repair round sends back, and whether that can help: a model that refused, or
was stopped by a filter, would do so again.

The makers of rows have reasons of their own beside these (``asked(check=...)``).
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OutputErrorCode:
    """What a word means (a clause), what the model is told (a sentence; empty: no use), how to mend it (a sentence)."""

    means: str
    tell: str
    fix: str


OUTPUT_ERROR_CODES: Mapping[str, OutputErrorCode] = {
    "refused": OutputErrorCode(
        "the model refused to answer", "", "Reword the prompt, use another model, or leave the row out."
    ),
    "filtered": OutputErrorCode(
        "a content filter stopped the answer", "", "Leave the row out, or use a model that is filtered less."
    ),
    "empty_answer": OutputErrorCode(
        "the model said nothing", "Your answer was empty.", "Look at the prompt, and raise max_tokens."
    ),
    "reasoning_only": OutputErrorCode(
        "the model ended in its reasoning and gave no answer",
        "",
        "Raise the token limit with --parameter max_tokens=N, or lower the reasoning effort.",
    ),
    "truncated": OutputErrorCode(
        "the answer breaks off", "Your answer was too long and broke off. Be brief.", "Raise max_tokens."
    ),
    "malformed": OutputErrorCode(
        "the answer is not in the form asked for",
        "Your answer was not the JSON object asked for.",
        "Show an example in the prompt, or use a server that supports JSON schemas.",
    ),
    "missing_field": OutputErrorCode(
        "a field is missing", "A field is missing from your answer.", "Name every field in the prompt."
    ),
    "extra_field": OutputErrorCode(
        "there is a field that was not asked for",
        "Your answer has a field that was not asked for.",
        "Name every field in the prompt.",
    ),
    "wrong_type": OutputErrorCode(
        "a value has another type than asked for",
        "A value in your answer has the wrong type.",
        "Show an example in the prompt, or use a server that supports JSON schemas.",
    ),
    "wrong_value": OutputErrorCode(
        "a value is none of those allowed",
        "A value in your answer is not allowed.",
        "Name the allowed values in the prompt.",
    ),
    "run_on": OutputErrorCode(
        "the model went on after its answer",
        "You wrote more than the answer.",
        "Say in the prompt that nothing may follow, or set a stop text.",
    ),
    "several_answers": OutputErrorCode(
        "the model gave several answers that differ",
        "You gave more than one answer.",
        "Say in the prompt that one answer is wanted.",
    ),
    "echoed": OutputErrorCode(
        "the answer repeats parts of the prompt",
        "Your answer repeats parts of the instructions or the marks around the input.",
        "Look at the row: its text may read like an instruction.",
    ),
    "planned": OutputErrorCode(
        "the prompt's typical answer does not fit the shape", "", "Give the prompt a `typical` answer that fits."
    ),
}


@dataclass(frozen=True, slots=True)
class OutputError:
    """What is wrong with an answer.

    Attributes:
        word: one of `OUTPUT_ERROR_CODES`, or a maker's own reason.
        sentence: what is wrong, told to the model in a repair round; empty: the word's own sentence.
        detail: what is wrong, told to the user; never quotes the answer.
    """

    word: str
    sentence: str = ""
    detail: str = ""

    @property
    def told(self) -> str:
        """What the model is told; empty where telling it is of no use."""
        entry = OUTPUT_ERROR_CODES.get(self.word)
        if entry is not None and not entry.tell:
            return ""
        return self.sentence or (entry.tell if entry is not None else "")
