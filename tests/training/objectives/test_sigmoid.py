"""SigLIP's loss against its definition, term by term, and against transformers."""

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")


def rows(*shape: int, seed: int = 0) -> Any:
    drawn = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.nn.functional.normalize(drawn, dim=-1)


def test_each_image_decides_for_each_text_and_each_hard_negative() -> None:
    from pairwright.training.objectives.contrastive import siglip_hn_loss

    images, texts, negatives = rows(3, 4), rows(3, 4, seed=1), rows(3, 2, 4, seed=2)
    mask = torch.tensor([[True, False], [True, True], [False, False]])
    total = 0.0
    for at, image in enumerate(images):
        shown = [(text, at == place) for place, text in enumerate(texts)] + [(text, False) for text in negatives[mask]]
        for text, matches in shown:
            logit = 5.0 * float(image @ text) - 3.0
            total += math.log(1 + math.exp(-logit if matches else logit))
    assert siglip_hn_loss(images, texts, negatives, mask, 5.0, -3.0).item() == pytest.approx(total / 3)


def test_without_negatives_it_is_the_loss_of_transformers() -> None:
    from transformers import SiglipConfig, SiglipModel

    from pairwright.training.objectives.contrastive import siglip_hn_loss, siglip_loss

    small = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    text = {**small, "vocab_size": 10, "max_position_embeddings": 4, "projection_size": 8}
    text |= {"bos_token_id": 1, "eos_token_id": 2}
    network = SiglipModel(SiglipConfig(text_config=text, vision_config={**small, "image_size": 8, "patch_size": 4}))
    with torch.no_grad():
        network.logit_scale.fill_(1.5)
        network.logit_bias.fill_(-1.0)
        ids = torch.randint(3, 10, (3, 4), generator=torch.Generator().manual_seed(0))
        out = network(input_ids=ids, pixel_values=torch.randn(3, 3, 8, 8), return_loss=True)
    found = siglip_loss(out.image_embeds, out.text_embeds, math.exp(1.5), -1.0)
    assert found.item() == pytest.approx(out.loss.item(), rel=1e-5)
    none = (torch.randn(3, 1, 8), torch.zeros(3, 1, dtype=torch.bool))
    assert siglip_hn_loss(out.image_embeds, out.text_embeds, *none, math.exp(1.5), -1.0).item() == found.item()
