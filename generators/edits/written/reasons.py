"""Reason codes of rejected rewritten captions.

One table for texts by rules and by a model; rules use a part of it (`captions.caption.REASONS`). Codes for unusable
answers (refused, malformed, ...) are in `llm.output.errors` and `llm.client.request_errors`.

The order is from "nothing to edit" to "nearly valid": of several attempts, the reason of the best one is reported.
"""

from collections.abc import Mapping

from pairwright.generators.llm.client import request_errors
from pairwright.generators.llm.output import errors

REASONS: Mapping[str, str] = {
    "no_edit": "the caption has nothing to edit in that way, or the model reports so",
    "not_english": "the caption is not in English, so nothing was sent",
    "no_and": 'a swap around "and" was requested, and the caption has no "and" or is too long',
    "no_image": "the model needs the image, which is missing, invalid or too large",
    "image_url": "the model needs the image, which is a URL that is not sent",
    "identical": "the text is the caption, up to capitals, spacing and the final mark",
    "duplicate": "another row of the caption, or another caption of the image, has the same words",
    "same_words": "the words of the caption in another order, where a new word was requested",
    "other_words": "a swap was requested, and the words are not those of the caption",
    "no_swap": "the words are those of the caption, but more than two spans moved",
    "left_out": "words of the caption are missing without a replacement",
    "another_form": "a replacement where an addition was requested, or the reverse",
    "another_target": "the edit is not of the requested target: object, attribute or relation",
    "several_edits": "more than one edit",
    "too_long": "the edit extends beyond one phrase",
    "repaired": "beside the edit, grammar, spelling or punctuation of the caption was corrected",
    "unknown_word": "a new word is neither in the dictionary nor in the pool",
    "not_grammatical": "the text is not well-formed around the edit",
    "same_meaning": "old and new word of a negative may both be true of the same thing: synonyms, hypernym and hyponym, or "
    "words that captioners use for the same thing",
    "true_of_image": "captions or boxes of the image state what the negative states",
    "seen_in_image": "the model that saw the image reports that it shows what the negative states",
    "may_be_false": "the new words of a positive may change the meaning of the caption",
    "on_both_sides": "the text is both a positive and a negative of the same caption",
    "not_asked": "the model wrote a text of a type that was not requested",
    "spare": "the text is valid, but the requested number of its type is reached",
}

_ORDER = [*request_errors.REQUEST_ERROR_CODES, *errors.OUTPUT_ERROR_CODES, *REASONS]
_NEARNESS = {word: at for at, word in enumerate(_ORDER)}


def nearness(reason: str) -> int:
    """Return the rank of a reason: higher is closer to a valid edit; an unknown reason ranks highest."""
    return _NEARNESS.get(reason, len(_ORDER))
