"""Found in the middle on decoders trained here: is there a U-curve, does calibration lift the middle and rank better?

    python -m benchmarks.trainer.found_in_the_middle --results found.jsonl [--seeds 5] [--questions 200] [--documents 10]
                                            [--html curves.html]

`document_lookup` trains the decoders, each from nothing by its own seed. Temperatures are chosen on decoders of other seeds,
100 and 101: those that answer most, all places together. A seed that stands in the results is not trained again, so a
broken run goes on where it was.

Told are, over all seeds: right answers by the gold document's place as attention is and calibrated, the differences on
the same questions, Recall@3 of rankings with the gold document in the middle, and attention to the gold document and to the
dummy by place, whose difference (eq. 3.2) or ratio (eq. B.1) would be the same at all places if the model of attention held.
Intervals are 95% of 2,000 draws of seeds, and of questions in each (a bootstrap in two stages).
"""

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.trainer.document_lookup import DUMMY, Task, tokenizer, trained
from pairwright.datasets.reports.html_page import render_page, render_section
from pairwright.datasets.rng import make_numpy_rng
from pairwright.filters.evaluation.charts import position_plot
from pairwright.filters.evaluation.report import STYLE
from pairwright.training.attention.calibration import Calibration, Form, calibrated_relevance, descending_order
from pairwright.training.attention.decoder import DocumentDecoder
from pairwright.training.attention.prompts import DocumentPrompt
from pairwright.training.attention.question_files import MultiDocumentQuestion, contains_answer
from pairwright.training.evaluation.multi_document import MultiDocumentPlan, check_attention_conditions

LAYERS, OTHERS, DRAWS = 2, (100, 101), 2000
TESTED, TOP = 50, 3  # questions for the model of attention
FORMS: Mapping[str, tuple[Form, int, tuple[float, ...]]] = {
    "linear": ("linear", 0, (5e-5, 3e-3, 1e-2, 3e-2, 0.1)),
    "log-linear": ("log-linear", 0, (0.05, 0.1, 0.2, 0.35, 0.7, 1.0)),
    "linear, later layers": ("linear", LAYERS // 2, (5e-5, 3e-3, 1e-2, 3e-2, 0.1)),
    "log-linear, later layers": ("log-linear", LAYERS // 2, (0.05, 0.1, 0.2, 0.35, 0.7, 1.0)),
}
"""By name: form, first layer whose attention counts, temperatures that are tried."""
COSTS = (5, 10, 14)  # of documents, for milliseconds a prompt

Found = dict[str, Any]


def main() -> None:
    """Train and measure what is not there yet, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--questions", type=int, default=200, help="at each place, of a seed")
    parser.add_argument("--documents", type=int, default=10, help="an even number")
    parser.add_argument("--html", type=Path, help="page of right answers and attention by place")
    chosen = parser.parse_args()
    task, wanted = Task(chosen.documents), [*OTHERS, *range(chosen.seeds)]
    lines = chosen.results.read_text().splitlines() if chosen.results.exists() else []
    there = {one["seed"]: one for one in map(json.loads, lines)}
    for seed in wanted:
        if seed not in there:
            there[seed] = measured(task, seed, chosen.questions)
            with chosen.results.open("a") as out:
                out.write(json.dumps(there[seed]) + "\n")
            print(json.dumps(there[seed]["training"]), flush=True)
    best = temperatures([there[seed] for seed in OTHERS])
    tested = [there[seed] for seed in range(chosen.seeds)]
    tell(tested, best, task)
    if chosen.html:
        chosen.html.write_text(curves(tested, best, task), encoding="utf-8")
    print(f"\n{'K':>3}{'passes':>8}{'ms plain':>10}{'ms calibrated':>15}")
    reader = DocumentDecoder(trained(task, 0, LAYERS)[0], tokenizer(), writer=toy_prompt)
    for documents in COSTS:
        print(cost(reader, documents))


def measured(task: Task, seed: int, count: int) -> Found:
    """Train a decoder and return what it answered: by way, temperature and place, 1 or 0 for each question."""
    started = time.process_time()
    model, bend = trained(task, seed, LAYERS)
    reader = DocumentDecoder(model, tokenizer(), batch=64, writer=toy_prompt)
    asked = task.questions(seed, count)
    found: Found = {"seed": seed, "training": {"seed": seed, "learned": bend.learned, "bent": bend.bent}}
    found["training"] |= {"before": bend.before, "after": bend.after, "seconds": round(time.process_time() - started)}
    found |= {"right": {}, "recall": {}, "attention": {}}
    middle = (task.documents - 1) // 2
    for place in places(task):
        prompts = [toy_prompt(one.text, one.documents(task.documents, place)) for one in asked]
        said = reader.answers(prompts, 1)
        found["right"].setdefault("plain", {})[place] = right(said, asked)
        for first in (0, LAYERS // 2):
            attention = reader.attention(prompts, first)
            bias = [reader.baseline(prompt, DUMMY, first) for prompt in prompts]
            gold, dummy = (float(np.mean([one[place] for one in each])) for each in (attention, bias))
            found["attention"].setdefault(str(first), {})[place] = (gold, dummy)
            if place == middle:
                found["recall"]["plain" + ", later layers" * bool(first)] = hits(attention, place)
            for name, (form, counted_from, tried) in FORMS.items():
                if counted_from != first:
                    continue
                relevances = [
                    calibrated_relevance(one, other, form) for one, other in zip(attention, bias, strict=True)
                ]
                if place == middle:
                    found["recall"][name] = hits(relevances, place)
                for t in tried:
                    said = reader.answers(prompts, 1, relevances, Calibration(form, t, DUMMY))
                    found["right"].setdefault(f"{name}, t = {t:g}", {})[place] = right(said, asked)
    plan = MultiDocumentPlan(task.documents, (middle,))
    held = check_attention_conditions(reader, asked[:TESTED], plan)
    found["conditions"] = {f"{one.part} {one.measure}": one.value for one in held}
    read: Found = json.loads(json.dumps(found))  # as it is read back: keys are texts
    return read


def places(task: Task) -> tuple[int, ...]:
    """Return where the gold document is put."""
    last = task.documents - 1
    return tuple(sorted({0, task.documents // 4, last // 2, 2 * task.documents // 3, last}))


def right(said: Sequence[str], asked: Sequence[MultiDocumentQuestion]) -> list[int]:
    """Return 1 for each right answer."""
    return [int(contains_answer(one, question.answers)) for one, question in zip(said, asked, strict=True)]


def hits(found: Sequence[npt.NDArray[np.float64]], place: int) -> list[int]:
    """Return 1 where the gold document is among the first three."""
    return [int(place in descending_order(one)[:TOP]) for one in found]


def temperatures(found: Sequence[Found]) -> dict[str, str]:
    """Return for each form the way of the temperature that answers most, all places together; of equals the first."""

    def answered(way: str) -> float:
        return float(np.mean([row for one in found for row in one["right"][way].values()]))

    return {name: max((f"{name}, t = {t:g}" for t in tried), key=answered) for name, (_, _, tried) in FORMS.items()}


def tell(found: Sequence[Found], best: Mapping[str, str], task: Task) -> None:
    """Print what was found over the seeds."""
    shown = [str(place) for place in places(task)]
    inner = shown[1:-1]
    defaults = [f"{name}, t = {Calibration(FORMS[name][0]).t:g}" for name in FORMS]
    ways = dict.fromkeys(["plain", *(way for pair in zip(defaults, best.values(), strict=True) for way in pair)])
    print(f"\nbest without a liking for places: {task.ceiling:.1%}; chosen on seeds {OTHERS}: {list(best.values())}")
    print(f"\nright, gold document at {', '.join(str(int(place) + 1) for place in shown)}, then inner places and all")
    for way in ways:
        groups = [*([place] for place in shown), inner, shown]
        print(f"{way}: " + "  ".join(interval([rows_of(one, way, group) for one in found]) for group in groups))
    print("\nmore right than plain, same questions")
    for way in list(ways)[1:]:
        both = [[(rows_of(one, way, group), rows_of(one, "plain", group)) for one in found] for group in (inner, shown)]
        told = [interval([after - before for after, before in each]) for each in both]
        each = " ".join(f"{100 * float((after - before).mean()):+.0f}" for after, before in both[0])
        print(f"{way}: inner places {told[0]} (by seed {each}), all {told[1]}")
    print(f"\nRecall@{TOP}, gold document in the middle (chance {TOP / task.documents:.0%})")
    for name in found[0]["recall"]:
        rows = [np.asarray(one["recall"][name], dtype=float) for one in found]
        less = [row - np.asarray(one["recall"]["plain"][: len(row)]) for row, one in zip(rows, found, strict=True)]
        print(f"{name}: {interval(rows)}; more than plain {interval(less)}")
    for first in found[0]["attention"]:
        print(f"\nattention a token by place, layers from {int(first) + 1}: gold, dummy, difference, ratio")
        for place in shown:
            gold, dummy = np.mean([one["attention"][first][place] for one in found], axis=0)
            print(f"{int(place) + 1:>3}: {gold:.4f} {dummy:.4f} {gold - dummy:.4f} {gold / dummy:.1f}")
    for name in found[0]["conditions"]:
        print(f"{name}: " + " ".join(f"{one['conditions'][name]:.2f}" for one in found))


def curves(found: Sequence[Found], best: Mapping[str, str], task: Task) -> str:
    """Return a page: right answers by the gold document's place, and attention to the gold document and the dummy."""
    later = best["log-linear, later layers"]
    ways = {"as it is": "plain", "calibrated (linear, t = 5e-05)": "linear, t = 5e-05", f"calibrated ({later})": later}
    right = {
        name: {place + 1: float(np.mean([one["right"][way][str(place)] for one in found])) for place in places(task)}
        for name, way in ways.items()
    }
    attention = {
        f"{name} document": {
            place + 1: float(np.mean([one["attention"][str(LAYERS // 2)][str(place)][number] for one in found]))
            for place in places(task)
        }
        for number, name in enumerate(("gold", "dummy"))
    }
    drawn = [
        position_plot("Right answers by the gold document's place", right, task.documents),
        position_plot("Attention a token by place, second layer", attention, task.documents),
    ]
    body = render_section("By place", f"Means of {len(found)} decoders.", f'<div class="plots">{"".join(drawn)}</div>')
    return render_page(
        "Found in the middle", "pairwright", [f"{len(found)} decoders"], [body], STYLE.read_text(encoding="utf-8")
    )


def rows_of(one: Found, way: str, held: Sequence[str]) -> npt.NDArray[np.float64]:
    """Return the mean over places of what was right, for each question."""
    return np.asarray(np.mean([one["right"][way][place] for place in held], axis=0))


def interval(rows: Sequence[npt.NDArray[np.float64]]) -> str:
    """Return the mean of the seeds' means in percent, and its interval."""
    chance = make_numpy_rng("found intervals", len(rows))
    drawn = [
        np.mean(
            [chance.choice(rows[seed], len(rows[seed])).mean() for seed in chance.integers(0, len(rows), len(rows))]
        )
        for _ in range(DRAWS)
    ]
    low, high = np.percentile(drawn, [2.5, 97.5])
    return f"{100 * np.mean([row.mean() for row in rows]):.1f} ({100 * low:.1f} to {100 * high:.1f})"


def cost(reader: DocumentDecoder, documents: int) -> str:
    """Return passes and milliseconds of CPU a prompt, the prompts one after the other."""
    prompts = [
        toy_prompt(one.text, one.documents(documents, documents // 2)) for one in Task(documents).questions(99, 20)
    ]
    reader.attention(prompts[:1])
    spent, how = [], replace(Calibration(), dummy=DUMMY)
    for calibrated in (False, True):
        started = time.process_time()
        for prompt in prompts:
            reader.answers([prompt], 1, reader.relevances([prompt], how) if calibrated else None, how)
        spent.append(1000 * (time.process_time() - started) / len(prompts))
    return f"{documents:>3}{documents + 1:>8}{spent[0]:>10.1f}{spent[1]:>15.1f}"


def toy_prompt(question: str, documents: Sequence[str]) -> DocumentPrompt:
    """Return documents, then the question."""
    text, spans = "<s>", []
    for document in documents:
        spans.append((len(text) + 1, len(text) + 1 + len(document)))
        text += f" {document}"
    return DocumentPrompt(f"{text} ? {question}", tuple(spans), marks=False)


if __name__ == "__main__":
    main()
