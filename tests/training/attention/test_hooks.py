"""Attention to documents: recorded and rescaled."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from transformers import (
    BloomConfig,
    BloomForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    PreTrainedModel,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from pairwright.datasets.errors import UsageError
from pairwright.training.attention.hooks import DocumentLayout, calibrate_attention, record_attention, rescale_attention

LAYERS = 4
LAYOUT = DocumentLayout(((3, 7), (8, 10), (12, 17)), 20)
SHARES = torch.tensor([[0.2, 0.5, 0.3]]).log()
KINDS = ("llama", "mistral", "qwen2", "qwen3")


def decoder(kind: str, seed: int = 0, **more: Any) -> PreTrainedModel:
    """Return a random decoder with grouped heads; its attention is uneven."""
    sizes: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": LAYERS, "vocab_size": 50}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2, "pad_token_id": 0, "eos_token_id": None} | more
    sizes |= {"head_dim": 8} if kind == "qwen3" else {}
    kinds: dict[str, tuple[Any, Any]] = {
        "llama": (LlamaConfig, LlamaForCausalLM),
        "mistral": (MistralConfig, MistralForCausalLM),
        "qwen2": (Qwen2Config, Qwen2ForCausalLM),
        "qwen3": (Qwen3Config, Qwen3ForCausalLM),
    }
    config, model = kinds[kind]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        found: PreTrainedModel = model(config(**sizes)).eval()
        for name, parameter in found.named_parameters():
            if "q_proj" in name or "k_proj" in name:
                torch.nn.init.normal_(parameter, std=0.5)
    return found


def ids(length: int = LAYOUT.length, seed: int = 1) -> Tensor:
    return torch.randint(1, 50, (1, length), generator=torch.Generator().manual_seed(seed))


def eager(model: PreTrainedModel, read: Tensor) -> list[Tensor]:
    """Return transformers' own attention weights, one tensor (1, heads, queries, keys) a layer."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    found = model(read, output_attentions=True, use_cache=False).attentions
    model.set_attn_implementation(before)
    return list(found)


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_what_is_watched_is_what_transformers_itself_attends_to(kind: str) -> None:
    model, read = decoder(kind), ids()
    with record_attention(model, [LAYOUT]) as seen:
        logits = model(read).logits
    weights = eager(model, read)
    for layer, weight in enumerate(weights):
        for place, (first, end) in enumerate(LAYOUT.spans):
            mass = weight[0, :, -1, first:end].sum(-1)
            torch.testing.assert_close(seen.masses[layer][0, :, place], mass, atol=1e-6, rtol=1e-5)
    mean = torch.stack([weight[0, :, -1, 3:7].mean() for weight in weights]).mean()
    torch.testing.assert_close(seen.attention()[0, 0], mean, atol=1e-7, rtol=1e-5)
    assert torch.equal(logits, model(read).logits)  # watching changes nothing


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_each_document_gets_its_share_the_total_stays_and_tokens_outside_keep_theirs(kind: str) -> None:
    model, read = decoder(kind), ids()
    with record_attention(model, [LAYOUT]) as plain:
        model(read)
    with calibrate_attention(model, [LAYOUT], SHARES) as seen:
        model(read)
    for layer in range(LAYERS):
        before, after = plain.masses[layer], seen.masses[layer]
        if layer < 2:
            assert torch.equal(before, after)
        else:
            share = after / after.sum(-1, keepdim=True)
            torch.testing.assert_close(share, SHARES.exp()[None].expand_as(share), atol=1e-5, rtol=0)
    # The first calibrated layer reads what it read before, so its total is what it was.
    torch.testing.assert_close(plain.masses[2].sum(-1), seen.masses[2].sum(-1), atol=1e-5, rtol=0)


@given(
    seed=st.integers(0, 10_000),
    weights=st.lists(st.floats(-60, 0), min_size=3, max_size=3),
    masked=st.booleans(),
    faint=st.booleans(),
)
def test_shares_are_met_totals_stay_and_the_rest_is_untouched(
    *, seed: int, weights: list[float], masked: bool, faint: bool
) -> None:
    made = torch.Generator().manual_seed(seed)
    logits = torch.randn(2, 3, 2, 20, generator=made, dtype=torch.float64) * 3
    if faint:
        logits[..., 8:10] -= 900  # far below the least float
    if masked:
        logits[..., :5] = -3e38
    before = logits.log_softmax(-1)
    document = torch.full((2, 20), 3)
    for number, (first, end) in enumerate(LAYOUT.spans):
        document[:, first:end] = number
    asked = torch.tensor([weights, weights[::-1]], dtype=torch.float64).log_softmax(-1)
    after = rescale_attention(before, document, asked)
    mass = torch.stack([after.exp()[..., first:end].sum(-1) for first, end in LAYOUT.spans], -1)
    total = torch.stack([before.exp()[..., first:end].sum(-1) for first, end in LAYOUT.spans]).sum(0)
    torch.testing.assert_close(mass, total[..., None] * asked.exp()[:, None, None], atol=1e-5, rtol=0)
    torch.testing.assert_close(mass.sum(-1), total, atol=1e-9, rtol=0)
    outside = document[0] == 3
    assert torch.equal(after[..., outside], before[..., outside])
    for first, end in LAYOUT.spans:  # tokens of a document keep their proportions
        visible = slice(max(first, 5) if masked else first, end)
        change = after[..., visible] - before[..., visible]
        torch.testing.assert_close(change, change[..., :1].expand_as(change), atol=1e-6, rtol=0)


def test_a_document_out_of_sight_gets_nothing_and_the_others_all() -> None:
    logits = torch.randn(1, 2, 1, 20, generator=torch.Generator().manual_seed(0))
    logits[..., 3:7] = torch.finfo(torch.float32).min
    before = logits.log_softmax(-1)
    document = torch.full((1, 20), 3)
    for number, (first, end) in enumerate(LAYOUT.spans):
        document[:, first:end] = number
    mass = [rescale_attention(before, document, SHARES).exp()[..., first:end].sum(-1) for first, end in LAYOUT.spans]
    assert float(mass[0].max()) == 0
    torch.testing.assert_close(mass[1] / mass[2], torch.full_like(mass[1], 5 / 3), atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_outside_the_block_the_model_is_what_it_was(kind: str) -> None:
    model, read = decoder(kind), ids()
    before, how = model(read).logits, model.config._attn_implementation
    with calibrate_attention(model, [LAYOUT], SHARES):
        changed = model(read).logits
    assert not torch.allclose(before[:, -1], changed[:, -1], atol=1e-4)
    assert torch.equal(before, model(read).logits)
    assert model.config._attn_implementation == how
    assert torch.equal(before[:, :-1], changed[:, :-1])  # queries before the prompt's last token are left alone


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_with_and_without_cache_the_same_is_written(kind: str) -> None:
    model, read = decoder(kind), ids()
    more: dict[str, Any] = {
        "max_new_tokens": 6,
        "do_sample": False,
        "output_logits": True,
        "return_dict_in_generate": True,
    }
    found: list[Any] = []
    for cached in (True, False):
        with calibrate_attention(model, [LAYOUT], SHARES):
            found.append(model.generate(read, use_cache=cached, **more))
    assert torch.equal(found[0].sequences, found[1].sequences)
    torch.testing.assert_close(torch.stack(found[0].logits), torch.stack(found[1].logits), atol=1e-4, rtol=1e-4)
    whole = found[0].sequences
    with calibrate_attention(model, [LAYOUT], SHARES):
        at_once = model(whole).logits[:, LAYOUT.length - 1 : -1]
    torch.testing.assert_close(torch.stack(found[0].logits, 1), at_once, atol=1e-4, rtol=1e-4)


@torch.inference_mode()
def test_a_padded_row_of_a_batch_reads_as_it_does_alone() -> None:
    model, long, short = decoder("llama"), ids(), ids(11, seed=2)
    other = DocumentLayout(((2, 4), (5, 9)), 11)
    shares = torch.tensor([[0.2, 0.5, 0.3], [0.9, 0.1, 0.0]]).log()
    both = torch.cat([long, torch.cat([torch.zeros(1, 9, dtype=torch.int64), short], 1)])
    mask = torch.arange(20) >= torch.tensor([[0], [9]])
    more: dict[str, Any] = {"max_new_tokens": 5, "do_sample": False}
    with calibrate_attention(model, [LAYOUT, other], shares) as seen:
        together = model.generate(both, attention_mask=mask.long(), **more)[:, 20:]
    assert float(seen.masses[2][1, :, 2].max()) == 0
    with calibrate_attention(model, [LAYOUT], shares[:1]):
        assert torch.equal(together[:1], model.generate(long, **more)[:, 20:])
    with calibrate_attention(model, [other], shares[1:, :2]):
        assert torch.equal(together[1:], model.generate(short, **more)[:, 11:])


@pytest.mark.parametrize("cached", [True, False])
@torch.inference_mode()
def test_documents_behind_a_sliding_window_get_nothing(*, cached: bool) -> None:
    model, read = decoder("mistral", sliding_window=9), ids()
    with calibrate_attention(model, [LAYOUT], SHARES) as seen:
        model.generate(read, max_new_tokens=3, do_sample=False, use_cache=cached)
    last = seen.masses[LAYERS - 1][0]  # the query at 21 sees 13 to 21
    assert float(last[:, :2].max()) == 0
    assert float(last[:, 2].min()) > 0


@torch.inference_mode()
def test_half_precision_meets_the_shares_to_its_own_precision() -> None:
    model = decoder("llama").bfloat16()
    with calibrate_attention(model, [LAYOUT], SHARES) as seen:
        logits = model(ids()).logits
    assert logits.dtype == torch.bfloat16
    share = seen.masses[3] / seen.masses[3].sum(-1, keepdim=True)
    torch.testing.assert_close(share, SHARES.exp()[None].expand_as(share), atol=1e-5, rtol=0)


@torch.inference_mode()
def test_a_static_cache_beams_and_a_second_block_are_refused() -> None:
    model, read = decoder("llama"), ids()
    with pytest.raises(UsageError, match="growing key-value cache"), calibrate_attention(model, [LAYOUT], SHARES):
        model.generate(read, max_new_tokens=3, cache_implementation="static")
    with pytest.raises(UsageError, match="beams"), calibrate_attention(model, [LAYOUT] * 2, SHARES.repeat(2, 1)):
        model.generate(read.repeat(2, 1), attention_mask=torch.ones(2, 20), max_new_tokens=3, num_beams=2)
    with (
        pytest.raises(UsageError, match="already"),
        record_attention(model, [LAYOUT]),
        record_attention(model, [LAYOUT]),
    ):
        pass
    assert torch.isfinite(model(read).logits).all()
    assert model.config._attn_implementation == "sdpa"


def test_a_block_in_which_nothing_is_read_says_so() -> None:
    with pytest.raises(UsageError, match="registry"), record_attention(decoder("llama"), [LAYOUT]):
        pass


def test_models_whose_attention_is_of_another_make_are_refused_and_left_as_they_were() -> None:
    sizes: dict[str, Any] = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 50}
    capped: dict[str, Any] = {"head_dim": 8, "num_key_value_heads": 2, "intermediate_size": 48}
    for model in (BloomForCausalLM(BloomConfig(**sizes)), Gemma2ForCausalLM(Gemma2Config(**sizes, **capped))):
        before = model.config._attn_implementation
        with pytest.raises(UsageError, match="Llama"), record_attention(model, [LAYOUT]):
            model(ids())
        assert model.config._attn_implementation == before


@pytest.mark.parametrize("spans", [(), ((3, 3),), ((3, 7), (6, 9)), ((3, 21),), ((8, 10), (3, 7))])
def test_documents_that_cannot_be_are_refused(spans: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(UsageError, match="document"):
        DocumentLayout(spans, 20)
