"""REACT's soft positives: against Liu's dissertation, eq. 2.4-2.6, and equal to UniCL and CLIP in their limits."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.example_counts import examples

torch = pytest.importorskip("torch", reason="the trainer needs torch")

from tests.training.objectives.random_rows import dot, unit  # noqa: E402


@settings(max_examples=examples(40))
@given(rows=st.integers(1, 6), seed=st.integers(0, 10_000), gamma=st.sampled_from([-1.0, 0.0, 0.5, 0.9, 1.0]))
def test_it_is_the_sum_of_the_paper_over_twice_the_batch(rows: int, seed: int, gamma: float) -> None:
    from pairwright.training.objectives.soft_positives import react_loss

    rng = torch.Generator().manual_seed(seed)
    images, texts = unit(rng, rows, 3), unit(rng, rows, 3)
    u, v = images.tolist(), texts.tolist()
    batch = range(rows)
    total = 0.0
    for i in batch:
        alike = [k for k in batch if k == i or dot(v[k], v[i]) >= gamma]  # its own text, rounding aside
        for k in alike:
            to_text = math.exp(5 * dot(u[i], v[k])) / sum(math.exp(5 * dot(u[i], v[j])) for j in batch)
            to_image = math.exp(5 * dot(u[k], v[i])) / sum(math.exp(5 * dot(u[j], v[i])) for j in batch)
            total -= (math.log(to_text) + math.log(to_image)) / len(alike)
    assert react_loss(images, texts, 5.0, gamma).item() == pytest.approx(total / (2 * rows))


def test_texts_unlike_each_other_give_clip() -> None:
    from pairwright.training.objectives.contrastive import clip_loss
    from pairwright.training.objectives.soft_positives import react_loss

    rng = torch.Generator().manual_seed(1)
    images, texts = unit(rng, 6, 16), unit(rng, 6, 16)
    assert react_loss(images, texts, 9.0).item() == pytest.approx(clip_loss(images, texts, 9.0).item())


def test_above_a_threshold_of_1_each_text_is_alike_to_itself_alone() -> None:
    from pairwright.training.objectives.soft_positives import similar_texts

    texts = unit(torch.Generator().manual_seed(1), 3, 16).repeat(2, 1)
    assert torch.equal(similar_texts(texts, 2.0), torch.eye(6, dtype=torch.bool))
    assert similar_texts(texts, 1.0).sum() == 12


def test_texts_that_repeat_word_for_word_give_clip_too() -> None:
    """Soft positives change the loss where texts are alike and not equal, and nowhere else."""
    from pairwright.training.objectives.contrastive import clip_loss
    from pairwright.training.objectives.soft_positives import react_loss

    rng = torch.Generator().manual_seed(1)
    images, texts = unit(rng, 6, 16), unit(rng, 3, 16).repeat(2, 1)
    assert react_loss(images, texts, 9.0, 1.0).item() == pytest.approx(clip_loss(images, texts, 9.0).item())
    nearly = torch.nn.functional.normalize(texts + 0.05 * unit(rng, 6, 16), dim=1)
    assert react_loss(images, nearly, 9.0, 0.9).item() != pytest.approx(clip_loss(images, nearly, 9.0).item(), rel=1e-4)


@pytest.mark.parametrize("kind", ["float32", "float64", "bfloat16"])
def test_at_threshold_1_texts_of_one_class_are_those_of_unicl(kind: str) -> None:
    from pairwright.training.objectives.soft_positives import react_loss, similar_texts, soft_positive_loss

    rng = torch.Generator().manual_seed(2)
    ids = torch.tensor([0, 1, 0, 2, 1, 0, 3])
    texts = unit(rng, 4, 512)[ids].to(getattr(torch, kind))
    images = unit(rng, 7, 512).to(getattr(torch, kind))
    classes = ids.unsqueeze(1) == ids
    assert torch.equal(similar_texts(texts, 1.0), classes)
    close = torch.tensor([[1.0, 0.0], [0.97, 0.24]], dtype=getattr(torch, kind))
    assert torch.equal(similar_texts(close, 1.0), torch.eye(2, dtype=torch.bool))
    assert react_loss(images, texts, 9.0, 1.0) == soft_positive_loss(images, texts, classes, 9.0)


def test_unicl_by_class_is_a_cross_entropy_with_even_labels() -> None:
    from pairwright.training.objectives.soft_positives import soft_positive_loss

    rng = torch.Generator().manual_seed(3)
    ids = torch.tensor([0, 1, 0, 2, 0])
    images, texts = unit(rng, 5, 4), unit(rng, 5, 4)
    classes = (ids.unsqueeze(1) == ids).double()
    labels = classes / classes.sum(dim=1, keepdim=True)
    logits = 9 * images @ texts.T
    entropy = torch.nn.functional.cross_entropy
    expected = (entropy(logits, labels) + entropy(logits.T, labels)) / 2
    assert soft_positive_loss(images, texts, classes.bool(), 9.0).item() == pytest.approx(expected.item())


def test_a_row_without_positives_weighs_nothing_in_its_direction() -> None:
    from pairwright.training.objectives.soft_positives import soft_positive_loss

    rng = torch.Generator().manual_seed(4)
    images, texts = unit(rng, 3, 4), unit(rng, 3, 4)
    positives = torch.tensor([[True, False, True], [False, False, False], [False, False, False]])
    shares = (9 * images @ texts.T).log_softmax(dim=1)[0], (9 * images @ texts.T).log_softmax(dim=0)[0]
    expected = -((shares[0][0] + shares[0][2]) / 2 + (shares[1][0] + shares[1][2]) / 2) / 2
    assert soft_positive_loss(images, texts, positives, 9.0).item() == pytest.approx(expected.item())


def test_which_texts_are_alike_is_found_for_embeddings_of_any_length() -> None:
    from pairwright.training.objectives.soft_positives import similar_texts

    texts = torch.tensor([[2.0, 0.0], [30.0, 10.0], [0.0, 1.0]])  # cosines .949, 0, .316
    expected = [[True, True, False], [True, True, False], [False, False, True]]
    assert similar_texts(texts, 0.9).tolist() == expected
