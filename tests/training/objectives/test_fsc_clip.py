"""FSC-CLIP's local loss and total: against FSC-CLIP, eq. 3-11, sum by sum."""

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")

from tests.training.objectives.random_rows import dot  # noqa: E402

SCALE = 4.0


def weights_of(token: list[float], patches: list[list[float]]) -> list[float]:
    """FSC-CLIP, eq. 6."""
    similar = [dot(token, patch) for patch in patches]
    least, most = min(similar), max(similar)
    return [1.0 if most == least else (value - least) / (most - least) for value in similar]


def score(patches: list[list[float]], tokens: list[list[float]]) -> float:
    """S_l of FSC-CLIP, eq. 7 and 8."""
    total = 0.0
    for token in tokens:
        weights = weights_of(token, patches)
        seen = [
            sum(weight * patch[at] for weight, patch in zip(weights, patches, strict=True)) / sum(weights)
            for at in range(len(token))
        ]
        cosine = dot(seen, token) / math.sqrt(dot(seen, seen)) / math.sqrt(dot(token, token))
        total += math.exp(SCALE * cosine)
    return total


def inputs(seed: int = 0) -> Any:
    from pairwright.training.objectives.embeddings import PairEmbeddings

    rng = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Any:
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    images, texts, negatives = (
        torch.nn.functional.normalize(drawn(*shape), dim=-1) for shape in ((4, 5), (4, 5), (4, 2, 5))
    )
    mask = torch.tensor([[True, True], [True, False], [False, False], [False, True]])
    places = torch.tensor([[6, 4, 5], [3, 6, 2], [2, 6, 6], [1, 2, 6]])
    local = {
        "patches": drawn(4, 7, 5),
        "tokens": drawn(4, 3, 6, 5),
        "tokens_mask": torch.arange(6) < places.unsqueeze(-1),
    }
    return PairEmbeddings(images, texts, negatives, mask, negatives[:, :0], mask[:, :0], torch.tensor(SCALE), **local)


def chosen(scores: list[float], gamma: float, beta: float) -> float:
    """FSC-CLIP, eq. 9 and 10, of one row; the caption's score first."""
    loss = 0.0
    for place, value in enumerate(scores):
        p = value / sum(scores)
        label = (1 - beta) * (place == 0) + beta / len(scores)
        loss -= (1 - p) ** gamma * label * math.log(p)
    return loss


def literal(batch: Any, gamma: float, beta: float) -> dict[str, float]:
    """The three parts of FSC-CLIP, eq. 11."""
    v, t = batch.images.tolist(), batch.texts.tolist()
    rows = range(len(v))
    clip = 0.0
    whole, tokenwise = [], []
    for i in rows:
        own = math.exp(SCALE * dot(v[i], t[i]))
        clip -= math.log(own / sum(math.exp(SCALE * dot(v[i], text)) for text in t)) / (2 * len(v))
        clip -= math.log(own / sum(math.exp(SCALE * dot(image, t[i])) for image in v)) / (2 * len(v))
        there = [k for k in range(2) if batch.negatives_mask[i, k]]
        if there:
            wrong = [math.exp(SCALE * dot(v[i], batch.negatives[i, k].tolist())) for k in there]
            whole.append(chosen([own, *wrong], gamma, beta))
            patches = batch.patches[i].tolist()
            texts = [batch.tokens[i, n][batch.tokens_mask[i, n]].tolist() for n in (0, *(k + 1 for k in there))]
            tokenwise.append(chosen([score(patches, text) for text in texts], gamma, beta))
    return {"contrastive": clip, "whole": sum(whole) / len(whole), "local": sum(tokenwise) / len(tokenwise)}


@pytest.mark.parametrize(("gamma", "beta"), [(0.0, 0.0), (2.0, 0.0), (0.0, 0.02), (2.0, 0.02)])
def test_the_parts_and_their_sum_are_those_of_the_equations(gamma: float, beta: float) -> None:
    from pairwright.training.objectives.fsc_clip import FscWeights, fsc_clip_loss

    batch = inputs()
    expected = literal(batch, gamma, beta)
    total = fsc_clip_loss(batch, FscWeights(0.5, 0.2, gamma, beta))
    assert {name: part.item() for name, part in total.parts.items()} == pytest.approx(expected)
    assert total.loss.item() == pytest.approx(
        expected["contrastive"] + 0.5 * expected["whole"] + 0.2 * expected["local"]
    )


def test_the_recipe_s_defaults_are_the_paper_s() -> None:
    from pairwright.training.recipes.settings import FscClipMethod

    recipe = FscClipMethod(kind="fsc-clip")
    assert (recipe.whole_weight, recipe.local_weight, recipe.focal, recipe.smoothing) == (0.5, 0.2, 2.0, 0.02)


def test_at_weight_0_it_is_clip() -> None:
    from pairwright.training.objectives.contrastive import clip_loss
    from pairwright.training.objectives.fsc_clip import FscWeights, fsc_clip_loss

    batch = inputs()
    total = fsc_clip_loss(batch, FscWeights(whole=0, local=0, focal=2.0, smoothing=0.02))
    assert total.loss.item() == clip_loss(batch.images, batch.texts, SCALE).item()


def test_with_no_negative_at_all_it_is_clip_with_clip_s_gradient() -> None:
    from pairwright.training.objectives.contrastive import clip_loss
    from pairwright.training.objectives.fsc_clip import FscWeights, fsc_clip_loss

    batch = inputs()
    images = batch.images.clone().requires_grad_()
    patches = batch.patches.clone().requires_grad_()
    none = batch._replace(images=images, patches=patches, negatives_mask=torch.zeros_like(batch.negatives_mask))
    given = fsc_clip_loss(none, FscWeights(0.5, 0.2, 2.0, 0.02)).loss
    plain = clip_loss(images, batch.texts, SCALE)
    assert given.item() == plain.item()
    torch.testing.assert_close(*(torch.autograd.grad(loss, images, retain_graph=True)[0] for loss in (given, plain)))
    assert (torch.autograd.grad(given, patches)[0] == 0).all()


def test_padding_and_masked_texts_have_no_effect() -> None:
    from pairwright.training.objectives.fsc_clip import FscWeights, fsc_clip_loss

    batch = inputs()
    results = []
    for filler in (0.0, 3.0, math.nan):
        tokens = batch.tokens.clone()
        tokens[~batch.tokens_mask] = filler
        tokens[:, 1:][~batch.negatives_mask] = filler
        tokens.requires_grad_()
        patches = batch.patches.clone().requires_grad_()
        filled = batch._replace(tokens=tokens, patches=patches)
        loss = fsc_clip_loss(filled, FscWeights(0.5, 0.2, 2.0, 0.02)).loss
        results.append((loss.detach(), *torch.autograd.grad(loss, (tokens, patches))))
    for other in results[1:]:
        assert all(torch.equal(one, two) for one, two in zip(results[0], other, strict=True))
    assert (results[0][1][~batch.tokens_mask] == 0).all()


def test_weights_of_a_token_run_from_0_at_the_least_alike_patch_and_sum_to_1() -> None:
    from pairwright.training.objectives.fsc_clip import patch_weights

    batch = inputs(3)
    weights = patch_weights(batch.patches, batch.tokens)
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(4, 3, 6, dtype=torch.float64))
    assert (weights.amin(dim=-1) == 0).all()
    expected = weights_of(batch.tokens[1, 2, 3].tolist(), batch.patches[1].tolist())
    assert weights[1, 2, 3].tolist() == pytest.approx([one / sum(expected) for one in expected])


def test_patches_that_are_all_alike_weigh_the_same() -> None:
    from pairwright.training.objectives.fsc_clip import patch_weights

    patches = torch.ones(1, 4, 3, requires_grad=True)
    tokens = torch.ones(1, 1, 2, 3, requires_grad=True)
    weights = patch_weights(patches, tokens)
    assert weights.tolist() == [[[[0.25] * 4] * 2]]
    slopes = torch.autograd.grad(weights.square().sum(), (patches, tokens))
    assert all(slope.isfinite().all() for slope in slopes)


def test_gradients_of_scores_and_of_weights_are_those_of_the_differences() -> None:
    from pairwright.training.objectives.fsc_clip import local_scores, patch_weights

    batch = inputs(1)
    patches, tokens = batch.patches[:2].requires_grad_(), batch.tokens[:2, :, :3].contiguous().requires_grad_()
    mask = batch.tokens_mask[:2, :, :3]
    near = patch_weights(patches, tokens).detach().requires_grad_()
    assert torch.autograd.gradcheck(lambda p, t, n: local_scores(p, t, mask, n, SCALE), (patches, tokens, near))
    assert torch.autograd.gradcheck(patch_weights, (patches, tokens))


def test_no_gradient_passes_through_the_choice_of_patches() -> None:
    from pairwright.training.objectives.fsc_clip import FscWeights, fsc_clip_loss, local_scores, patch_weights
    from pairwright.training.objectives.hard_negatives import choice_loss

    batch = inputs(2)
    tokens = batch.tokens.clone().requires_grad_()
    only = FscWeights(whole=0, local=1, focal=0, smoothing=0)
    given = fsc_clip_loss(batch._replace(tokens=tokens), only).loss
    fixed = patch_weights(batch.patches, batch.tokens)
    by_hand = choice_loss(local_scores(batch.patches, tokens, batch.tokens_mask, fixed, SCALE), batch.negatives_mask)
    torch.testing.assert_close(*(torch.autograd.grad(loss, tokens)[0] for loss in (given, by_hand)))
