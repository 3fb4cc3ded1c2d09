"""Why samples are left out or lack something, in words, and the refusal of data of which nothing can be used."""

from collections.abc import Mapping
from typing import NamedTuple

from pairwright.datasets.errors import InputError
from pairwright.training.loading.sample_order import SampleOrder
from pairwright.training.loading.samples import SampleIndex


class _Wording(NamedTuple):
    """What samples with a reason have, and what data needs in place of it."""

    have: str
    needed: str


_IMAGES = "an image each, which this recipe looks at. Give shards that hold images"
_NEGATIVES = "hard negatives. Make them by a build with the section negatives, or have them made online"
_POSITIVES = "hard positives. Make them by a build with the section positives"
_BOTH = "hard negatives and hard positives. Make them by a build with the sections negatives and positives"
_CONVERSATIONS = "of method.types, where given). Make them by a build with the section conversations"
_RATIONALES = "a rationale of this split. Make them by a build with the section rationales"

_WORDS = {
    "missing_image": _Wording("no image", _IMAGES),
    "missing_caption": _Wording("no caption", "a caption each, as .txt. Give shards that hold captions"),
    "duplicate_member": _Wording("two members of one kind", "one image and one caption each. Write the shards again"),
    "broken_json": _Wording("no readable JSON", "readable JSON. Write the shards again"),
    "no_hard_negatives": _Wording("no hard negative", _NEGATIVES),
    "no_hard_positives": _Wording("no hard positive", _POSITIVES),
    "no_hard_texts": _Wording("no hard negative and no hard positive", _BOTH),
    "no_triplets": _Wording("no question with an answer", f"a question with its answer ({_CONVERSATIONS}"),
    "no_conversations": _Wording("no conversation", f"a conversation ({_CONVERSATIONS}"),
    "no_rationales": _Wording("no rationale or label of this split", _RATIONALES),
}


def data_notes(left_out: Mapping[str, int], lacking: Mapping[str, int], order: SampleOrder, unit: str) -> list[str]:
    """Return in sentences what differs from data in which every sample is used and complete; empty for such data.

    Args:
        left_out: samples that are not used, by reason.
        lacking: samples that are used without texts of some kind, by reason.
        order: of the epoch.
        unit: what the order counts, in the plural.
    """
    lines = [
        f"{count:,} samples have {_WORDS[reason].have} and are left out." for reason, count in _most_common(left_out)
    ]
    lines += [
        f"{count:,} of {order.samples:,} samples have {_WORDS[reason].have}, and are trained on without."
        for reason, count in _most_common(lacking)
    ]
    largest = -(-order.samples // order.steps)
    if order.ends == "even" and largest < order.together:
        steps = "step" if order.steps == 1 else "steps"
        lines.append(
            f"Steps take {largest:,} {unit}, not {order.together:,}: {order.samples:,} {unit} are divided evenly over "
            f"{order.steps:,} {steps} an epoch."
        )
    return lines


def check_usable(index: SampleIndex, lacking: Mapping[str, int], data: str) -> None:
    """Refuse data of which nothing can be used.

    Args:
        index: of the data.
        lacking: samples that have none of the texts that the recipe takes, by reason.
        data: as the user gave it, for the message.

    Raises:
        InputError: every sample is left out, or lacks what the recipe takes.
    """
    if sum(lacking.values()) < sum(index.counts):
        return
    counts = _most_common({**index.left_out, **lacking})
    found = ", ".join(f"{count:,} with {_WORDS[reason].have}" for reason, count in counts)
    raise InputError(
        f"none of the {sum(count for _, count in counts):,} samples holds what the recipe needs ({found})",
        where=data,
        fix=f"It needs {_WORDS[counts[0][0]].needed}.",
    )


def _most_common(counts: Mapping[str, int]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))
