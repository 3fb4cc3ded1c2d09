"""Rule negatives beside other tools: time against spaCy's tagging, and attacks against published rules.

    python -m benchmarks.negatives CAPTIONS.jsonl {cpu,wall,published} [--images N]

Rows are ``{"image_id", "captions": [...]}``; every caption becomes a pair with the others of its image. What the rules
make, by type, is measured by `editing/run.py`.

- *cpu*: microseconds a caption in one process, chunk by chunk in turn: spaCy's ``pipe`` as whoever loads the same
  pipeline has it, our use of the pipeline, and the rules of all types; the median of the chunks. *ratio*: tagging and
  rules over spaCy's ``pipe``; *ratio_with_start*: over all chunks, tables and first words included. *resident_mb*: memory
  after so many captions, none of whose rows are kept.
- *wall*: what ``pairwright generate negatives`` uses on all cores, from start to end; a script that only tags the same
  captions by spaCy's ``pipe`` with as many processes (*spacy*); and such scripts in as many processes that know nothing
  of each other, each with its share of the lines (*spacy_apart*).
- *published*: attacks (`attacks.py`) on negatives as published rules make them (`published_edit_rules.py`) of the
  captions of every other image; the models that attack learn the rest.
"""

import argparse
import json
import random
import resource
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from operator import truediv
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.editing.attacks import HeldOutModels, TextRow, measure_rows
from benchmarks.editing.pool import learn_pool, read_pairs
from benchmarks.process_usage import measured
from benchmarks.published_edit_rules import plain_edits
from pairwright.datasets.rng import make_rng
from pairwright.datasets.worker_processes import available_cores
from pairwright.generators.edit_types import BENCHMARK_TYPES
from pairwright.generators.language.tagger import choose_pipeline, load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.negatives import NegativeOptions, RuleNegatives

CHUNK, BATCH = 2_000, 500
MARK = 20_000  # captions between two looks at the memory
_TAG = """
import json, sys
import spacy
if __name__ == "__main__":
    path, name, processes, start, step = sys.argv[1:]
    lines = list(open(path, encoding="utf-8"))[int(start) :: int(step)]
    captions = (caption for line in lines for caption in json.loads(line)["captions"] if caption.strip())
    for doc in spacy.load(name).pipe(captions, n_process=int(processes)):
        [(token.text, token.tag_) for token in doc]
"""


def load_plain_spacy() -> Callable[[Sequence[str]], None]:
    """Return a function that tags captions as spaCy's users do."""
    import spacy

    nlp = spacy.load(choose_pipeline())

    def tag(captions: Sequence[str]) -> None:
        for doc in nlp.pipe(captions):
            _ = [(token.text, token.tag_) for token in doc]

    return tag


def measure_cpu(lines: Sequence[str]) -> dict[str, object]:
    """Tag and edit chunk by chunk in turn; return CPU time a caption and memory on the way."""
    pairs = read_pairs([json.loads(line) for line in lines])
    tagger = load_tagger()
    pool, model = learn_pool(pairs)
    maker = RuleNegatives(load_wordnet(), pool, NegativeOptions(types=BENCHMARK_TYPES), model)
    spacy = load_plain_spacy()
    plain, tagging, rules, memory = [], [], [], {}
    for start in range(0, len(pairs), CHUNK):
        chunk = pairs[start : start + CHUNK]
        captions = [pair.caption for pair in chunk]
        before = time.process_time()
        spacy(captions)
        began = time.process_time()
        tokens = tagger.tag(captions)
        between = time.process_time()
        rngs = [make_rng(0, 0, maker.name, maker.version, pair.key) for pair in chunk]
        for first in range(0, len(chunk), BATCH):
            maker.annotate_batch(
                chunk[first : first + BATCH], tokens[first : first + BATCH], rngs[first : first + BATCH]
            )
        plain.append((began - before) / len(chunk) * 1e6)
        tagging.append((between - began) / len(chunk) * 1e6)
        rules.append((time.process_time() - between) / len(chunk) * 1e6)
        done = start + len(chunk)
        if not done % MARK or done == len(pairs):
            memory[done] = _resident_mb()
    both = [tag + edit for tag, edit in zip(tagging, rules, strict=True)]
    return {
        "captions": len(pairs),
        "spacy_us": round(median(plain)),
        "tagging_us": round(median(tagging)),
        "rules_us": round(median(rules)),
        "ratio": round(median(map(truediv, both, plain)), 2),
        "ratio_with_start": round(sum(both) / sum(plain), 2),
        "resident_mb": memory,
    }


def _resident_mb() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() // 2**20


def measure_wall(lines: Sequence[str]) -> dict[str, object]:
    """Run the command, and spaCy alone, each in processes of its own on all cores."""
    with TemporaryDirectory() as name:
        captions, script, out = (Path(name) / each for each in ("captions.jsonl", "tag.py", "negatives.jsonl"))
        captions.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        script.write_text(_TAG, encoding="utf-8")
        edit = ["-m", "pairwright", "generate", "negatives", str(captions), "--explode", "--out", str(out), "-q"]
        tag = [str(script), str(captions), choose_pipeline()]
        apart = [[*tag, "1", str(start), str(available_cores())] for start in range(available_cores())]
        return {
            "cores": available_cores(),
            "spacy": _run([*tag, str(available_cores()), "0", "1"]),
            "spacy_apart": _run(*apart),
            "generate_negatives": _run(edit),
        }


def _run(*commands: Sequence[str]) -> dict[str, float]:
    """Run Python programs beside each other until all have ended."""
    began = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with ThreadPoolExecutor(len(commands)) as threads:
        used = list(threads.map(measured, ([sys.executable, *command] for command in commands)))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "resident_mb": sum(each.resident for each in used) // 2**20,
    }


def measure_published(lines: Sequence[str]) -> dict[str, object]:
    """Return the attacks on the negatives of published rules."""
    rows, rng = [json.loads(line) for line in lines], random.Random(0)
    pairs = read_pairs(rows[::2])
    models = HeldOutModels.fit([pair.caption for pair in read_pairs(rows[1::2])])
    made = defaultdict(list)
    for pair, words in zip(pairs, load_tagger().tag([pair.caption for pair in pairs]), strict=True):
        for kind, edit in plain_edits().items():
            if text := edit(pair.caption, words, rng):
                made[kind].append(TextRow(pair.source_id, pair.caption, text))
    return {kind: {"rows": len(rows), **measure_rows(rows[:5_000], models)} for kind, rows in made.items()}


PARTS: dict[str, Callable[[Sequence[str]], dict[str, object]]] = {
    "cpu": measure_cpu,
    "wall": measure_wall,
    "published": measure_published,
}


def main() -> None:
    """Print the figures of a part as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--images", type=int, default=0, help="only the first N images")
    asked = parser.parse_args()
    lines = asked.captions.read_text(encoding="utf-8").splitlines()[: asked.images or None]
    print(json.dumps(PARTS[asked.part](lines), indent=1))


if __name__ == "__main__":
    main()
