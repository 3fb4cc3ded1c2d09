"""(h) Calibration recovers relevance from attention with a known positional bias (Found in the middle, eq. 3.2 to 3.4).

The decoder is constructed, not trained: six GPT-2 layers in which one head matches the question with documents by content
(a random projection of each layer, so it errs), two heads are random, and a U-shaped bias over positions is injected.
*Own heads*: the bias is the logit of a fourth head, which is the additive model of eq. 3.2. *Same heads*: it is added to
the logits of the matching head, so it multiplies attention, which is the log-linear model of eq. B.1. The truth is known:
the gold document, and the attention without the injected bias.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from scipy.stats import spearmanr
from transformers import GPT2Config, GPT2LMHeadModel

from benchmarks.claims.results import Arms, Claim, Comparison
from benchmarks.claims.trials import Trials
from benchmarks.trainer.document_lookup import DUMMY, PARTS, TOPICS, VALUES, WORDS, Task, tokenizer
from benchmarks.trainer.found_in_the_middle import toy_prompt
from pairwright.training.attention.calibration import Form, calibrated_relevance, descending_order
from pairwright.training.attention.decoder import DocumentDecoder
from pairwright.training.attention.prompts import DocumentPrompt

Injected = Literal["own heads", "same heads", ""]
TOP = 3


@dataclass(frozen=True)
class Design:
    """Sizes of decoder and questions, and strengths in logits."""

    layers: int = 6
    width: int = 64
    heads: int = 4
    documents: int = 10
    questions: int = 60
    places: tuple[int, ...] = (1, 4, 7)
    match: float = 7.0
    bias: float = 3.0


DESIGN = Design()
_POSITION, _CONSTANT = DESIGN.width - 2, DESIGN.width - 1  # dimensions of the residual stream


def decoder(seed: int, injected: Injected) -> DocumentDecoder:
    """Return the constructed decoder of a seed with the bias in its own heads, in the matching heads, or nowhere."""
    one = DESIGN
    config = GPT2Config(
        vocab_size=len(WORDS),
        n_embd=one.width,
        n_layer=one.layers,
        n_head=one.heads,
        n_positions=64,
        bos_token_id=1,
        eos_token_id=1,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        model = GPT2LMHeadModel(config)
        _write_embeddings(model.transformer)
        for block in model.transformer.h:
            _write_heads(block.attn.c_attn, injected)
    model.eval()
    return DocumentDecoder(model, tokenizer(), batch=64)


def _write_embeddings(transformer: Any) -> None:
    """Give words their content, a fact that of its topic and value; and positions a U in one dimension."""
    content = DESIGN.width - 2
    halves, values = torch.randn(2, PARTS + 1, content), torch.randn(VALUES, content)
    table = transformer.wte.weight
    table[:, :content] = torch.randn(len(WORDS), content)
    for number, word in enumerate(WORDS):
        topic, _, value = word.partition("=")
        if topic[0] == "t" and topic[1:].isdigit():
            index = int(topic[1:])
            known = index < TOPICS
            meaning = halves[0, index // PARTS if known else PARTS] + halves[1, index % PARTS if known else PARTS]
            table[number, :content] = meaning + (values[int(value[1:])] if value else 0)
    table /= table[:, :content].norm(dim=1, keepdim=True) / content**0.5
    table[:, _POSITION], table[:, _CONSTANT] = 0.0, 1.0
    places = 1 + 3 * DESIGN.documents
    transformer.wpe.weight.zero_()
    transformer.wpe.weight[:places, _POSITION] = torch.linspace(-1, 1, places) ** 2


def _write_heads(weights: Any, injected: Injected) -> None:
    """Write queries and keys of the matching head and of the bias; the other weights stay random and small."""
    one, each = DESIGN, DESIGN.width // DESIGN.heads
    content, root = one.width - 2, each**0.5
    query, key = weights.weight[:, : one.width], weights.weight[:, one.width : 2 * one.width]
    match = torch.randn(content, each - 1) * (each - 1) ** -0.5
    query[:, :each] = 0.0
    key[:, :each] = 0.0
    query[:content, : each - 1] = match * one.match / content * root
    key[:content, : each - 1] = match
    place = each - 1 if injected == "same heads" else each  # the last dimension of head 0, or the first of head 1
    if injected != "same heads":
        query[:, each : 2 * each] = 0.0
        key[:, each : 2 * each] = 0.0
    query[_CONSTANT, place] = root
    key[_POSITION, place] = one.bias if injected else 0.0


def run(trials: Trials) -> Arms:
    """Return recall of the gold document and correlation with the unbiased attention, plain and calibrated."""
    found: dict[str, dict[str, float]] = {arm: {} for arm in ("without bias", "plain", "linear", "log-linear")}
    task = Task(DESIGN.documents)
    asked = task.questions(trials.seed, trials.number(DESIGN.questions))
    places = [(place, question) for place in DESIGN.places for question in asked]
    prompts = [toy_prompt(question.text, question.documents(DESIGN.documents, place)) for place, question in places]
    gold = [place for place, _ in places]
    unbiased = _attentions(decoder(trials.seed, ""), prompts)
    modes: tuple[Injected, ...] = ("own heads", "same heads")
    for injected in modes:
        reader = decoder(trials.seed, injected)
        plain = _attentions(reader, prompts)
        bias = [reader.baseline(prompt, DUMMY) for prompt in prompts]
        forms: tuple[Form, ...] = ("linear", "log-linear")
        ranked = {"without bias": unbiased, "plain": plain}
        ranked |= {
            form: [calibrated_relevance(*pair, form) for pair in zip(plain, bias, strict=True)] for form in forms
        }
        for arm, relevances in ranked.items():
            found[arm][f"recall@{TOP}, bias in {injected}"] = _recall(relevances, gold)
            found[arm][f"correlation, bias in {injected}"] = _correlation(relevances, unbiased)
    return found


def _attentions(reader: DocumentDecoder, prompts: Sequence[DocumentPrompt]) -> list[Any]:
    return list(reader.attention(prompts))


def _recall(relevances: Sequence[Any], gold: Sequence[int]) -> float:
    return float(np.mean([place in descending_order(one)[:TOP] for one, place in zip(relevances, gold, strict=True)]))


def _correlation(relevances: Sequence[Any], unbiased: Sequence[Any]) -> float:
    """Return the mean over prompts of Spearman's correlation over documents with the attention without the bias."""
    pairs = zip(relevances, unbiased, strict=True)
    return float(np.mean([spearmanr(one, other).statistic for one, other in pairs]))


CLAIM = Claim(
    "h",
    "positions",
    "Calibration recovers relevance from attention with a positional bias",
    DESIGN,
    run,
    tuple(
        Comparison(f"{measure}, bias in {injected}", form, "plain")
        for injected in ("own heads", "same heads")
        for measure in (f"recall@{TOP}", "correlation")
        for form in ("linear", "log-linear")
    ),
)
