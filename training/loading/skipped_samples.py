"""Messages on skipped and incomplete samples, and the check that data is usable at all."""

from collections.abc import Mapping
from typing import NamedTuple

from pairwright.datasets.count_phrases import count_phrase, verb_form
from pairwright.datasets.errors import InputError
from pairwright.datasets.rejects import rank_reasons
from pairwright.training.loading.sample_order import SampleOrder


class _Wording(NamedTuple):
    """What samples with a reason have, and what the data needs instead."""

    have: str
    needed: str


_IMAGES = "an image each. Use shards with images"
_NEGATIVES = "hard negatives. Build them with the section `negatives`, or set method.online"
_POSITIVES = "hard positives. Build them with the section `positives`"
_BOTH = "hard negatives and hard positives. Build them with the sections `negatives` and `positives`"
_CONVERSATIONS = "of method.types, if set). Build them with the section `conversations`"
_RATIONALES = "a rationale of this split. Build them with the section `rationales`"

_WORDS = {
    "missing_image": _Wording("no image", _IMAGES),
    "several_images": _Wording(
        "several images", "one image each. Conversations about several are for finetuning recipes"
    ),
    "missing_caption": _Wording("no caption", "a caption each, as .txt. Use shards with captions"),
    "duplicate_member": _Wording("a duplicate member", "one image and one caption each. Write the shards again"),
    "broken_json": _Wording("no readable JSON", "readable JSON. Write the shards again"),
    "no_hard_negatives": _Wording("no hard negative", _NEGATIVES),
    "no_hard_positives": _Wording("no hard positive", _POSITIVES),
    "no_hard_texts": _Wording("no hard negative and no hard positive", _BOTH),
    "no_triplets": _Wording("no question with an answer", f"a question with its answer ({_CONVERSATIONS}"),
    "no_conversations": _Wording("no conversation", f"a conversation ({_CONVERSATIONS}"),
    "no_rationales": _Wording("no rationale or label of this split", _RATIONALES),
}


def data_notes(left_out: Mapping[str, int], lacking: Mapping[str, int], order: SampleOrder) -> list[str]:
    """Return sentences on skipped samples, missing texts and smaller steps; empty for complete data.

    ``left_out`` counts skipped samples by reason, ``lacking`` samples used without texts of some kind.
    """
    of = f"of {count_phrase(order.samples, 'sample')}"
    lines = [_note(count_phrase(count, "sample"), count, reason, "skipped") for reason, count in rank_reasons(left_out)]
    lines += [_note(f"{count:,} {of}", count, reason, "used without") for reason, count in rank_reasons(lacking)]
    largest = -(-order.samples // order.steps)
    if order.ends == "even" and largest < order.together:
        divided = f"{count_phrase(order.samples, 'sample')} {verb_form(order.samples, 'are')} divided evenly over "
        lines.append(
            f"Steps have {count_phrase(largest, 'sample')}, not {order.together:,}: {divided}"
            f"{count_phrase(order.steps, 'step')} per epoch."
        )
    return lines


def _note(subject: str, count: int, reason: str, treatment: str) -> str:
    return f"{subject} {verb_form(count, 'have')} {_WORDS[reason].have} and {verb_form(count, 'are')} {treatment}."


def check_usable(used: int, left_out: Mapping[str, int], data: str, lacking: Mapping[str, int] | None = None) -> None:
    """Check that at least one sample is usable.

    ``used`` is the number of samples that are not skipped; ``left_out`` and ``lacking`` as of `data_notes`; ``data`` is
    the user's name of the data.
    """
    if sum((lacking or {}).values()) < used:
        return
    counts = rank_reasons({**left_out, **(lacking or {})})
    found = ", ".join(f"{count:,} with {_WORDS[reason].have}" for reason, count in counts)
    raise InputError(
        f"none of the {sum(count for _, count in counts):,} samples has what the recipe needs ({found})",
        where=data,
        fix=f"It needs {_WORDS[counts[0][0]].needed}.",
    )
