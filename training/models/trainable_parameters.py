"""What each model trains, and what stays as it was: one table, and the function that puts it into effect.

A pattern is matched against the names of the model's parameters (`fnmatch`). The sources:

- ``clip`` and all that train the whole of CLIP (NegCLIP, HP+HN, FSC-CLIP without LoRA): 002, section 3.1.
- ``clip-locked-text``: 003, chapter 2, table 2.6 ("Locked-Text").
- ``react``: only the gated blocks (theta prime in eq. 2.4); the temperature is a hyper-parameter there.
- ``focallens-clip``: T of eq. 5.1 is frozen; the image tower and the instructions' own text tower learn (000, section 5.3).
- ``focallens-mllm``: after LLaVA, whose vision tower stays frozen, with the frozen text tower of a CLIP as target.
- ``llava-align`` and ``llava-instruct``: the two stages of 003, section 3.4.
- ``lora``: the low-rank matrices alone.
- ``step-by-step``: the whole T5 (000, section 2.4).
"""

from dataclasses import dataclass
from fnmatch import fnmatchcase

from torch import nn

from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import require_known

TRAINABLE: dict[str, tuple[str, ...]] = {
    "clip": ("network.*",),
    "clip-locked-text": ("network.vision_model.*", "network.visual_projection.*", "network.logit_scale"),
    "lora": ("*.lora_[AB].*",),
    "react": ("blocks.*",),
    "focallens-clip": (
        "network.vision_model.*",
        "network.visual_projection.*",
        "network.logit_scale",
        "instructions.*",
        "condition.*",
    ),
    "focallens-mllm": ("llava.projection.*", "llava.language.*", "head.*", "logit_scale"),
    "llava-align": ("projection.*",),
    "llava-instruct": ("projection.*", "language.*"),
    "step-by-step": ("network.*",),
}


@dataclass(frozen=True, slots=True)
class ParameterCounts:
    """How many numbers are trained, and how many are frozen."""

    trained: int
    frozen: int


def train_only(model: nn.Module, what: str | tuple[str, ...]) -> ParameterCounts:
    """Let gradients reach the parameters that ``what`` names, and no others.

    Args:
        model: any of this room.
        what: a row of `TRAINABLE`, or patterns.

    Returns:
        The count of parameters on each side.

    Raises:
        UsageError: when there is no such row, or a pattern matches nothing: it would freeze in silence.
    """
    if isinstance(what, str):
        require_known("nothing is known of training", [what], TRAINABLE)
    patterns = TRAINABLE[what] if isinstance(what, str) else what
    names = [name for name, _ in model.named_parameters()]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UsageError(f"{type(model).__name__} has no parameter {pattern}: is it the model for {what!r}?")
    for name, parameter in model.named_parameters():
        parameter.requires_grad_(any(fnmatchcase(name, pattern) for pattern in patterns))
    return count_parameters(model)


def count_parameters(model: nn.Module) -> ParameterCounts:
    """Count the parameters of ``model`` that are trained, and those that are frozen."""
    sizes = {True: 0, False: 0}
    for parameter in model.parameters():
        sizes[parameter.requires_grad] += parameter.numel()
    return ParameterCounts(sizes[True], sizes[False])
