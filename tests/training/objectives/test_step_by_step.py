"""Distilling step-by-step: against Hsieh's dissertation, eq. 2.1 and 2.3-2.5, and its limits."""

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")


def written(seed: int, lengths: list[int]) -> Any:
    from pairwright.training.objectives.step_by_step import WrittenTexts

    rng = torch.Generator().manual_seed(seed)
    rows, width = len(lengths), max(lengths)
    logits = torch.randn(rows, width, 6, generator=rng, dtype=torch.float64)
    tokens = torch.randint(6, (rows, width), generator=rng)
    return WrittenTexts(logits, tokens, torch.arange(width) < torch.tensor(lengths).unsqueeze(1))


def literal(given: Any) -> float:
    """Hsieh's dissertation, eq. 2.1, over rows that have tokens."""
    examples = []
    for logits, tokens, counted in zip(given.logits, given.tokens, given.counted, strict=True):
        losses = []
        for place in range(len(tokens)):
            if counted[place]:
                each = [math.exp(value) for value in logits[place].tolist()]
                losses.append(-math.log(each[tokens[place]] / sum(each)))
        if losses:
            examples.append(sum(losses) / len(losses))
    return sum(examples) / len(examples)


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0, 3.0])
def test_two_tasks_are_the_label_s_loss_and_lambda_times_the_rationale_s(weight: float) -> None:
    from pairwright.training.objectives.step_by_step import multi_task_loss

    labels, rationales = written(0, [1, 2, 1, 1]), written(1, [5, 0, 9, 2])
    total = multi_task_loss(labels, rationales, weight)
    expected = {"label": literal(labels), "rationale": literal(rationales)}
    assert {name: part.item() for name, part in total.parts.items()} == pytest.approx(expected)
    assert total.loss.item() == pytest.approx(expected["label"] + weight * expected["rationale"])


def test_at_lambda_0_the_rationales_have_no_effect() -> None:
    from pairwright.training.objectives.step_by_step import multi_task_loss, written_loss

    labels, rationales = written(0, [1, 2]), written(1, [4, 3])
    rationales.logits.requires_grad_()
    loss = multi_task_loss(labels, rationales, 0.0).loss
    assert loss.item() == written_loss(labels).item()
    assert (torch.autograd.grad(loss, rationales.logits)[0] == 0).all()


def test_without_any_rationale_it_is_standard_finetuning() -> None:
    from pairwright.training.objectives.step_by_step import WrittenTexts, multi_task_loss, written_loss

    labels, some = written(0, [1, 2]), written(1, [4, 3])
    none = WrittenTexts(some.logits, some.tokens, torch.zeros_like(some.counted))
    assert multi_task_loss(labels, none).loss.item() == written_loss(labels).item()


def test_one_task_spreads_its_weight_over_rationale_and_label() -> None:
    from pairwright.training.objectives.step_by_step import WrittenTexts, written_loss

    rationale, label = written(2, [6, 6]), written(3, [2, 2])
    pairs = zip(
        (rationale.logits, rationale.tokens, rationale.counted),
        (label.logits, label.tokens, label.counted),
        strict=True,
    )
    joined = WrittenTexts(*(torch.cat(pair, dim=1) for pair in pairs))
    loss = written_loss(joined).item()
    assert loss == pytest.approx(literal(joined))
    assert loss == pytest.approx((6 * written_loss(rationale).item() + 2 * written_loss(label).item()) / 8)


def test_targets_may_hold_any_number_at_padding() -> None:
    from pairwright.training.objectives.step_by_step import WrittenTexts, written_loss

    given = written(4, [3, 1, 0])
    tokens = given.tokens.masked_fill(~given.counted, -100)
    assert written_loss(WrittenTexts(given.logits, tokens, given.counted)) == written_loss(given)
