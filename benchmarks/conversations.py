"""Conversations by templates over ColorShape: speed, memory, truth by the oracle, balance of answers and letters.

Usage: ``python benchmarks/conversations.py [--turns N] [--judged N] [--types T,...] [--seed S]``. Scenes are made one
after the other, each a pair with boxes and captions, until there are N turns; none is kept.

- *turns_per_second*: of the maker alone, tagging apart, on one core; *of_all* with scenes and tagging.
- *resident*: peak memory of the process, in MiB, after a tenth of the turns and after all.
- *true*: share of the first ``--judged`` turns that the oracle finds true (kinds conversation and brief).
- *yes*: share of "yes" among the answers to presence questions; *letters*: how often each option is right.
"""

import argparse
import json
import re
import resource
import time
from collections import Counter
from collections.abc import Iterator

from pairwright.datasets.chance import stream
from pairwright.datasets.colorshape.corpus import make_sample, sample_pair, scene_of, vocabulary
from pairwright.datasets.colorshape.oracle import Verdict, judge_turn
from pairwright.datasets.records import Pair
from pairwright.generators.conversations import LETTERS, TYPES, ConversationOptions, TemplateConversations
from pairwright.generators.language.tagger import load_tagger

BATCH = 256
SENTENCES = {"conversation", "brief"}  # what the oracle reads
PRESENCE = re.compile(
    r"(?:Is|Are) (?:there )?(?:a|an|any) [\w ]+? (?:in|visible in) the (?:image|picture)\?"
    r"|Can you see (?:a|an|any) [\w ]+? in the image\?|Does the (?:image show|picture contain) (?:a|an|any) [\w ]+?\?"
)


def scenes(seed: int) -> Iterator[Pair]:
    """Yield scenes without end."""
    index = 0
    while True:
        yield sample_pair(make_sample(seed, index))
        index += 1


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--judged", type=int, default=50_000)
    parser.add_argument("--types", default=",".join(TYPES))
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    maker = TemplateConversations(ConversationOptions(tuple(given.types.split(",")), vocabulary()))
    tagger, source = load_tagger(), scenes(given.seed)
    counts, letters, presence, wrong = Counter[str](), Counter[str](), Counter[str](), list[str]()
    making, judging, judged = 0.0, 0.0, 0
    resident: dict[int, int] = {}
    began = time.perf_counter()
    while (made := counts.total()) < given.turns:
        if made >= given.turns / 10 and not resident:
            resident[made] = _resident()
        pairs = [next(source) for _ in range(BATCH)]
        tokens = tagger.tag([pair.caption for pair in pairs])
        for pair, words in zip(pairs, tokens, strict=True):
            start = time.perf_counter()
            rows = maker.annotate(pair, words, stream(given.seed, 0, maker.name, maker.version, pair.key))
            making += time.perf_counter() - start
            start = time.perf_counter()
            for row in rows:
                for question, answer in zip(row.turns[::2], row.turns[1::2], strict=True):
                    counts[row.kind] += 1
                    if row.kind == "choice":
                        letters[answer.text] += 1
                    elif PRESENCE.fullmatch(question.text.partition("\n")[0]):
                        presence[answer.text.partition(",")[0]] += 1
                    if row.kind in SENTENCES and judged < given.judged:
                        judged += 1
                        if judge_turn(question.text, answer.text, scene_of(pair)) is not Verdict.TRUE:
                            wrong.append(f"{question.text} {answer.text}")
            judging += time.perf_counter() - start
    resident[counts.total()] = _resident()
    whole = time.perf_counter() - began - judging
    told = {
        "turns": dict(counts),
        "turns_per_second": round(counts.total() / making),
        "of_all": round(counts.total() / whole),
        "resident": resident,
        "judged": judged,
        "true": round(1 - len(wrong) / max(judged, 1), 6),
        "wrong": wrong[:10],
        "presence": presence.total(),
        "yes": round(presence["Yes"] / max(presence.total(), 1), 4),
        "letters": {letter: round(letters[letter] / max(letters.total(), 1), 4) for letter in LETTERS},
    }
    print(json.dumps(told, indent=1))


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
