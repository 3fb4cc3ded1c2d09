"""The analogy loss, and the sum with hard negatives: against their statement in words, and their limits."""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples

torch = pytest.importorskip("torch", reason="the trainer needs torch")

from tests.training.objectives.random_rows import dot, unit  # noqa: E402


@settings(max_examples=examples(40))
@given(rows=st.integers(1, 5), each=st.integers(0, 3), seed=st.integers(0, 10_000))
def test_image_and_caption_each_find_the_positive_among_those_of_other_rows(rows: int, each: int, seed: int) -> None:
    from pairwright.training.objectives.hard_positives import analogy_loss

    rng = torch.Generator().manual_seed(seed)
    images, texts, positives = unit(rng, rows, 4), unit(rng, rows, 4), unit(rng, rows, each, 4)
    mask = torch.rand(rows, each, generator=rng) < 0.7
    losses = []
    for i in range(rows):
        for p in range(each):
            if not mask[i, p]:
                continue
            halves = []
            for anchor in (images[i].tolist(), texts[i].tolist()):
                own = math.exp(6 * dot(anchor, positives[i, p].tolist()))
                others = [
                    math.exp(6 * dot(anchor, positives[j, q].tolist()))
                    for j in range(rows)
                    for q in range(each)
                    if j != i and mask[j, q]
                ]
                halves.append(-math.log(own / (own + sum(others))))
            losses.append(sum(halves) / 2)
    expected = sum(losses) / len(losses) if losses else 0.0
    assert analogy_loss(images, texts, positives, mask, 6.0).item() == pytest.approx(expected, abs=1e-12)


def test_with_one_positive_each_it_is_the_rows_of_two_contrastive_losses() -> None:
    from pairwright.training.objectives.hard_positives import analogy_loss

    rng = torch.Generator().manual_seed(1)
    images, texts, positives = unit(rng, 5, 4), unit(rng, 5, 4), unit(rng, 5, 1, 4)
    own = torch.arange(5)
    entropy = torch.nn.functional.cross_entropy
    expected = sum(entropy(8 * anchors @ positives[:, 0].T, own) for anchors in (images, texts)) / 2
    loss = analogy_loss(images, texts, positives, torch.ones(5, 1, dtype=torch.bool), 8.0)
    assert loss.item() == pytest.approx(expected.item())


def test_the_order_of_the_positives_of_a_row_does_not_matter() -> None:
    from pairwright.training.objectives.hard_positives import analogy_loss

    rng = torch.Generator().manual_seed(2)
    images, texts, positives = unit(rng, 4, 4), unit(rng, 4, 4), unit(rng, 4, 3, 4)
    mask = torch.tensor([[True, True, False], [True, True, True], [False, False, False], [True, False, False]])
    moved = analogy_loss(images, texts, positives[:, [2, 0, 1]], mask[:, [2, 0, 1]], 8.0)
    assert analogy_loss(images, texts, positives, mask, 8.0).item() == pytest.approx(moved.item())


def test_a_lone_row_with_positives_has_nothing_to_tell_apart() -> None:
    from pairwright.training.objectives.hard_positives import analogy_loss

    rng = torch.Generator().manual_seed(3)
    images, texts, positives = (unit(rng, *shape) for shape in ((3, 4), (3, 4), (3, 2, 4)))
    mask = torch.tensor([[False, False], [True, True], [False, False]])
    assert analogy_loss(images, texts, positives, mask, 8.0).item() == 0


def batch(seed: int) -> Any:
    from pairwright.training.objectives.embeddings import PairEmbeddings

    rng = torch.Generator().manual_seed(seed)
    return PairEmbeddings(
        images=unit(rng, 4, 5),
        texts=unit(rng, 4, 5),
        negatives=unit(rng, 4, 2, 5),
        negatives_mask=torch.tensor([[True, True], [True, False], [False, False], [True, True]]),
        positives=unit(rng, 4, 1, 5),
        positives_mask=torch.tensor([[True], [False], [True], [True]]),
        scale=torch.tensor(10.0),
    )


@pytest.mark.parametrize("weights", [(1.0, 1.0), (0.25, 1.0), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_the_total_is_the_weighted_sum_and_clip_alone_at_weight_0(weights: tuple[float, float]) -> None:
    from pairwright.training.objectives.contrastive import clip_loss
    from pairwright.training.objectives.hard_negatives import hard_negative_loss
    from pairwright.training.objectives.hard_positives import analogy_loss, hp_hn_loss

    given = batch(4)
    clip = clip_loss(given.images, given.texts, 10.0)
    wrong = hard_negative_loss(given.images, given.texts, given.negatives, given.negatives_mask, 10.0)
    right = analogy_loss(given.images, given.texts, given.positives, given.positives_mask, 10.0)
    total = hp_hn_loss(given, negatives=weights[0], positives=weights[1])
    assert total.loss.item() == pytest.approx((clip + weights[0] * wrong + weights[1] * right).item())
    assert {name: part.item() for name, part in total.parts.items()} == {
        "contrastive": clip.item(),
        "negatives": wrong.item(),
        "positives": right.item(),
    }


def test_without_positives_and_negatives_it_is_clip() -> None:
    from pairwright.training.objectives.contrastive import clip_loss
    from pairwright.training.objectives.hard_positives import hp_hn_loss

    given = batch(4)
    none, mask = given.negatives[:, :0], given.negatives_mask[:, :0]
    without = given._replace(negatives=none, negatives_mask=mask, positives=none, positives_mask=mask)
    total = hp_hn_loss(without, negatives=1.0, positives=1.0)
    assert total.loss.item() == clip_loss(given.images, given.texts, 10.0).item()
