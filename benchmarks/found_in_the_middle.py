"""Found in the middle on a decoder trained here: is there a U-curve, does calibration lift the middle and rank better?

    python -m benchmarks.found_in_the_middle [--seeds 3] [--examples 30] [--documents 10]

A document is three words: a key, its value, a filler. The prompt is K documents and a key; the answer is its value. A
Llama of two layers (width 64, 70,000 weights) is trained from scratch, with the gold document at the first or last place
19 times of 20 and anywhere otherwise, until it answers half of the questions whose gold document stands elsewhere.
Trained on, it would answer all: a key stands in one document, so nothing but unfinished training makes a place matter.

Measured on documents that training has not seen in this combination: the share of right answers by the gold document's
place, with attention as it is and calibrated (eq. 3.5) at several temperatures; Recall@3 of rankings; Attn(x, k) by place;
forward passes and seconds a prompt against K.
"""

import argparse
import time
from collections.abc import Sequence
from dataclasses import replace

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

from pairwright.datasets.chance import array_stream, number
from pairwright.training.attention.calibration import TEMPERATURE, Calibration
from pairwright.training.attention.prompts import Prompt
from pairwright.training.attention.questions import Question
from pairwright.training.attention.ranking import Ranking
from pairwright.training.attention.reading import Reader
from pairwright.training.evaluation.figures import Figure, Findings
from pairwright.training.evaluation.multi_document import Plan, read_documents

KEYS, VALUES, FILLERS = 16, 16, 8
WORDS = [
    *("<pad>", "<s>", "?"),
    *(f"k{number:02d}" for number in range(KEYS)),
    *(f"v{number:02d}" for number in range(VALUES)),
    *(f"f{number}" for number in range(FILLERS)),
]
KEY, VALUE, FILLER = 3, 3 + KEYS, 3 + KEYS + VALUES
DUMMY = f"k{KEYS - 1:02d} v{VALUES - 1:02d} f{FILLERS - 1}"  # no question is about it
AT_ENDS = 0.95
ASKED = 8  # questions about the same documents in a row of training
ROWS, MOST_STEPS, LOOK = 64, 1500, 10


TEMPERATURES = (TEMPERATURE, 5e-3, 2e-2)
COSTS = (5, 10, 14)  # of documents, for seconds a prompt


def main() -> None:
    """Train, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--examples", type=int, default=30, help="questions a seed")
    parser.add_argument("--documents", type=int, default=10)
    chosen = parser.parse_args()
    together: dict[str, list[Findings]] = {}
    for seed in range(chosen.seeds):
        started = time.perf_counter()
        model, steps = trained(seed, chosen.documents)
        print(f"seed {seed}: {steps} steps, {time.perf_counter() - started:.0f} s", flush=True)
        reader = Reader(model, tokenizer(), batch=64)
        asked = questions(seed, chosen.examples, chosen.documents)
        for name, plan in plans(chosen.documents).items():
            together.setdefault(name, []).append(read_documents(reader, asked, plan))
    for name, found in together.items():
        print(f"\n{name}")
        for figures in zip(*(one.figures for one in found), strict=True):
            print(line(figures))
        shown = found[0].detail[f"attention of {chosen.documents}"]
        if name == "as it is":
            for gold in shown:
                rows = [one.detail[f"attention of {chosen.documents}"][gold] for one in found]
                mean = [sum(values) / len(values) for values in zip(*rows, strict=True)]
                print(f"attention, gold at {gold:>2}: {' '.join(f'{value:.4f}' for value in mean)}")
    print(f"\n{'K':>3}{'passes':>8}{'ms plain':>10}{'ms calibrated':>15}")
    for documents in COSTS:
        print(cost(reader, documents))


def plans(documents: int) -> dict[str, Plan]:
    """Return what is measured, by name."""
    places = tuple(range(documents))
    first = Plan(documents, places, ("plain",), ("attention", "plain-attention"), longest=1, writer=toy_prompt)
    first = replace(first, calibration=Calibration(dummy=DUMMY))
    found = {"as it is": first}
    for form, temperatures in (("linear", TEMPERATURES), ("log-linear", (1.0,))):
        for t in temperatures:
            how = Calibration(form, t, DUMMY)  # type: ignore[arg-type]
            name = f"calibrated, {form}, t = {t:g}"
            ranked: tuple[Ranking, ...] = ("attention",) if form == "log-linear" else ()
            found[name] = replace(first, ways=("calibrated",), rankings=ranked, conditions=False, calibration=how)
    return found


def line(figures: Sequence[Figure]) -> str:
    """Return one measure: all seeds together, and each."""
    each = " ".join(one.written.strip() for one in figures)
    if not figures[0].percent:
        return f"{figures[0].part}, {figures[0].measure}: {each}"
    n = sum(one.n for one in figures)
    one = Figure.share(figures[0].part, figures[0].measure, round(sum(f.value * f.n for f in figures)), n)
    return f"{one.part}, {one.measure}: {one.written.strip()} ({one.written_interval}) of {n}; by seed {each}"


def questions(seed: int, count: int, documents: int) -> list[Question]:
    """Return questions over documents; none is about the dummy's key, and no document holds it."""
    chance = array_stream("questions", seed)
    found = []
    for _ in range(count):
        keys, values = (chance.permutation(size - 1)[:documents] for size in (KEYS, VALUES))
        texts = [
            f"k{key:02d} v{value:02d} f{chance.integers(FILLERS)}" for key, value in zip(keys, values, strict=True)
        ]
        found.append(Question(f"k{keys[0]:02d}", (f"v{values[0]:02d}",), texts[0], tuple(texts[1:])))
    return found


def cost(reader: Reader, documents: int) -> str:
    """Return passes and milliseconds a prompt, the prompts one after the other."""
    asked = questions(99, 20, documents)
    prompts = [toy_prompt(one.text, one.documents(documents, documents // 2)) for one in asked]
    reader.attention(prompts[:1])
    spent = []
    for calibrated in (False, True):
        started = time.process_time()
        for prompt in prompts:
            how = Calibration(dummy=DUMMY)
            reader.answers([prompt], 1, reader.relevances([prompt], how) if calibrated else None, how)
        spent.append(1000 * (time.process_time() - started) / len(prompts))
    return f"{documents:>3}{documents + 1:>8}{spent[0]:>10.1f}{spent[1]:>15.1f}"


def toy_prompt(question: str, documents: Sequence[str]) -> Prompt:
    """Return documents, then the question."""
    text, spans = "<s>", []
    for document in documents:
        spans.append((len(text) + 1, len(text) + 1 + len(document)))
        text += f" {document}"
    return Prompt(f"{text} ? {question}", tuple(spans), marks=False)


def tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer of `WORDS`, split at spaces."""
    words = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token=WORDS[0]))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token=WORDS[0], bos_token=WORDS[1])  # type: ignore[no-untyped-call]


def trained(seed: int, documents: int) -> tuple[PreTrainedModel, int]:
    """Return a decoder trained as the module says, and the steps it took."""
    with torch.random.fork_rng():
        torch.manual_seed(number("model", seed) % 2**31)
        model = LlamaForCausalLM(
            LlamaConfig(
                hidden_size=64,
                intermediate_size=128,
                num_hidden_layers=2,
                num_attention_heads=2,
                vocab_size=len(WORDS),
                pad_token_id=0,
                bos_token_id=1,
                eos_token_id=None,
                max_position_embeddings=512,
                initializer_range=0.05,
            )
        )
    chance = torch.Generator().manual_seed(number("rows", seed) % 2**31)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    for step in range(1, MOST_STEPS + 1):
        ids, answers = rows(chance, documents, None)
        for group in optimizer.param_groups:
            group["lr"] = 3e-3 * min(1, step / 50)
        logits = model(ids, use_cache=False).logits[:, 3 * documents + 2 :: 3]
        optimizer.zero_grad()
        functional.cross_entropy(logits.flatten(0, 1), answers.flatten()).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % LOOK == 0 and middle(model, chance, documents) >= 0.5:
            break
    model.eval()  # type: ignore[no-untyped-call]
    return model, step


@torch.no_grad()
def middle(model: PreTrainedModel, chance: torch.Generator, documents: int) -> float:
    """Return the share of right answers where the gold document is neither first nor last."""
    right = []
    for place in range(1, documents - 1):
        ids, answers = rows(chance, documents, place)
        right.append(
            (model(ids, use_cache=False).logits[:, 3 * documents + 2].argmax(-1) == answers[:, 0]).float().mean()
        )
    return float(torch.stack(right).mean())


def rows(chance: torch.Generator, documents: int, place: int | None) -> tuple[Tensor, Tensor]:
    """Return rows of documents and questions, and the values that answer them."""
    keys = torch.rand(ROWS, KEYS, generator=chance).argsort(1)[:, :documents]
    values = torch.rand(ROWS, VALUES, generator=chance).argsort(1)[:, :documents]
    fillers = torch.randint(0, FILLERS, (ROWS, documents), generator=chance)
    ends = torch.randint(0, 2, (ROWS, ASKED), generator=chance) * (documents - 1)
    anywhere = torch.randint(0, documents, (ROWS, ASKED), generator=chance)
    gold = torch.where(torch.rand(ROWS, ASKED, generator=chance) < AT_ENDS, ends, anywhere)
    if place is not None:
        gold = torch.full_like(gold, place)
    asked, answers = KEY + keys.gather(1, gold), VALUE + values.gather(1, gold)
    shown = torch.stack([KEY + keys, VALUE + values, FILLER + fillers], -1).flatten(1)
    questions = torch.stack([torch.full_like(asked, 2), asked, answers], -1).flatten(1)
    return torch.cat([torch.ones(ROWS, 1, dtype=torch.int64), shown, questions], 1), answers


if __name__ == "__main__":
    main()
