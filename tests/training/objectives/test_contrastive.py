"""CLIP's and NegCLIP's losses against their definitions, term by term."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples

torch = pytest.importorskip("torch", reason="the trainer needs torch")

from tests.training.objectives.random_rows import dot, unit  # noqa: E402


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


@settings(max_examples=examples(40))
@given(rows=st.integers(1, 5), each=st.integers(0, 3), seed=st.integers(0, 10_000))
def test_negclip_has_all_captions_and_all_negatives_as_candidates_of_each_image(
    rows: int, each: int, seed: int
) -> None:
    from pairwright.training.objectives.contrastive import negclip_loss

    rng = torch.Generator().manual_seed(seed)
    images, texts, negatives = unit(rng, rows, 4), unit(rng, rows, 4), unit(rng, rows, each, 4)
    mask = torch.rand(rows, each, generator=rng) < 0.6
    v, t = images.tolist(), texts.tolist()
    wrong = [negatives[i, k].tolist() for i in range(rows) for k in range(each) if mask[i, k]]
    to_text = to_image = 0.0
    for i in range(rows):
        own = math.exp(7 * dot(v[i], t[i]))
        to_text -= math.log(own / sum(math.exp(7 * dot(v[i], text)) for text in [*t, *wrong]))
        to_image -= math.log(own / sum(math.exp(7 * dot(image, t[i])) for image in v))
    expected = (to_text + to_image) / (2 * rows)
    assert negclip_loss(images, texts, negatives, mask, 7.0).item() == pytest.approx(expected, abs=1e-12)


def test_negclip_without_negatives_is_clip() -> None:
    from pairwright.training.objectives.contrastive import clip_loss, negclip_loss

    rng = torch.Generator().manual_seed(1)
    images, texts, negatives = unit(rng, 6, 4), unit(rng, 6, 4), unit(rng, 6, 2, 4)
    none = torch.zeros(6, 2, dtype=torch.bool)
    assert negclip_loss(images, texts, negatives, none, 20.0) == clip_loss(images, texts, 20.0)


def test_negclip_of_one_row_is_half_the_hard_negative_loss() -> None:
    from pairwright.training.objectives.contrastive import negclip_loss
    from pairwright.training.objectives.hard_negatives import hard_negative_loss

    rng = torch.Generator().manual_seed(2)
    given = unit(rng, 1, 4), unit(rng, 1, 4), unit(rng, 1, 3, 4), torch.tensor([[True, False, True]])
    assert negclip_loss(*given, 5.0).item() == pytest.approx(hard_negative_loss(*given, 5.0).item() / 2)
