"""Losses with hard negatives, called as OpenCLIP's training loop calls them."""

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")

from torch import nn  # noqa: E402

from pairwright.datasets.errors import UsageError  # noqa: E402
from pairwright.training.objectives.contrastive import clip_loss, negclip_loss  # noqa: E402
from pairwright.training.objectives.openclip import (  # noqa: E402
    OpenClipLoss,
    collate_with_negatives,
    loss_factory,
    mark_negatives,
    texts_of_sample,
)
from pairwright.training.objectives.sigmoid import siglip_hn_loss, siglip_loss  # noqa: E402
from tests.training.training_cases import shards  # noqa: E402

ARGS = Namespace(rank=0, world_size=1, accum_freq=1)


def rows(count: int, seed: int) -> Any:
    drawn = torch.randn(count, 6, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(drawn, dim=1)


def test_texts_after_the_captions_are_negatives_of_all_images() -> None:
    images, texts, negatives = rows(3, 0), rows(3, 1), rows(2, 2)
    out = {"image_features": images, "text_features": torch.cat([texts, negatives]), "logit_scale": torch.tensor(9.0)}
    padded = torch.cat([negatives, torch.zeros(1, 6)]).unsqueeze(1)  # one per row; the last has none
    mask = torch.tensor([[True], [True], [False]])
    found = loss_factory("negclip")(ARGS)(**out, output_dict=True)
    assert found.keys() == {"contrastive_loss"}
    assert torch.allclose(found["contrastive_loss"], negclip_loss(images, texts, padded, mask, 9.0))
    biased = OpenClipLoss("siglip-hn")(**out, logit_bias=torch.tensor(-2.0))
    assert torch.allclose(biased, siglip_hn_loss(images, texts, padded, mask, 9.0, -2.0))


def test_without_negatives_they_are_clip_and_siglip() -> None:
    images, texts, scale, bias = rows(4, 0), rows(4, 1), torch.tensor(9.0), torch.tensor(-2.0)
    assert torch.allclose(OpenClipLoss("negclip")(images, texts, scale), clip_loss(images, texts, scale))
    found = OpenClipLoss("siglip-hn")(images, texts, scale, bias)
    assert torch.allclose(found, siglip_loss(images, texts, scale, bias))


def test_a_batch_of_shards_has_the_captions_first(tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset")
    dataset = webdataset.WebDataset(shards(tmp_path / "shards", count=8), shardshuffle=False)
    samples = []
    for sample in dataset:
        texts = texts_of_sample(sample["txt"].decode(), json.loads(sample["json"]), limit=2)
        samples.append((torch.zeros(3, 2, 2), torch.tensor([[len(text), hash(text) % 1000] for text in texts]), texts))
    images, tokens = collate_with_negatives([(image, ids) for image, ids, _ in samples])
    flat = [texts[0] for *_, texts in samples] + [text for *_, texts in samples for text in texts[1:]]
    assert len(images) == 8
    assert tokens.tolist() == [[len(text), hash(text) % 1000] for text in flat]
    assert len(flat) > 8


class Towers(nn.Module):
    """Two linear towers, called and answering as OpenCLIP's model with ``output_dict``."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.image, self.text = torch.nn.Linear(5, 6), torch.nn.Linear(4, 6)

    def forward(self, images: Any, texts: Any) -> dict[str, Any]:
        """Return unit features and the scale."""
        features = [torch.nn.functional.normalize(each, dim=1) for each in (self.image(images), self.text(texts))]
        return {"image_features": features[0], "text_features": features[1], "logit_scale": torch.tensor(9.0)}

    def gradients(self) -> list[Any]:
        """Return the gradients of all parameters."""
        return [each.grad.clone() for each in self.parameters() if each.grad is not None]


def test_accumulated_batches_have_the_gradient_of_one_batch() -> None:
    """``--accum-freq 2`` of batches with 2 and 3 negatives, as `train_one_epoch` accumulates."""
    model, loss = Towers(), loss_factory("negclip", marked=True)(Namespace(**{**vars(ARGS), "accum_freq": 2}))
    drawn = [(torch.randn(3, 5), torch.randn(3 + negatives, 4)) for negatives in (2, 3)]
    captions, negatives = [texts[:3] for _, texts in drawn], [texts[3:] for _, texts in drawn]
    one_batch = torch.cat([images for images, _ in drawn]), torch.cat([*captions, *negatives])
    loss(**model(*one_batch)).backward()
    expected = model.gradients()

    model = Towers()
    mark_negatives(model)
    with torch.no_grad():
        kept = [model(*batch) for batch in drawn]
    for number, batch in enumerate(drawn):
        outputs = [*kept[:number], model(*batch), *kept[number + 1 :]]
        scale = outputs[number]["logit_scale"]
        inputs = {name: torch.cat([each[name] for each in outputs]) for name in kept[0] if name != "logit_scale"}
        loss(**inputs, logit_scale=scale, output_dict=True)["contrastive_loss"].backward()
    for found, right in zip(model.gradients(), expected, strict=True):
        torch.testing.assert_close(found, right)


def test_what_cannot_work_is_refused() -> None:
    with pytest.raises(UsageError, match="negclip"):
        OpenClipLoss("neg-clip")
    with pytest.raises(UsageError, match="accum-freq 2"):
        loss_factory("negclip")(Namespace(rank=0, world_size=1, accum_freq=2))
    with pytest.raises(UsageError, match="bias"):
        OpenClipLoss("siglip-hn")(rows(2, 0), rows(2, 1), torch.tensor(1.0))
    with pytest.raises(UsageError, match="1 text, 1 of them captions, for 2 images"):
        OpenClipLoss("negclip")(rows(2, 0), rows(1, 1), torch.tensor(1.0))


def test_openclips_own_loop_trains_with_it() -> None:
    open_clip = pytest.importorskip("open_clip", reason="open_clip_torch is not installed (it brings torchvision)")
    loop = pytest.importorskip("open_clip_train.train", reason="open_clip_torch is not installed")
    vision = open_clip.CLIPVisionCfg(layers=1, width=32, head_width=16, patch_size=8, image_size=16)
    text = open_clip.CLIPTextCfg(context_length=8, vocab_size=20, width=32, heads=2, layers=1)
    model = open_clip.model.CLIP(16, vision, text, output_dict=True)
    images, tokens = torch.randn(3, 3, 16, 16), torch.randint(1, 20, (5, 8))
    out = model(images, tokens[:3])
    assert torch.allclose(loss_factory("negclip")(ARGS)(**out), open_clip.ClipLoss()(**out))

    class Loader(list[Any]):
        num_batches, num_samples = 2, 6

    data = Namespace(dataloader=Loader([(images, tokens)] * 2), set_epoch=lambda _: None)
    args = Namespace(**vars(ARGS), device="cpu", precision="fp32", distill=False, skip_scheduler=True, horovod=False)
    args.__dict__ |= {"grad_clip_norm": None, "local_rank": 0, "log_local": False, "log_every_n_steps": 1}
    args.__dict__ |= {"batch_size": 3, "wandb": False}
    before = model.text_projection.detach().clone()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    loop.train_one_epoch(model, {"train": data}, loss_factory("negclip")(args), 0, optimizer, None, None, None, args)
    assert not torch.equal(before, model.text_projection)
