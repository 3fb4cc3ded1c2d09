"""The choice among a caption and its hard negatives: against FSC-CLIP, eq. 3-5, 9 and 10, sum by sum."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples

torch = pytest.importorskip("torch", reason="the trainer needs torch")

from tests.training.objectives.random_rows import dot, unit  # noqa: E402

sizes = st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(0, 10_000))


def literal(choices: list[list[float]], mask: list[list[bool]], gamma: float, beta: float) -> float:
    """FSC-CLIP, eq. 9 and 10, over the scores S that rows have."""
    losses = []
    for scores, there in zip(choices, mask, strict=True):
        if not any(there):
            continue
        counted = [scores[0], *(score for score, real in zip(scores[1:], there, strict=True) if real)]
        loss = 0.0
        for place, score in enumerate(counted):
            p = score / sum(counted)
            label = (1 - beta) * (1 if place == 0 else 0) + beta / len(counted)
            loss += (1 - p) ** gamma * -label * math.log(p)
        losses.append(loss)
    return sum(losses) / len(losses) if losses else 0.0


@settings(max_examples=examples(40))
@given(size=sizes)
def test_it_is_the_mean_log_share_of_the_caption_over_rows_with_a_negative(size: tuple[int, int, int]) -> None:
    from pairwright.training.objectives.hard_negatives import hard_negative_loss

    rows, each, seed = size
    rng = torch.Generator().manual_seed(seed)
    images, texts, negatives = unit(rng, rows, 4), unit(rng, rows, 4), unit(rng, rows, each, 4)
    mask = torch.rand(rows, each, generator=rng) < 0.6
    losses = []
    for i in range(rows):
        v = images[i].tolist()
        own = math.exp(dot(v, texts[i].tolist()) * 9)
        wrong = [math.exp(dot(v, negatives[i, k].tolist()) * 9) for k in range(each) if mask[i, k]]
        if wrong:
            losses.append(-math.log(own / (own + sum(wrong))))
    expected = sum(losses) / len(losses) if losses else 0.0
    assert hard_negative_loss(images, texts, negatives, mask, 9.0).item() == pytest.approx(expected, abs=1e-12)


@settings(max_examples=examples(40))
@given(size=sizes, gamma=st.sampled_from([0.0, 0.5, 1.0, 2.0]), beta=st.sampled_from([0.0, 0.02, 0.5, 1.0]))
def test_focal_weight_and_smoothed_labels_are_those_of_the_paper(
    size: tuple[int, int, int], gamma: float, beta: float
) -> None:
    from pairwright.training.objectives.hard_negatives import choice_loss

    rows, each, seed = size
    rng = torch.Generator().manual_seed(seed)
    choices = 3 * torch.randn(rows, 1 + each, generator=rng, dtype=torch.float64)
    mask = torch.rand(rows, each, generator=rng) < 0.6
    expected = literal(choices.exp().tolist(), mask.tolist(), gamma, beta)
    assert choice_loss(choices, mask, focal=gamma, smoothing=beta).item() == pytest.approx(expected, abs=1e-12)


def test_focal_weight_spares_what_is_right_already() -> None:
    from pairwright.training.objectives.hard_negatives import choice_loss

    mask = torch.tensor([[True]])
    easy, hard = torch.tensor([[6.0, 0.0]]), torch.tensor([[0.0, 6.0]])
    spared = [float(choice_loss(row, mask, focal=2.0) / choice_loss(row, mask)) for row in (easy, hard)]
    assert spared[0] < 1e-4
    assert spared[1] > 0.99


def test_smoothing_makes_endless_certainty_cost_something() -> None:
    from pairwright.training.objectives.hard_negatives import choice_loss

    mask = torch.tensor([[True]])
    sure, less = torch.tensor([[50.0, 0.0]]), torch.tensor([[3.0, 0.0]])
    assert choice_loss(sure, mask, smoothing=0.02) > choice_loss(less, mask, smoothing=0.02)
    assert choice_loss(sure, mask) < choice_loss(less, mask)


@pytest.mark.parametrize("focal", [0.0, 0.5, 1.0, 2.0])
def test_certainty_and_rows_without_negatives_have_finite_gradients(focal: float) -> None:
    from pairwright.training.objectives.hard_negatives import choice_loss

    choices = torch.tensor([[900.0, -900.0], [-900.0, 900.0], [1.0, 2.0]], requires_grad=True)
    mask = torch.tensor([[True], [True], [False]])
    loss = choice_loss(choices, mask, focal=focal, smoothing=0.02)
    (slope,) = torch.autograd.grad(loss, choices)
    assert loss.isfinite()
    assert slope.isfinite().all()
    assert (slope[2] == 0).all()


def test_a_row_without_negatives_weighs_nothing_in_the_mean() -> None:
    from pairwright.training.objectives.hard_negatives import choice_loss

    choices = torch.tensor([[1.0, 2.0, 0.5], [1.0, 9.0, 9.0]])
    mask = torch.tensor([[True, True], [False, False]])
    assert choice_loss(choices, mask, focal=2.0, smoothing=0.1) == choice_loss(
        choices[:1], mask[:1], focal=2.0, smoothing=0.1
    )
