"""Hard negatives by rules over real captions: yield by type, speed against tagging, and what a blind model sees.

Usage: ``python -m benchmarks.negatives CAPTIONS.jsonl [--images N] [--sample K] [--type T] [--seed S] [--speed]
[--wall]``; rows are ``{"image_id", "captions": [...]}``. Every caption becomes a pair, with the others of its image beside it.

- *yield*: share of captions with a kept negative; *given*: of those that have an adjective, or a preposition or verb.
- *ratio*: CPU time of tagging and the rules of all types for benchmarks over that of spaCy's ``pipe`` alone, as whoever
  loads the same pipeline has it, in one process, chunk by chunk in turn; the median of the chunks, and *with_start* over
  all of them, tables and first words included. *ratio_to_our_tagging*: over our own use of the pipeline, which takes
  less time than spaCy's own.
- *resident*: memory of the process after so many captions, none of whose rows are kept.
- *wall* (with ``--wall``): seconds, CPU seconds and the largest process of the whole verb, ``pairwright generate
  negatives``, on all cores, from start to end, words counted and rows written; and of a script that only tags the same
  captions by spaCy's ``pipe`` with as many processes (*spacy*), or in as many processes that know nothing of each other,
  each with its share of the lines (*spacy_apart*: no document is sent from one to another).
- *unknown*: share of the words put in that no caption of the pool has.
- *blind*: folded accuracy of a trigram model that never read a caption of the image under test, by mean and by total
  log-probability; *length*: of picking the shorter text. For both-sides rows the positive is the rewritten one.
- *plain*: the same for negatives as published rules make them of the same captions (`plain_edits.py`).
- *no last resorts*: replace-relation without the denials ("without", "far from").
"""

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from operator import truediv
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.published_edit_rules import plain_edits
from pairwright.datasets.records import Annotation, Pair, pair_key
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.content_counts import annotation_type
from pairwright.filters.attacks.accuracy import compute_attack_accuracy
from pairwright.flows.runners.process_pool import cores
from pairwright.generators.balance import BalanceReport
from pairwright.generators.language.pool_statistics import PoolCounts, PoolStatistics, count_captions
from pairwright.generators.language.tagger import choose_pipeline, load_tagger
from pairwright.generators.language.tokens import Token
from pairwright.generators.language.trigram_model import TrigramModel
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.negatives import FOR_BENCHMARKS, TYPES, NegativeOptions, RuleNegatives

CHUNK = 2000
MARK = 20_000  # captions between two looks at the memory
Rows = dict[str, list[tuple[Annotation, str]]]  # type to negatives, each with the text that it is compared with
Texts = dict[str, list[tuple[str, str]]]  # type to negatives and what they are compared with


def pairs_of(path: Path, images: int) -> list[Pair]:
    """Return a pair for every caption of the first images."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()[: images or None]]
    return [
        Pair(
            pair_key("benchmark", str(row["image_id"]), caption),
            caption,
            source_id=str(row["image_id"]),
            captions=tuple(other for at, other in enumerate(row["captions"]) if at != number),
        )
        for row in rows
        for number, caption in enumerate(row["captions"])
        if caption.strip()
    ]


def counted(pairs: Sequence[Pair]) -> PoolStatistics:
    """Return the statistics of the captions, whose tokens are not kept."""
    tagger, counts = load_tagger(), PoolCounts()
    for start in range(0, len(pairs), CHUNK):
        counts = counts.merged(count_captions(tagger.tag([pair.caption for pair in pairs[start : start + CHUNK]])))
    return counts.frozen()


def annotated(maker: RuleNegatives, pair: Pair, tokens: Sequence[Token], seed: int) -> list[Annotation]:
    """Return what a stage would for a pair."""
    return maker.annotate(pair, tokens, make_rng(seed, 0, maker.name, maker.version, pair.key))


def resident_mb() -> int:
    """Return the memory of this process as it is now, in MB (Linux)."""
    return _resident(os.getpid()) // 2**20


def plain_spacy() -> Callable[[Sequence[str]], None]:
    """Return a function that tags captions as spaCy's users do."""
    import spacy

    nlp = spacy.load(choose_pipeline())

    def tag(captions: Sequence[str]) -> None:
        for doc in nlp.pipe(captions):
            _ = [(token.text, token.tag_) for token in doc]

    return tag


def timed(pairs: Sequence[Pair], pool: PoolStatistics, seed: int) -> dict[str, object]:
    """Tag and edit chunk by chunk in turn, keeping no row; return CPU time a caption and memory on the way."""
    tagger, maker = load_tagger(), RuleNegatives(load_wordnet(), pool, NegativeOptions(types=FOR_BENCHMARKS))
    spacy = plain_spacy()
    plain, tagging, rules, memory = [], [], [], {}
    for start in range(0, len(pairs), CHUNK):
        chunk = pairs[start : start + CHUNK]
        captions = [pair.caption for pair in chunk]
        before = time.process_time()
        spacy(captions)
        began = time.process_time()
        tokens = tagger.tag(captions)
        between = time.process_time()
        for pair, words in zip(chunk, tokens, strict=True):
            annotated(maker, pair, words, seed)
        plain.append((began - before) / len(chunk) * 1e6)
        tagging.append((between - began) / len(chunk) * 1e6)
        rules.append((time.process_time() - between) / len(chunk) * 1e6)
        done = start + len(chunk)
        if not done % MARK or done == len(pairs):
            memory[done] = resident_mb()
    both = [tag + edit for tag, edit in zip(tagging, rules, strict=True)]
    return {
        "spacy_us": round(median(plain)),
        "tagging_us": round(median(tagging)),
        "rules_us": round(median(rules)),
        "ratio": round(median(map(truediv, both, plain)), 2),
        "ratio_with_start": round(sum(both) / sum(plain), 2),
        "ratio_to_our_tagging": round(median(map(truediv, both, tagging)), 2),
        "resident_mb": memory,
    }


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


def walled(path: Path, images: int) -> dict[str, dict[str, float]]:
    """Run the verb, and spaCy alone, over the first images of a file, each in processes of its own on all cores."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first, script = folder / "captions.jsonl", folder / "tag.py"
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        first.write_text("".join(lines[: images or None]), encoding="utf-8")
        script.write_text(_TAG, encoding="utf-8")
        verb = ["-m", "pairwright", "generate", "negatives", str(first), "--explode", "--on-error", "skip"]
        tag = [str(script), str(first), choose_pipeline()]
        found = {
            "spacy": _run([*tag, str(cores()), "0", "1"]),
            "spacy_apart": _run(*([*tag, "1", str(start), str(cores())] for start in range(cores()))),
            "generate_negatives": _run([*verb, "--out", str(folder / "negatives.jsonl")]),
        }
    verb_s = found["generate_negatives"]
    ratios = {
        f"ratio_to_{peer}": {name: round(verb_s[name] / found[peer][name], 2) for name in ("seconds", "cpu_seconds")}
        for peer in ("spacy", "spacy_apart")
    }
    return found | ratios


def _run(*commands: Sequence[str]) -> dict[str, float]:
    """Run Python programs beside each other until all have ended."""
    before, began, largest = os.times(), time.perf_counter(), 0
    running = [subprocess.Popen([sys.executable, *each], stdout=subprocess.DEVNULL) for each in commands]
    while any(process.poll() is None for process in running):
        largest = max(largest, *(_resident(each) for process in running for each in _family(process.pid)))
        time.sleep(0.5)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    for process, arguments in zip(running, commands, strict=True):
        if process.returncode:
            raise SystemExit(f"{' '.join(arguments)} ended with {process.returncode}.")
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "cpu_seconds": round(used, 1),
        "largest_process_mb": largest // 2**20,
    }


def _family(parent: int) -> list[int]:
    """Return a process and those that it started (Linux)."""
    try:
        started = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii").split()
    except OSError:
        started = []
    return [parent, *(each for child in started for each in _family(int(child)))]


def _resident(process: int) -> int:
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    except OSError:
        return 0  # it has ended
    return pages * resource.getpagesize()


def rows_of(rows: Sequence[Annotation]) -> Iterator[tuple[Annotation, str]]:
    """Yield the kept negatives of a pair with the texts that they are compared with."""
    texts = {row.id: row.text for row in rows}
    for row in rows:
        if row.kind == "hard_negative" and row.status == "kept":
            yield row, texts.get(row.positive_id, row.source_text)


def has_tag(tokens: Sequence[Token], *tags: str) -> bool:
    """Whether a token has one of the tags or universal tags."""
    return any(token.tag in tags or token.pos in tags for token in tokens)


def unknown_share(rows: Rows, pool: PoolStatistics) -> float:
    """Return the share of the words put in that the pool has not; swaps and shuffles put in none."""
    words = [word for kind, found in rows.items() for row, _ in found if kind.startswith(("replace", "add"))
             for edit in row.edits for word in edit.after.lower().strip(" ,").split()]  # fmt: skip
    return round(sum(not pool.form_frequency(word) for word in words) / max(len(words), 1), 5)


def blind(rows: Texts, model: TrigramModel) -> dict[str, dict[str, float]]:
    """Return the accuracies of the blind attacks by type."""
    found = {}
    for kind, pairs in sorted(rows.items()):
        gaps = {}
        sides = [[negative for negative, _ in pairs], [text for _, text in pairs]]
        (negative, tokens), (positive, other_tokens) = (model.log_prob(texts) for texts in sides)
        gaps["mean"] = positive / other_tokens - negative / tokens
        gaps["total"] = positive - negative
        gaps["length"] = np.array([len(negative) - len(text) for negative, text in pairs], float)
        found[kind] = {"rows": len(pairs)} | {
            name: round(compute_attack_accuracy(gap), 3) for name, gap in gaps.items()
        }
    return found


def texts_of(rows: Rows) -> Texts:
    """Return the texts of rows."""
    return {kind: [(row.text, text) for row, text in found] for kind, found in rows.items()}


def plain(pairs: Sequence[Pair], tokens: Sequence[Sequence[Token]], seed: int) -> Texts:
    """Return the negatives that published rules make of the captions under test."""
    rng, made = random.Random(seed), defaultdict(list)
    for kind, edit in plain_edits(load_wordnet()).items():
        for pair, words in zip(pairs, tokens, strict=True):
            text = edit(pair.caption, words, rng) if under_test(pair) else None
            if text:
                made[kind].append((text, pair.caption))
    return made


def without_last_resorts(pairs: Sequence[Pair], tokens: Sequence[Sequence[Token]], pool: PoolStatistics) -> Texts:
    """Return the relations that can be exchanged, of the captions under test."""
    maker = RuleNegatives(load_wordnet(), pool, NegativeOptions(types=("replace-relation",), last_resorts=False))
    made = [annotated(maker, pair, words, 0) for pair, words in zip(pairs, tokens, strict=True) if under_test(pair)]
    return {"replace-relation": [(row.text, text) for rows in made for row, text in rows_of(rows)]}


def under_test(pair: Pair) -> bool:
    """Whether the trigram model has not read a caption of the image."""
    return not int(pair.source_id) % 2


def main() -> None:
    """Print the figures as JSON, and a sample of each type."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path)
    parser.add_argument("--images", type=int, default=0, help="only the first N images")
    parser.add_argument("--sample", type=int, default=0, help="print K texts of each type")
    parser.add_argument("--type", choices=TYPES, help="only this type in the sample")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--speed", action="store_true", help="only time and memory")
    parser.add_argument("--wall", action="store_true", help="only time and memory of the whole verb, on all cores")
    asked = parser.parse_args()
    if asked.wall:
        print(json.dumps({"cores": cores(), "wall": walled(asked.captions, asked.images)}, indent=1))
        return
    pairs = pairs_of(asked.captions, asked.images)
    if asked.speed:
        figures: dict[str, object] = {"captions": len(pairs), "speed": timed(pairs, counted(pairs), asked.seed)}
        print(json.dumps(figures, indent=1))
        return
    tokens = load_tagger().tag([pair.caption for pair in pairs])
    pool = count_captions(tokens).frozen()
    train = [pair.caption for pair in pairs if not under_test(pair)]
    model = TrigramModel.fit(train)
    figures = {"captions": len(pairs), "speed": timed(pairs, pool, asked.seed)}
    for both in (False, True):
        maker = RuleNegatives(load_wordnet(), pool, NegativeOptions(both_sides=both))
        account, rows, given = BalanceReport(), defaultdict(list), Counter[str]()
        for pair, words in zip(pairs, tokens, strict=True):
            made = annotated(maker, pair, words, asked.seed)
            account.add(made)
            kept = {annotation_type(row) for row, _ in rows_of(made)}
            given.update(_given(words, kept))
            if under_test(pair):
                for row, text in rows_of(made):
                    rows[annotation_type(row)].append((row, text))
        figures["both sides" if both else "captions as written"] = {
            "yield": {kind: round(counts["kept"] / len(pairs), 4) for kind, counts in account.as_json().items()},
            "top_share": {
                kind: (*counts["most_used"][:1], counts["top_share"]) for kind, counts in account.as_json().items()
            },
            "given": {
                name: round(given[name + " kept"] / max(given[name], 1), 4) for name in ("adjective", "relation")
            },
            "unknown": unknown_share(rows, pool),
            "blind": blind(texts_of(rows), model),
        }
        _print_sample(rows, asked.sample, asked.type, asked.seed)
    figures["no last resorts"] = blind(without_last_resorts(pairs, tokens, pool), model)
    figures["plain"] = blind(plain(pairs, tokens, asked.seed), model)
    print(json.dumps(figures, indent=1))


def _given(words: Sequence[Token], kept: set[str]) -> Iterator[str]:
    tags = {"adjective": has_tag(words, "JJ"), "relation": has_tag(words, "IN", "RP", "VERB")}
    for name, kind in (("adjective", "replace-attribute"), ("relation", "replace-relation")):
        if tags[name]:
            yield name
            if kind in kept:
                yield f"{name} kept"


def _print_sample(rows: Rows, size: int, only: str | None, seed: int) -> None:
    for kind, found in sorted(rows.items()):
        if not only or kind == only:
            for row, text in random.Random(seed).sample(found, min(size, len(found))):
                print(f"{kind:18} {row.text}    <- {text}")


if __name__ == "__main__":
    main()
