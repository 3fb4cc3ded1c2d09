"""What a cloze model gains from the bundled one that its training starts from: perplexity and CPU time by pool.

    python -m benchmarks.editing.cloze_start POOL.jsonl ... [--images 4000] [--held 2000] [--start MODEL.npz]

Rows of a pool are ``{"captions": [...]}`` or ``{"caption": ...}``. Of each pool a model is trained on the captions of the
first rows, at most ``--images`` and at most four fifths, once from random weights and once from ``--start`` (default: the
bundled model, which was trained on the even lines of COCO's captions, so give other captions to be fair). Perplexity is
measured on the slots of the last ``--held`` rows, at most a fifth, whose word the pool's vocabulary has, by kind of slot.
"""

import argparse
import json
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from pairwright.generators.edits.edit_model import load_bundled_model
from pairwright.generators.edits.learning import sample_slots
from pairwright.generators.language.cloze.context import HEADS, REACH, SLOT_KINDS, ClozeContext
from pairwright.generators.language.cloze.examples import ClozeSample
from pairwright.generators.language.cloze.model import ClozeModel
from pairwright.generators.language.cloze.training import known_share, train_cloze_model
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet


def main() -> None:
    """Print a line for each pool and way to start."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pools", type=Path, nargs="+", help="JSON lines with captions")
    parser.add_argument("--images", type=int, default=4_000, help="rows that are trained on, at most")
    parser.add_argument("--held", type=int, default=2_000, help="rows that are measured on, at most")
    parser.add_argument("--start", type=Path, help="cloze model to start from, such as statistics/cloze.npz of a build")
    options = parser.parse_args()
    start = ClozeModel.load(options.start) if options.start else load_bundled_model().cloze
    print("| pool | slots | known | start | CPU s | " + " | ".join(SLOT_KINDS) + " |")
    print("| --- | ---: | ---: | --- | ---: |" + " ---: |" * len(SLOT_KINDS))
    for path in options.pools:
        rows = read_captions(path)
        held = min(options.held, len(rows) // 5)
        pool = sample_of(rows[: min(options.images, len(rows) - held)])
        measured = sample_of(rows[-held:])
        slots = sum(len(found.rows) for found in pool.kinds.values())
        for name, model in ("random", None), ("model", start):
            before = time.process_time()
            trained = train_cloze_model(pool, model)
            seconds = time.process_time() - before
            found = " | ".join(f"{value:.2f}" for value in perplexities(trained, measured).values())
            print(f"| {path.stem} | {slots:,} | {known_share(pool, start):.1%} | {name} | {seconds:.1f} | {found} |")


def read_captions(path: Path) -> list[list[str]]:
    """Return the captions of each row."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    captions = [[row.get("caption", ""), *row.get("captions", [])] for row in rows]
    return [[text for text in each if text.strip()] for each in captions]


def sample_of(rows: Sequence[Sequence[str]]) -> ClozeSample:
    """Return the slots of all captions."""
    captions = [caption for row in rows for caption in row]
    return sample_slots(captions, load_tagger().tag(captions), load_wordnet())


def perplexities(model: ClozeModel, sample: ClozeSample) -> Mapping[str, float]:
    """Return the perplexity of the slots whose word the model knows, by kind; NaN without any."""
    words, found = ("", *sample.words), {}
    for kind in SLOT_KINDS:
        index = model.index(kind)
        rows = [row for row in sample.kinds[kind].rows.tolist() if words[row[0]] in index]
        scores = model.log_probs(kind, [context_from([words[number] for number in row[1:]]) for row in rows])
        own = scores[np.arange(len(rows)), [index[words[row[0]]] for row in rows]]
        found[kind] = math.exp(-float(own.mean())) if rows else math.nan
    return found


def context_from(words: Sequence[str]) -> ClozeContext:
    """Return the context that a row of a sample states."""
    ends = (REACH, 2 * REACH, 2 * REACH + HEADS)
    bag = [word for word in words[ends[2] :] if word]
    return ClozeContext(
        tuple(words[: ends[0]]), tuple(words[ends[0] : ends[1]]), tuple(words[ends[1] : ends[2]]), tuple(bag)
    )


if __name__ == "__main__":
    main()
