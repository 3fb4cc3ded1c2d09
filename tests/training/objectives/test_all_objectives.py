"""What holds for every objective: gradients, order of rows, masks, half precision, and tracing without a break."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="the trainer needs torch")

Inputs = dict[str, Any]  # tensors by name, rows first
ROWS = 4


@dataclass(frozen=True)
class Case:
    """One objective: its loss of named inputs, and the inputs that masks hide in part, each with its mask."""

    loss: Callable[..., Any]
    inputs: tuple[str, ...]
    hidden: tuple[tuple[str, str], ...] = ()


def scaled(objective: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, scale: objective(*given, scale)


def unscaled(objective: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *given, scale: objective(*given) + 0 * scale


PAIR = ("images", "texts")
WRONG = (*PAIR, "negatives", "negatives_mask")
RIGHT = ("positives", "positives_mask")
LOCAL = ("patches", "tokens", "tokens_mask")
OUTPUT = ("logits", "tokens", "counted")


def cases() -> dict[str, Case]:
    """The objectives by name."""
    return caption_cases() | edited_text_cases() | positive_cases() | written_cases()


def caption_cases() -> dict[str, Case]:
    from pairwright.training.objectives.contrastive import clip_loss, negclip_loss

    return {
        "clip": Case(scaled(clip_loss), PAIR),
        "negclip": Case(scaled(negclip_loss), WRONG, (WRONG[2:],)),
    }


def edited_text_cases() -> dict[str, Case]:
    from pairwright.training.objectives.embeddings import PairEmbeddings
    from pairwright.training.objectives.fsc_clip import FscWeights, fsc_clip_loss
    from pairwright.training.objectives.hard_negatives import choice_loss, choice_scores, hard_negative_loss
    from pairwright.training.objectives.hard_positives import analogy_loss, hp_hn_loss

    def choice(*given: Any, scale: Any) -> Any:
        images, texts, negatives, mask = given
        return choice_loss(choice_scores(images, texts, negatives, mask, scale), mask, focal=2.0, smoothing=0.02)

    def hp_hn(*given: Any, scale: Any) -> Any:
        return hp_hn_loss(
            PairEmbeddings(**dict(zip((*WRONG, *RIGHT), given, strict=True)), scale=scale), negatives=1.0, positives=1.0
        ).loss

    def fsc(*given: Any, scale: Any) -> Any:
        weights = FscWeights(0.5, 0.2, 2.0, 0.02)
        return fsc_clip_loss(
            PairEmbeddings(**dict(zip((*WRONG, *RIGHT, *LOCAL), given, strict=True)), scale=scale), weights
        ).loss

    return {
        "hard negatives": Case(scaled(hard_negative_loss), WRONG, (WRONG[2:],)),
        "focal and smoothed": Case(choice, WRONG, (WRONG[2:],)),
        "analogy": Case(scaled(analogy_loss), (*PAIR, *RIGHT), (RIGHT,)),
        "hp-hn": Case(hp_hn, (*WRONG, *RIGHT), (WRONG[2:], RIGHT)),
        "fsc-clip": Case(
            fsc, (*WRONG, *RIGHT, "patches", "pieces", "pieces_mask"), (WRONG[2:], ("pieces", "pieces_mask"))
        ),
    }


def positive_cases() -> dict[str, Case]:
    from pairwright.training.objectives.conditional import conditional_loss
    from pairwright.training.objectives.soft_positives import react_loss, soft_positive_loss

    def unicl(images: Any, texts: Any, ids: Any, scale: Any) -> Any:
        return soft_positive_loss(images, texts, ids.unsqueeze(1) == ids, scale)

    def without_twins(images: Any, texts: Any, ids: Any, scale: Any) -> Any:
        return conditional_loss(images, texts, scale, same=ids, both_ways=True)

    return {
        "react": Case(scaled(react_loss), PAIR),
        "unicl": Case(unicl, (*PAIR, "ids")),
        "focallens": Case(scaled(conditional_loss), PAIR),
        "focallens without twins": Case(without_twins, (*PAIR, "ids")),
    }


def written_cases() -> dict[str, Case]:
    from pairwright.training.objectives.step_by_step import WrittenTexts, multi_task_loss, written_loss

    def two_tasks(*given: Any) -> Any:
        return multi_task_loss(WrittenTexts(*given[:3]), WrittenTexts(*given[3:])).loss

    def one_task(*given: Any) -> Any:
        return written_loss(WrittenTexts(*given))

    return {
        "two tasks": Case(unscaled(two_tasks), (*OUTPUT, "logits", "tokens", "places")),
        "one task": Case(unscaled(one_task), OUTPUT),
    }


NAMES = (
    "clip",
    "negclip",
    "hard negatives",
    "focal and smoothed",
    "analogy",
    "hp-hn",
    "fsc-clip",
    "react",
    "unicl",
    "focallens",
    "focallens without twins",
    "two tasks",
    "one task",
)
PAIRED = ("clip", "react", "unicl", "focallens", "focallens without twins")  # no embeddings behind a mask
WRITTEN = ("two tasks", "one task")
MASKED = tuple(name for name in NAMES if name not in PAIRED + WRITTEN)
# With no edited text these are still CLIP.
EMPTY_IS_NOTHING = tuple(name for name in NAMES if name not in (*PAIRED, "negclip", "hp-hn", "fsc-clip"))
# It stops a gradient on purpose: test_objectives_fsc_clip.py checks what is left.
SMOOTH = tuple(name for name in NAMES if name != "fsc-clip")
every = pytest.mark.parametrize("name", NAMES)


def drawn(kind: Any = torch.float64, seed: int = 0) -> Inputs:
    rng = torch.Generator().manual_seed(seed)

    def some(*shape: int) -> Any:
        return torch.randn(*shape, generator=rng, dtype=torch.float64)

    def unit(*shape: int) -> Any:
        return torch.nn.functional.normalize(some(*shape), dim=-1).to(kind)

    def mask(*lines: str) -> Any:
        return torch.tensor([[letter == "x" for letter in line] for line in lines])

    return {
        "images": unit(ROWS, 3),
        "texts": unit(ROWS, 3),
        "negatives": unit(ROWS, 2, 3),
        "negatives_mask": mask("xx", ".x", "..", "x."),
        "positives": unit(ROWS, 2, 3),
        "positives_mask": mask(".x", "xx", "x.", ".."),
        "patches": some(ROWS, 3, 3).to(kind),
        "pieces": some(ROWS, 3, 2, 3).to(kind),
        "pieces_mask": torch.tensor([[1, 1], [1, 0], [1, 1]], dtype=torch.bool).repeat(ROWS, 1, 1),
        "ids": torch.tensor([0, 1, 0, 2]),
        "logits": some(ROWS, 4, 5).to(kind),
        "tokens": torch.randint(5, (ROWS, 4), generator=rng),
        "counted": mask(".xx.", "..xx", "....", ".x.x"),
        "places": mask("xx..", "....", "x...", "xxxx"),
    }


def loss_of(case: Case, inputs: Inputs, scale: Any = 3.0) -> Any:
    return case.loss(*(inputs[name] for name in case.inputs), scale=scale)


def floats(case: Case, inputs: Inputs) -> list[str]:
    return sorted({name for name in case.inputs if inputs[name].is_floating_point()})


def slopes(case: Case, inputs: Inputs, scale: Any = 3.0) -> tuple[Any, dict[str, Any]]:
    """The loss, and its gradient at each input of floats."""
    names = floats(case, inputs)
    leaves = {name: inputs[name].clone().requires_grad_() for name in names}
    loss = loss_of(case, inputs | leaves, scale)
    found = torch.autograd.grad(loss, list(leaves.values()), allow_unused=True)
    return loss.detach(), {
        name: torch.zeros_like(inputs[name]) if one is None else one for name, one in zip(names, found, strict=True)
    }


def test_every_objective_is_in_the_list() -> None:
    assert tuple(cases()) == NAMES
    assert tuple(name for name, case in cases().items() if case.hidden) == MASKED


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_those_of_the_differences_also_by_scale(name: str) -> None:
    case, inputs = cases()[name], drawn()
    names = floats(case, inputs)
    leaves = [inputs[one].requires_grad_() for one in names]
    scale = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda *given: loss_of(case, inputs | dict(zip(names, given[1:], strict=True)), given[0]), (scale, *leaves)
    )


@every
def test_the_order_of_rows_does_not_matter(name: str) -> None:
    case, inputs = cases()[name], drawn()
    order = torch.tensor([2, 0, 3, 1])
    loss, found = slopes(case, inputs)
    moved, others = slopes(case, {one: value[order] for one, value in inputs.items()})
    torch.testing.assert_close(moved, loss)
    for one in found:
        torch.testing.assert_close(others[one], found[one][order])


@every
def test_it_is_a_finite_0_d_tensor_that_learns(name: str) -> None:
    case = cases()[name]
    loss, found = slopes(case, drawn())
    assert loss.shape == ()
    assert loss.dtype == torch.float64
    assert loss.item() > 0
    assert all(one.isfinite().all() for one in found.values())
    assert any((one != 0).any() for one in found.values())


@pytest.mark.parametrize("name", MASKED)
def test_what_a_mask_hides_changes_nothing_not_even_a_gradient(name: str) -> None:
    case, inputs = cases()[name], drawn()
    loss, found = slopes(case, inputs)
    for filler in (0.0, 1e30, math.nan, math.inf):
        filled = inputs | {
            value: inputs[value].masked_fill(~inputs[mask].unsqueeze(-1), filler) for value, mask in case.hidden
        }
        again, others = slopes(case, filled)
        assert torch.equal(again, loss)
        assert all(torch.equal(others[one], found[one]) for one in found)
    for value, mask in case.hidden:
        assert (found[value][~inputs[mask]] == 0).all()


@pytest.mark.parametrize("name", EMPTY_IS_NOTHING)
def test_where_nothing_counts_the_loss_is_0_with_a_gradient_of_0(name: str) -> None:
    case, inputs = cases()[name], drawn()
    masks = {one: torch.zeros_like(value) for one, value in inputs.items() if value.dtype == torch.bool}
    loss, found = slopes(case, inputs | masks)
    assert loss.item() == 0
    assert found
    assert all((one == 0).all() for one in found.values())


@every
def test_one_row_is_enough(name: str) -> None:
    loss, found = slopes(cases()[name], {one: value[:1] for one, value in drawn().items()})
    assert loss.item() >= 0
    assert all(one.isfinite().all() for one in found.values())


@every
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision_inputs_at_scale_100_lose_nothing_but_their_own_rounding(
    name: str, kind: Any, *, autocast: bool
) -> None:
    case, inputs = cases()[name], drawn(kind)
    exact = {one: value.double() if value.is_floating_point() else value for one, value in inputs.items()}
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        loss, found = slopes(case, inputs, 100.0)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(loss_of(case, exact, 100.0).item(), rel=1e-4, abs=1e-6)
    assert all(one.isfinite().all() for one in found.values())


# Tracing takes longest of all; these four have every kind of input, and the quick suite is content with them.
TRACED = ("clip", "hp-hn", "fsc-clip", "two tasks")


@pytest.mark.parametrize(
    "name", [name if name in TRACED else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def test_it_is_traced_whole_with_the_same_result(name: str) -> None:
    case, inputs = cases()[name], drawn()
    compiled = torch.compile(case.loss, backend="eager", fullgraph=True)
    traced = Case(compiled, case.inputs)
    loss, found = slopes(case, inputs)
    again, others = slopes(traced, inputs)
    torch.testing.assert_close(again, loss)
    for one in found:
        torch.testing.assert_close(others[one], found[one])
