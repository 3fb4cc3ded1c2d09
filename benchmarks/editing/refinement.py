"""What `refine` keeps of rule edits, and what attacks that took no part find in the rows that it keeps.

``generate negatives --both-sides --per-type 6`` on one caption per image, then ``refine --fix both`` with and without
``--add-attacks meaning``. Half of the captions of other images train its scorers; trigram models of the other half, and
where MiniLM took no part, a classifier of its sentence embeddings, are the held-out attacks.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.editing.attacks import HeldOutModels, TextRow, measure_classifiers, measure_fixed
from benchmarks.process_usage import measured

PER_TYPE = 6
TRIGRAMS = ("trigram_total", "trigram_mean")


def measure_refinement(captions: Path, pool: Path, others: Sequence[str], seed: int) -> dict[str, Any]:
    """Return what is kept, the attacks that took part before and after, and those that did not.

    Args:
        captions: file of images, ``{"image_id", "captions"}``; the first caption of each is edited.
        pool: file of images whose words the rules use.
        others: captions of other images.
        seed: of the commands.
    """
    folder = captions.parent
    models = HeldOutModels.fit(others[1::2])
    corpus, rows = folder / "corpus.jsonl", folder / "rows.jsonl"
    lines = (json.dumps({"image_id": f"corpus-{at}", "captions": [text]}) for at, text in enumerate(others[::2]))
    corpus.write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = ["--both-sides", "--per-type", str(PER_TYPE), "--seed", str(seed), "-q", "--json", "--pool", str(pool)]
    _run("generate", "negatives", str(captions), *options, "--out", str(rows))
    found: dict[str, Any] = {}
    for label, added in (("refinement with meaning", ["--add-attacks", "meaning"]), ("refinement", [])):
        out = folder / "refined.jsonl"
        asked = ["--fix", "both", "--corpus", str(corpus), "--seed", str(seed), "-q", "--json", *added]
        code, summary, seconds = _run("refine", str(rows), "--out", str(out), *asked)
        kept = [row for line in out.open(encoding="utf-8") if (row := json.loads(line))["status"] == "kept"]
        texts = [TextRow(row["image"], row["positive"] or row["caption"], row["negative"]) for row in kept]
        held_out = {name: measure_fixed(texts, models)[name] for name in TRIGRAMS}
        if not added:
            held_out |= measure_classifiers(texts, ["meaning"])
        found[label] = {
            "in": summary["in"],
            "kept": summary["kept"],
            "share": round(summary["kept"] / max(summary["in"], 1), 4),
            "code": code,
            "cpu": round(seconds),
            "attacks": summary["attacks"],
            "by_type": {kind: _worst(kind, one, kept) for kind, one in summary["by_type"].items()},
            "held_out": held_out,
        }
    return found


def _worst(kind: str, one: Mapping[str, Any], kept: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    # The summary's accuracies are folded, so the classifiers of audit are run again to see which way they lean.
    name, attack = max(one["attacks"].items(), key=lambda item: item[1]["after"])
    texts = [
        TextRow(row["image"], row["positive"] or row["caption"], row["negative"])
        for row in kept
        if kind == f"{row['form']}-{row['target']}"
    ]
    lean = measure_classifiers(texts) if len(texts) > 1 else {}
    return {"in": one["in"], "kept": one["kept"], "worst": name, "accuracy": attack["after"], **lean}


def _run(*arguments: str) -> tuple[int, dict[str, Any], float]:
    used = measured([sys.executable, "-m", "pairwright", *arguments], check=False)
    if used.code not in {0, 3}:
        raise SystemExit(f"{' '.join(arguments)}: exit code {used.code}")
    return used.code, json.loads(used.stdout), used.cpu
