"""FocalLens's conditional contrastive loss: against Hsieh's dissertation, eq. 5.1, and its limits."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples

torch = pytest.importorskip("torch", reason="the trainer needs torch")

from tests.training.objectives.random_rows import dot, unit  # noqa: E402


@settings(max_examples=examples(40))
@given(ids=st.lists(st.integers(0, 3), min_size=1, max_size=6), seed=st.integers(0, 10_000), both=st.booleans())
def test_the_own_output_is_compared_with_those_that_differ(ids: list[int], seed: int, both: bool) -> None:  # noqa: FBT001 - hypothesis hands it over
    from pairwright.training.objectives.conditional import conditional_loss

    rng = torch.Generator().manual_seed(seed)
    conditioned, outputs = unit(rng, len(ids), 4), unit(rng, len(ids), 4)
    phi, target = conditioned.tolist(), outputs.tolist()
    rows = range(len(ids))
    scores = [[math.exp(6 * dot(phi[i], target[j])) for j in rows] for i in rows]
    losses = []
    for i in rows:
        others = [j for j in rows if ids[j] != ids[i]]
        losses.append(-math.log(scores[i][i] / (scores[i][i] + sum(scores[i][j] for j in others))))
        if both:
            losses.append(-math.log(scores[i][i] / (scores[i][i] + sum(scores[j][i] for j in others))))
    loss = conditional_loss(conditioned, outputs, 6.0, same=torch.tensor(ids), both_ways=both)
    assert loss.item() == pytest.approx(sum(losses) / len(losses), abs=1e-12)


def test_both_ways_it_is_clip_and_one_way_its_rows() -> None:
    from pairwright.training.objectives.conditional import conditional_loss
    from pairwright.training.objectives.contrastive import clip_loss

    rng = torch.Generator().manual_seed(1)
    conditioned, outputs = unit(rng, 6, 4), unit(rng, 6, 4)
    assert conditional_loss(conditioned, outputs, 9.0, both_ways=True) == clip_loss(conditioned, outputs, 9.0)
    rows = -(9 * conditioned @ outputs.T).log_softmax(dim=1).diagonal().mean()
    assert conditional_loss(conditioned, outputs, 9.0).item() == pytest.approx(rows.item())
    distinct = conditional_loss(conditioned, outputs, 9.0, same=torch.arange(6))
    assert distinct == conditional_loss(conditioned, outputs, 9.0)


def test_turns_of_one_image_that_answer_alike_are_indistinguishable_for_an_unconditioned_model() -> None:
    from pairwright.training.objectives.conditional import conditional_loss

    one_image = unit(torch.Generator().manual_seed(2), 1, 4).repeat(3, 1)
    outputs = unit(torch.Generator().manual_seed(3), 3, 4)
    blind = conditional_loss(one_image, outputs, 9.0)
    assert blind.item() >= math.log(3)
    assert conditional_loss(outputs, outputs, 9.0) < blind


def test_rows_that_all_ask_for_the_same_cost_nothing() -> None:
    from pairwright.training.objectives.conditional import conditional_loss

    conditioned = unit(torch.Generator().manual_seed(4), 3, 4).requires_grad_()
    loss = conditional_loss(conditioned, conditioned.detach(), 9.0, same=torch.zeros(3, dtype=torch.int64))
    assert loss.item() == 0
    assert (torch.autograd.grad(loss, conditioned)[0] == 0).all()
