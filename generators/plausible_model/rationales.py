"""Rule-based answers to the rationale prompts.

The label of image-text matching is found by comparison with known captions; for the other tasks it is the one in the
prompt. Without one, `nli` and `mcqa` guess by shared words, and `math` adds up all numbers.
"""

import difflib
import re
from collections.abc import Sequence
from fractions import Fraction

from pairwright.generators.plausible_model.edits import RuleEdits
from pairwright.generators.rationales.arithmetic import find_numbers, format_number
from pairwright.generators.rationales.tasks import ANSWER_TEMPLATE

_WORD = re.compile(r"[\w'’-]+")
_NEGATION = re.compile(r"\b(?:not|no|never|nobody|nothing)\b|n['’]t\b", re.IGNORECASE)
MIN_SIMILARITY = 0.6  # share of common words above which a caption is an edit of another


def image_text_matching(known: Sequence[str], caption: str, label: str, edits: RuleEdits) -> str:
    """Return a rationale for whether a caption matches an image; an edit of a known caption does not, unless positive.

    Args:
        known: captions of the image, labels of boxes.
        caption: the caption to judge.
        label: ``yes`` or ``no`` if the answer is given, else empty.
        edits: makes hard positives of the known captions.
    """
    words = caption.split()
    matched = [(difflib.SequenceMatcher(None, each.split(), words, autojunk=False), each) for each in known]
    matcher, nearest = max(matched, key=lambda pair: pair[0].ratio(), default=(None, ""))
    changed, original = _differences(matcher, nearest.split(), words) if matcher is not None else ("", "")
    if not label:
        is_edit = matcher is not None and MIN_SIMILARITY < matcher.ratio() < 1 and bool(changed or original)
        reworded = {edit.caption for found in edits.positives(nearest).values() for edit in found} if is_edit else set()
        label = "no" if is_edit and caption not in reworded else "yes"
    if label == "yes":
        reasons = f'The image shows "{nearest or caption}". All that the words to judge say goes with that.'
    elif changed and original:
        reasons = f'The words say "{changed}". What the image shows there is "{original}".'
    elif changed:
        reasons = f'The words add "{changed}". Nothing of that kind is in the image.'
    else:
        reasons = f'The words put things in other places. What the image shows is "{nearest}".'
    return f"{reasons} {ANSWER_TEMPLATE.format(label=label)}"


def _differences(matcher: difflib.SequenceMatcher[str], nearest: list[str], words: list[str]) -> tuple[str, str]:
    """Return the words in which the caption differs from the nearest known one, and those of the latter."""
    parts = [part for part in matcher.get_opcodes() if part[0] != "equal"]
    changed = " ".join(" ".join(words[j1:j2]) for _, _, _, j1, j2 in parts).strip(" .,")
    return changed, " ".join(" ".join(nearest[i1:i2]) for _, i1, i2, _, _ in parts).strip(" .,")


def natural_language_inference(premise: str, hypothesis: str, label: str) -> str:
    """Return a rationale for whether a hypothesis follows from a premise, contradicts it, or neither."""
    if not label:
        new = _content(hypothesis) - _content(premise)
        denies = bool(_NEGATION.search(hypothesis)) != bool(_NEGATION.search(premise))
        label = "contradiction" if denies else "neutral" if new else "entailment"
    reasons = {
        "entailment": "What the second sentence says is part of what the first one says.",
        "contradiction": "The second sentence denies what the first one says. Both cannot be true.",
        "neutral": "The first sentence leaves open what the second one says. It may be true or false.",
    }.get(label, "That is what the two sentences say.")
    return f"{reasons} {ANSWER_TEMPLATE.format(label=label)}"


def multiple_choice(question: str, choices: Sequence[str], label: str) -> str:
    """Return a rationale for the given choice, or else for the one that shares most words with the question."""
    question_words = _content(question)
    label = label or max(choices, key=lambda each: len(_content(each) & question_words), default="")
    return f"The question asks for what goes best with its words. Of the choices that is {label}. {ANSWER_TEMPLATE.format(label=label)}"


def math_problem(problem: str, label: str) -> str:
    """Return a rationale for the given number, or else for the sum of the numbers in the problem."""
    found = find_numbers(problem)
    terms = " + ".join(format_number(value) for value in found) or "0"
    if label:
        return f"The numbers of the problem are {', '.join(format_number(value) for value in found)}. What is asked for is {label}. {ANSWER_TEMPLATE.format(label=label)}"
    return f"Together the numbers are {terms} = {format_number(sum(found, Fraction(0)))}. {ANSWER_TEMPLATE.format(label=format_number(sum(found, Fraction(0))))}"


def _content(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text) if len(word) > 3}
