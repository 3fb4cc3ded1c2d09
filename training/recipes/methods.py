"""Settings of the objectives, one class each. Imports no torch; what they do is in `preparation.py`.

A new objective is a class here and in `schema.py`, a case in `preparation.py` and a YAML file.
"""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from pairwright.training.recipes.sections import LoraSettings, OnlineNegativeSettings, RecipeSection


class Method(RecipeSection):
    """The ``method`` section of a recipe."""

    compares_samples: ClassVar[bool] = False
    """Whether the loss compares the samples of a step, so that a batch needs two or more."""
    loss_parts: ClassVar[tuple[str, ...]] = ()
    """Names of the loss's parts, which are columns of the log."""


class PairMethod(Method):
    """An objective over image-text pairs: rows are embedded separately and compared afterwards, in batches of one shape."""

    local_features: ClassVar[bool] = False
    """Whether the loss also compares patches and tokens."""


class TowerMethod(PairMethod):
    """An objective that finetunes CLIP's towers, whole or by LoRA."""

    lora: LoraSettings | None = None
    locked_text: bool = Field(default=False, description="Freeze the text tower.")

    @model_validator(mode="after")
    def _one_share(self) -> Self:
        if self.lora and self.locked_text:
            raise ValueError("`lora` and `locked_text` are mutually exclusive")
        return self


class SiglipTowerMethod(PairMethod):
    """An objective that finetunes SigLIP's towers."""

    locked_text: bool = Field(default=False, description="Freeze the text tower.")


class HardNegativesMethod(PairMethod):
    """Settings of objectives with hard negatives, of the shards or generated during training."""

    negatives: int = Field(1, ge=1, description="Maximum per row; each epoch draws again.")
    online: OnlineNegativeSettings | None = None


class ClipMethod(TowerMethod):
    """Match images and captions (CLIP, section 2.3)."""

    kind: Literal["clip"]
    compares_samples: ClassVar[bool] = True


class NegClipMethod(HardNegativesMethod, TowerMethod):
    """CLIP with the hard negatives of all rows among each image's texts (ARO, section 4)."""

    kind: Literal["negclip"]


class HardPositivesMethod(TowerMethod):
    """CLIP with one loss for hard negatives and one for hard positives (The Hard Positive Truth, section 5.1, appendix D.1)."""

    kind: Literal["hp-hn"]
    loss_parts: ClassVar[tuple[str, ...]] = ("contrastive", "negatives", "positives")
    negatives: int = Field(1, ge=1, description="Maximum per row.")
    positives: int = Field(1, ge=1, description="Maximum per row.")
    negatives_weight: float = Field(1.0, ge=0, description="Of the hard-negative loss; table 3 goes from 0 to 1.")
    positives_weight: float = Field(1.0, ge=0, description='Of the analogy loss; 0: hard negatives alone ("HN").')


class FscClipMethod(HardNegativesMethod, TowerMethod):
    """CLIP with global and local hard-negative losses, focal and with smoothed labels (FSC-CLIP, section 3.4, eq. 11)."""

    kind: Literal["fsc-clip"]
    local_features: ClassVar[bool] = True
    loss_parts: ClassVar[tuple[str, ...]] = ("contrastive", "whole", "local")
    negatives: int = Field(3, ge=1, description="Maximum per row.")
    whole_weight: float = Field(0.5, ge=0, description="lambda_g, of the loss over whole texts.")
    local_weight: float = Field(0.2, ge=0, description="lambda_l, of the loss over tokens.")
    focal: float = Field(2.0, ge=0, description="gamma, eq. 9.")
    smoothing: float = Field(0.02, ge=0, le=1, description="beta, eq. 10.")


class SiglipMethod(SiglipTowerMethod):
    """Decide for each image and caption of a batch whether they match (SigLIP, section 3.2)."""

    kind: Literal["siglip"]
    compares_samples: ClassVar[bool] = True


class SiglipHnMethod(HardNegativesMethod, SiglipTowerMethod):
    """SigLIP with the hard negatives of all rows as texts that match no image."""

    kind: Literal["siglip-hn"]


class ReactMethod(PairMethod):
    """Gated blocks in a frozen CLIP; retrieved pairs with similar texts are positives of each other (Liu, chapter 2)."""

    kind: Literal["react"]
    compares_samples: ClassVar[bool] = True
    blocks: int = Field(6, ge=1, description="Gated blocks, before the last layers of the image tower.")
    threshold: float = Field(
        0.9, ge=-1, le=2, description="gamma, eq. 2.5 and 2.6: minimum cosine of similar texts; above 1: CLIP's loss."
    )


class FocalLensMethod(Method):
    """Settings of both FocalLens models: an image under an instruction retrieves its answer (Hsieh, chapter 5)."""

    turns: int = Field(0, ge=0, description="Maximum per sample in a batch; 0: all.")
    types: tuple[str, ...] = Field((), description="Conversation types; empty: all.")
    both_ways: bool = Field(default=False, description="Also retrieve image and instruction by the answer.")


class FocalLensClipMethod(FocalLensMethod):
    """A CLIP whose image tower reads a token of the instruction (eq. 5.1)."""

    kind: Literal["focallens-clip"]


class FocalLensMllmMethod(FocalLensMethod):
    """A LLaVA whose state after image and instruction is the image embedding."""

    kind: Literal["focallens-mllm"]
    target: str = Field(
        "", description="CLIP that embeds the answers; empty: --model is a FocalLens-MLLM with its own."
    )
