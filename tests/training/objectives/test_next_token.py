"""LLaVA's next-token loss: against Liu's dissertation, eq. 3.3, and what does not count."""

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")

# Table 3.2: a question, an answer and its stop mark, twice; the second row is shorter.
COUNTED = torch.tensor([[0, 0, 0, 1, 1, 1, 0, 0, 1, 1], [0, 0, 1, 1, 0, 0, 0, 0, 0, 0]], dtype=torch.bool)


def drawn(seed: int = 0) -> tuple[Any, Any]:
    rng = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, 10, 7, generator=rng, dtype=torch.float64)
    return logits, torch.randint(7, (2, 10), generator=rng)


def test_it_is_the_product_of_the_probabilities_of_answers_and_stop_marks() -> None:
    from pairwright.training.objectives.next_token import next_token_loss

    logits, tokens = drawn()
    product, places = 1.0, 0
    for row in range(2):
        for i in range(1, 10):
            if COUNTED[row, i]:
                before = [math.exp(value) for value in logits[row, i - 1].tolist()]
                product *= before[tokens[row, i]] / sum(before)
                places += 1
    assert next_token_loss(logits, tokens, COUNTED).item() == pytest.approx(-math.log(product) / places)


def test_marks_outside_the_vocabulary_are_fine_where_they_do_not_count() -> None:
    from pairwright.training.objectives.next_token import next_token_loss

    logits, tokens = drawn()
    marked = tokens.clone()
    marked[~COUNTED] = -200
    assert next_token_loss(logits, marked, COUNTED) == next_token_loss(logits, tokens, COUNTED)


def test_only_the_logits_before_a_counted_token_have_a_gradient() -> None:
    from pairwright.training.objectives.next_token import next_token_loss

    logits, tokens = drawn()
    (slope,) = torch.autograd.grad(next_token_loss(logits.requires_grad_(), tokens, COUNTED), logits)
    moved = (slope != 0).any(dim=-1)
    assert torch.equal(moved[:, :-1], COUNTED[:, 1:])
    assert not moved[:, -1].any()


def test_the_first_token_is_never_counted() -> None:
    from pairwright.training.objectives.next_token import next_token_loss

    logits, tokens = drawn()
    with_first = COUNTED.clone()
    with_first[:, 0] = True
    assert next_token_loss(logits, tokens, with_first) == next_token_loss(logits, tokens, COUNTED)


def test_parts_of_a_batch_add_up_to_its_loss() -> None:
    from pairwright.training.objectives.next_token import next_token_loss

    logits, tokens = drawn()
    total = COUNTED[:, 1:].sum()
    parts = [next_token_loss(logits[[i]], tokens[[i]], COUNTED[[i]], total) for i in range(2)]
    assert torch.stack(parts).sum().item() == pytest.approx(next_token_loss(logits, tokens, COUNTED).item())


def test_even_logits_cost_the_log_of_the_vocabulary() -> None:
    from pairwright.training.objectives.next_token import next_token_loss

    logits, tokens = drawn()
    assert next_token_loss(torch.zeros_like(logits), tokens, COUNTED).item() == pytest.approx(math.log(7))
