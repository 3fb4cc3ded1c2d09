"""A proposed edit of a caption, by rules or by a language model: the input of constraints."""

from typing import NamedTuple

from pairwright.generators.captions.caption import Caption


class ProposedEdit(NamedTuple):
    """One edit; words are keys of the lexicon: lower-case lemmas, compounds and phrases with spaces.

    Attributes:
        caption: the edited caption, with the other captions and boxes of its image (`Caption.words`).
        form: "replace", "add", "swap" or "negation".
        target: "object", "attribute" or "relation".
        old: replaced word or phrase ("dog", "red", "sit on top of"); empty for additions. Of a swap, the first span.
        new: inserted word or phrase. Of a swap, the second span. Several attributes are separated by spaces.
        before: lemma of the head noun before the edit: of a relation, its subject; empty if there is none. Of swapped
            attributes, the noun that ``new`` describes after the swap.
        after: lemma of the head noun behind the edit: of an attribute, the noun that it describes; of a relation, its
            object; empty if there is none. Of swapped attributes, the noun that ``old`` describes after the swap.
        start: first token that is replaced, or before which words are added.
        end: one past the last token that is replaced; equal to ``start`` for additions.
        second: of a swap, start and end of the second span; it starts at ``end`` if one span only moved past the other.
        kind: "hard_negative" or "hard_positive".
        log_prob: natural logarithm of p(new | context) by the cloze model; 0 if no cloze model proposed the edit.
    """

    caption: Caption
    form: str
    target: str
    old: str
    new: str
    before: str = ""
    after: str = ""
    start: int = 0
    end: int = 0
    second: tuple[int, int] = (0, 0)
    kind: str = "hard_negative"
    log_prob: float = 0.0
