"""Losses with hard negatives for OpenCLIP's training loop.

OpenCLIP calls ``loss(**model(images, texts), output_dict=True)``, and its towers do not need as many texts as images: a
batch holds the captions, and after them the hard negatives of all rows, any number (`collate_with_negatives`). Every
negative is a wrong text for every image of the batch, as in NegCLIP.

    import open_clip_train.main as script
    script.create_loss = loss_factory("negclip")

With ``--accum-freq`` above 1, OpenCLIP concatenates every output of the model over the accumulated batches, so that
captions and negatives alternate. `mark_negatives` adds an output that says which text is which; it is accumulated like the
features. `openclip_script.py` does all of this for OpenCLIP's own training script.

Written for the interface of open_clip_torch 3.3.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor, nn

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import UsageError
from pairwright.datasets.suggestions import require_known
from pairwright.training.objectives.contrastive import negclip_loss
from pairwright.training.objectives.distributed import Ranks
from pairwright.training.objectives.sigmoid import siglip_hn_loss

LOSSES: Final = ("negclip", "siglip-hn")


class OpenClipLoss(nn.Module):
    """A loss, of `LOSSES`, that OpenCLIP's loop can call; without negatives that of CLIP or SigLIP."""

    def __init__(self, name: str, rank: int = 0, world_size: int = 1) -> None:
        super().__init__()
        require_known("no such loss:", [name], LOSSES)
        self.name, self.ranks = name, Ranks(rank, world_size)

    def forward(  # noqa: PLR0913 - as OpenCLIP calls it
        self,
        image_features: Tensor,
        text_features: Tensor,
        logit_scale: Tensor,
        logit_bias: Tensor | None = None,
        *,
        is_negative: Tensor | None = None,
        output_dict: bool = False,
    ) -> Tensor | dict[str, Tensor]:
        """Return the loss of this rank's rows among those of all ranks; its mean over ranks is that of the whole batch.

        Args:
            image_features: float (b, d), rows of unit length.
            text_features: float (b + m, d), rows of unit length: captions in the order of the images, and negatives.
            logit_scale: 1 / temperature.
            logit_bias: of SigLIP.
            is_negative: bool (b + m,), as of `mark_negatives`; None: the captions come first.
            output_dict: return ``{"contrastive_loss": loss}``.

        Raises:
            UsageError: not as many captions as images, or ``siglip-hn`` for a model without a bias.
        """
        own = len(image_features)
        wrong = _after(own, text_features) if is_negative is None else is_negative
        captions, negatives = text_features[~wrong], text_features[wrong].unsqueeze(1)
        if len(captions) != own:
            raise UsageError(
                f"{count_phrase(len(text_features), 'text')}, {len(captions)} of them captions, for {count_phrase(own, 'image')}: give a caption for each "
                "image, then the negatives"
            )
        mask = torch.ones(negatives.shape[:2], dtype=torch.bool, device=negatives.device)
        ranks = self.ranks.agree(max(own, len(negatives)), negatives.device)
        given = (image_features, captions, negatives, mask, logit_scale)
        if self.name == "negclip":
            loss = negclip_loss(*given, ranks)
        elif logit_bias is None:
            raise UsageError("siglip-hn requires a model with a bias: create it with init_logit_bias (--siglip)")
        else:
            loss = siglip_hn_loss(*given, logit_bias, ranks)
        return {"contrastive_loss": loss} if output_dict else loss


def _after(count: int, texts: Tensor) -> Tensor:
    """Return which texts come after the first ``count``, bool (n,)."""
    return torch.arange(len(texts), device=texts.device) >= count


def mark_negatives(model: nn.Module) -> nn.Module:
    """Make a model of OpenCLIP return ``is_negative`` beside its features: which texts come after those of the images.

    Args:
        model: called with images (b, 3, h, w) and tokens (b + m, t), returns a dictionary (``output_dict``). Changed.
    """

    def add(_: nn.Module, inputs: tuple[Any, ...], output: dict[str, Tensor]) -> dict[str, Tensor]:
        return {**output, "is_negative": _after(len(inputs[0]), output["text_features"])}

    model.register_forward_hook(add)
    return model


def loss_factory(name: str, *, marked: bool = False) -> Callable[[Any], OpenClipLoss]:
    """Return a function that makes a loss from OpenCLIP's arguments, to be used for ``create_loss``.

    ``marked``: whether the model is one of `mark_negatives`, which ``--accum-freq`` above 1 requires.
    """

    def create_loss(args: Any) -> OpenClipLoss:
        if args.accum_freq > 1 and not marked:
            raise UsageError(
                f"--accum-freq {args.accum_freq}: accumulated batches mix captions and negatives. Use mark_negatives(model) "
                "and loss_factory(..., marked=True), as pairwright.training.objectives.openclip_script does."
            )
        return OpenClipLoss(name, args.rank, args.world_size)

    return create_loss


def texts_of_sample(caption: str, row: Mapping[str, Any], limit: int = 1) -> list[str]:
    """Return the caption of a shard's sample, and the first hard negatives of its JSON member.

    ``caption`` and ``row`` are its ``txt`` and ``json`` members; ``limit``: hard negatives, at most.
    """
    return [caption, *(negative["text"] for negative in row["hard_negatives"][:limit])]


def collate_with_negatives(samples: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    """Return a batch for `OpenClipLoss`.

    Args:
        samples: image (3, h, w), and the tokens (1 + k, t) of `texts_of_sample`; k differs between samples.

    Returns:
        Images (b, 3, h, w), and tokens (b + m, t): the captions, then the negatives of all samples.
    """
    images, texts = zip(*samples, strict=True)
    captions, negatives = [each[:1] for each in texts], [each[1:] for each in texts]
    return torch.stack(images), torch.cat([*captions, *negatives])
