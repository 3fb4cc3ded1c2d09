"""Why a rewritten caption is not taken, in words of a closed set.

One table for all checks on written rows, by rules or by a model. Words of the rule makers (`captions.caption.REASONS`)
that mean the same are the same here. What can go wrong with a model's answer as such (refused, malformed, ...) stands in
`llm.output.errors` and `llm.client.request_errors`.

The order goes from "nothing there" to "nearly": where several answers were tried, the reason of the best one is given.
"""

from collections.abc import Mapping

from pairwright.generators.llm.client import request_errors
from pairwright.generators.llm.output import errors

REASONS: Mapping[str, str] = {
    "no_edit": "the caption holds nothing to edit in that way, or the writer said so",
    "not_english": "the caption is not in English, so nothing was sent",
    "no_and": 'a swap around "and" was asked for, and the caption has none or is too long',
    "no_image": "the image is missing, invalid or too large, and the model is to see it",
    "image_url": "the image is a web address, which is not sent, and the model is to see it",
    "identical": "the text is the caption, but for capitals, spacing and the final mark",
    "duplicate": "another row of the caption, or another caption of the image, says the same words",
    "same_words": "the words of the caption in another order, where another word was asked for",
    "other_words": "a swap was asked for, and the words are not those of the caption",
    "no_swap": "the words are those of the caption, but more than two stretches of them have moved",
    "left_out": "words of the caption are missing without a replacement",
    "another_form": "a replacement where an addition was asked for, or the other way round",
    "another_target": "the edit is not of an object, an attribute or a relation as asked for",
    "several_edits": "more than one place was edited",
    "too_long": "the edit goes beyond one phrase",
    "repaired": "beside the edit, grammar, spelling or punctuation of the caption was corrected",
    "unknown_word": "a new word is neither in the dictionary nor in the pool",
    "not_grammatical": "the text is not well-formed around the edit",
    "same_meaning": "the new word of a negative may be said of the same thing as the old one: they mean the same, one is "
    "a kind of the other, or captioners use both of one thing",
    "true_of_image": "captions or boxes of the image say what the negative says",
    "seen_in_image": "the model that saw the image says that it shows what the negative says",
    "may_be_false": "the new words of a positive may change what the caption says",
    "on_both_sides": "the text is a positive and a negative of the same caption",
    "not_asked": "the model wrote a text of a type that it was not asked for",
    "spare": "the text is good, and as many of its type as were wanted stood before it",
}

_ORDER = [*request_errors.REQUEST_ERROR_CODES, *errors.OUTPUT_ERROR_CODES, *REASONS]
_NEARNESS = {word: at for at, word in enumerate(_ORDER)}


def nearness(reason: str) -> int:
    """Return how near to success a reason is, the higher the nearer; one that is not known counts as nearest."""
    return _NEARNESS.get(reason, len(_ORDER))
