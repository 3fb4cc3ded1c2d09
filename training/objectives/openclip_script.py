r"""OpenCLIP's training script with hard negatives from the JSON members of shards.

    python -m pairwright.training.objectives.openclip_script --loss negclip --negatives 1 -- \
        --dataset-type webdataset --train-data 'shards/{00000..00004}.tar' --model ViT-B-32 --batch-size 64

Behind ``--`` are the arguments of ``open_clip_train.main``, which runs unchanged but for three of its parts: the loss, the
model, which says which texts are negatives, and the last steps of the data pipeline, which tokenize the negatives too.
Written for open_clip_torch 3.3. Its own environment needs torch, open_clip_torch[training] and this package's folder on
``PYTHONPATH``.
"""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from torch import Tensor

from pairwright.datasets.errors import UsageError
from pairwright.training.objectives.openclip import (
    LOSSES,
    collate_with_negatives,
    loss_factory,
    mark_negatives,
    texts_of_sample,
)

_LAST_STEPS: Final = ("_map_dict", "_to_tuple", "_batched")  # of OpenCLIP's pipeline: tokenize, select, batch


def main(argv: Sequence[str]) -> None:
    """Train."""
    given = list(argv)
    at = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loss", choices=LOSSES, default="negclip", help="siglip-hn also requires --siglip behind --")
    parser.add_argument("--negatives", type=int, default=1, help="hard negatives of an image, at most")
    args = parser.parse_args(given[:at])
    import open_clip_train.main as script
    from open_clip_train import data

    script.create_loss = loss_factory(args.loss, marked=True)
    script.create_model_and_transforms = partial(_marked_model, script.create_model_and_transforms)
    data.get_wds_dataset = partial(_with_negatives, data.get_wds_dataset, args.negatives)
    script.main(given[at + 1 :])


def _marked_model(create: Callable[..., tuple[Any, ...]], *args: Any, **options: Any) -> tuple[Any, ...]:
    model, *transforms = create(*args, **options)
    return (mark_negatives(model), *transforms)


def _with_negatives(
    get_dataset: Callable[..., Any], limit: int, args: Any, preprocess_img: Callable[[Any], Tensor], **options: Any
) -> Any:
    """Return OpenCLIP's dataset; batches for training have the texts of `collate_with_negatives`."""
    import webdataset

    info, tokenizer = get_dataset(args, preprocess_img, **options), options["tokenizer"]
    if not options["is_train"]:
        return info
    steps = info.dataloader.pipeline[0].dataset.pipeline
    found = tuple(getattr(getattr(step, "f", None), "__name__", "") for step in steps[-len(_LAST_STEPS) :])
    if found != _LAST_STEPS:
        raise UsageError(
            f"the data pipeline of this OpenCLIP ends in {', '.join(found)} instead of {', '.join(_LAST_STEPS)}. Use "
            "open_clip_torch 3.3 with webdataset 0.2.86."
        )

    def encode(sample: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
        return preprocess_img(sample["image"]), tokenizer(texts_of_sample(sample["text"], sample["json"], limit))

    batched = webdataset.batched(args.batch_size, partial=False, collation_fn=collate_with_negatives)
    steps[-len(_LAST_STEPS) :] = [webdataset.map(encode), batched]
    return info


if __name__ == "__main__":
    main(sys.argv[1:])
