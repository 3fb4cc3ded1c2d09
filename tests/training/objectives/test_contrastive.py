"""CLIP's loss: against its definition, sum by sum."""

import math

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")


def test_it_is_the_mean_log_share_of_the_own_partner_in_both_directions() -> None:
    from pairwright.training.objectives.contrastive import clip_loss

    rng = torch.Generator().manual_seed(0)
    images, texts = (
        torch.nn.functional.normalize(torch.randn(5, 4, generator=rng, dtype=torch.float64), dim=1) for _ in range(2)
    )
    similar = (7.0 * images @ texts.T).tolist()
    rows = [-math.log(math.exp(similar[i][i]) / sum(map(math.exp, similar[i]))) for i in range(5)]
    columns = [-math.log(math.exp(similar[i][i]) / sum(math.exp(row[i]) for row in similar)) for i in range(5)]
    assert clip_loss(images, texts, 7.0).item() == pytest.approx(sum(rows + columns) / 10)
    assert torch.autograd.gradcheck(
        lambda one, other: clip_loss(one, other, 7.0), (images.requires_grad_(), texts.requires_grad_())
    )
