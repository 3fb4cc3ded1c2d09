"""Functions of an lmms-eval task with two-choice questions; every negative is asked in both orders."""

import re
from collections import defaultdict
from typing import Any

Item = dict[str, Any]
_LETTER = re.compile(r"\b([AB])\b")


def doc_to_visual(doc: Item) -> list[Any]:
    """Return the image of a question."""
    return [doc["image"].convert("RGB")]


def doc_to_text(doc: Item, lmms_eval_specific_kwargs: Item | None = None) -> str:  # noqa: ARG001 - lmms-eval names it
    """Return the question with its options."""
    return f"{doc['question']}\nA. {doc['A']}\nB. {doc['B']}\nAnswer with A or B."


def process_results(doc: Item, results: list[str]) -> dict[str, Item]:
    """Return what each metric needs of an answer: the first letter A or B that stands alone."""
    found = _LETTER.search(results[0])
    chosen = found[1] if found else ""
    item = {"pair": doc["pair"], "right": chosen == doc["answer"], "chosen": chosen}
    return {"accuracy": item, "both_orders": item, "answered_a": item}


def accuracy(items: list[Item]) -> float:
    """Return the share of right answers."""
    return sum(bool(item["right"]) for item in items) / len(items)


def both_orders(items: list[Item]) -> float:
    """Return the share of negatives that are answered right in both orders."""
    of_pair = defaultdict(list)
    for item in items:
        of_pair[item["pair"]].append(item["right"])
    return sum(map(all, of_pair.values())) / len(of_pair)


def answered_a(items: list[Item]) -> float:
    """Return the share of answers A; one half shows no preference for a position."""
    return sum(bool(item["chosen"] == "A") for item in items) / len(items)
