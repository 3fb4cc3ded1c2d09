"""Found in the middle on a decoder trained here: is there a U-curve, does calibration lift the middle and rank better?

    python -m benchmarks.found_in_the_middle [--seeds 3] [--examples 40] [--documents 10]

A document is three words: a key of two parts, and its value. The prompt is K documents and a key; the answer is its value.
There are so few parts that most documents share one with the question: they are nearly right. A Llama of two layers
(width 64, 70,000 weights) is trained from scratch, with the gold document at the first or last place nine times of ten
and anywhere otherwise, until it answers 85% where the gold document is first or last.

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

PARTS, VALUES = 5, 16
WORDS = [
    *("<pad>", "<s>", "?"),
    *(f"a{number}" for number in range(PARTS)),
    *(f"b{number}" for number in range(PARTS)),
    *(f"v{number:02d}" for number in range(VALUES)),
]
FIRST, SECOND, VALUE = 3, 3 + PARTS, 3 + 2 * PARTS
DUMMY = f"a{PARTS - 1} b{PARTS - 1} v{VALUES - 1:02d}"  # no question and no other document holds these words
AT_ENDS = 0.9
ASKED = 8  # questions about the same documents in a row of training
ROWS, MOST_STEPS, LOOK = 64, 1500, 25
TEMPERATURES = (TEMPERATURE, 5e-3)
COSTS = (5, 10, 14)  # of documents, for seconds a prompt


def main() -> None:
    """Train, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--examples", type=int, default=40, help="questions a seed")
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
    places = tuple(sorted({0, documents // 4, (documents - 1) // 2, 2 * documents // 3, documents - 1}))
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
    """Return questions over documents; none is about the dummy's words, and no document holds them."""
    chance = array_stream("questions", seed)
    found = []
    for _ in range(count):
        keys, values = chance.permutation((PARTS - 1) ** 2)[:documents], chance.permutation(VALUES - 1)[:documents]
        names = [f"a{key // (PARTS - 1)} b{key % (PARTS - 1)}" for key in keys]
        texts = [f"{name} v{value:02d}" for name, value in zip(names, values, strict=True)]
        found.append(Question(names[0], (f"v{values[0]:02d}",), texts[0], tuple(texts[1:])))
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
        logits = model(ids, use_cache=False).logits[:, 3 * documents + 3 :: 4]
        optimizer.zero_grad()
        functional.cross_entropy(logits.flatten(0, 1), answers.flatten()).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % LOOK == 0 and ends(model, chance, documents) >= 0.85:
            break
    model.eval()  # type: ignore[no-untyped-call]
    return model, step


@torch.no_grad()
def ends(model: PreTrainedModel, chance: torch.Generator, documents: int) -> float:
    """Return the share of right answers where the gold document is first or last."""
    right = []
    for place in (0, documents - 1):
        ids, answers = rows(chance, documents, place)
        said = model(ids, use_cache=False).logits[:, 3 * documents + 3].argmax(-1)
        right.append((said == answers[:, 0]).float().mean())
    return float(torch.stack(right).mean())


def rows(chance: torch.Generator, documents: int, place: int | None) -> tuple[Tensor, Tensor]:
    """Return rows of documents and questions, and the values that answer them."""
    keys = torch.rand(ROWS, PARTS * PARTS, generator=chance).argsort(1)[:, :documents]
    values = VALUE + torch.rand(ROWS, VALUES, generator=chance).argsort(1)[:, :documents]
    first, second = FIRST + keys // PARTS, SECOND + keys % PARTS
    at_ends = torch.randint(0, 2, (ROWS, ASKED), generator=chance) * (documents - 1)
    anywhere = torch.randint(0, documents, (ROWS, ASKED), generator=chance)
    gold = torch.where(torch.rand(ROWS, ASKED, generator=chance) < AT_ENDS, at_ends, anywhere)
    if place is not None:
        gold = torch.full_like(gold, place)
    answers = values.gather(1, gold)
    asked = [torch.full_like(answers, 2), first.gather(1, gold), second.gather(1, gold), answers]
    shown = torch.stack([first, second, values], -1).flatten(1)
    return torch.cat([torch.ones(ROWS, 1, dtype=torch.int64), shown, torch.stack(asked, -1).flatten(1)], 1), answers


if __name__ == "__main__":
    main()
