"""Conversations by templates over ColorShape: speed, memory, truth by the oracle, balance of answers and letters.

Usage: ``python -m benchmarks.conversations [--turns N] [--judged N] [--types T,...] [--seed S] [--contexts FILE]``.
Scenes are made one after the other, each a pair with boxes and captions, until there are N turns, and M that the oracle
judges; none is kept.

- *turns_per_second*: of the maker alone, tagging apart, on one core; *of_all* with scenes and tagging.
- *resident*: peak memory of the process, in MiB, after a tenth of the turns and after all.
- *judged*, *true*: turns that the oracle judged, and the share of these that it finds true. It reads sentences (kinds
  conversation and brief); where ``--types`` has neither, none is judged.
- *yes*: share of "yes" among the answers to presence questions; *letters*: how often each option is right.
- *contexts*: of a file of captions and boxes (any reader's; labels of COCO), the median of the turns of images with
  boxes: all, and with near relatives counted once (`once`), at the usual number of turns at most and without a limit.
"""

import argparse
import json
import re
import resource
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import median

from pairwright.datasets.colorshape.corpus import list_box_labels, make_sample, read_scene, sample_to_pair
from pairwright.datasets.colorshape.oracle.statements import OracleVerdict
from pairwright.datasets.colorshape.oracle.turns import judge_turn
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.records import Pair
from pairwright.datasets.rng import make_rng
from pairwright.generators.conversations import question_templates
from pairwright.generators.conversations.facts import Fact
from pairwright.generators.conversations.template_generator import (
    LETTERS,
    TEMPLATE_TYPES,
    ConversationOptions,
    TemplateConversations,
)
from pairwright.generators.language.tagger import load_tagger

BATCH = 256
FEWEST = 15
RELATED = {
    "there": (
        question_templates.IS_THERE_ONE,
        question_templates.ARE_THERE_ANY,
        question_templates.IS_THERE_SOME,
        question_templates.HOW_MANY,
        question_templates.ONE_OR_OTHER,
    ),
    "place": (question_templates.WHERE, question_templates.IS_IT_THERE),
    "size": (question_templates.WHICH_LARGER, question_templates.WHICH_SMALLER),
    "deed": (question_templates.DOING, question_templates.ACTING),
}
SENTENCES = {"conversation", "brief"}  # what the oracle reads
PRESENCE = re.compile(
    r"(?:Is|Are) (?:there )?(?:a|an|any) [\w ]+? (?:in|visible in) the (?:image|picture)\?"
    r"|Can you see (?:a|an|any) [\w ]+? in the image\?|Does the (?:image show|picture contain) (?:a|an|any) [\w ]+?\?"
)


def scenes(seed: int) -> Iterator[Pair]:
    """Yield scenes without end."""
    index = 0
    while True:
        yield sample_to_pair(make_sample(seed, index))
        index += 1


def main() -> None:
    """Measure, and print one JSON object."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--judged", type=int, default=50_000)
    parser.add_argument("--types", default=",".join(TEMPLATE_TYPES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--contexts", default="")
    given = parser.parse_args()
    judges = given.judged if SENTENCES.intersection(given.types.split(",")) else 0
    maker = TemplateConversations(ConversationOptions(tuple(given.types.split(",")), list_box_labels()))
    tagger, source = load_tagger(), scenes(given.seed)
    counts, letters, presence, wrong = Counter[str](), Counter[str](), Counter[str](), list[str]()
    making, judging, judged = 0.0, 0.0, 0
    resident: dict[int, int] = {}
    began = time.perf_counter()
    while (made := counts.total()) < given.turns or judged < judges:
        if made >= given.turns / 10 and not resident:
            resident[made] = _resident()
        pairs = [next(source) for _ in range(BATCH)]
        tokens = tagger.tag([pair.caption for pair in pairs])
        for pair, words in zip(pairs, tokens, strict=True):
            start = time.perf_counter()
            rows = maker.annotate(pair, words, make_rng(given.seed, 0, maker.name, maker.version, pair.key))
            making += time.perf_counter() - start
            start = time.perf_counter()
            for row in rows:
                for question, answer in zip(row.turns[::2], row.turns[1::2], strict=True):
                    counts[row.kind] += 1
                    if row.kind == "choice":
                        letters[answer.text] += 1
                    elif PRESENCE.fullmatch(question.text.partition("\n")[0]):
                        presence[answer.text.partition(",")[0]] += 1
                    if row.kind in SENTENCES and judged < judges:
                        judged += 1
                        if judge_turn(question.text, answer.text, read_scene(pair)) is not OracleVerdict.TRUE:
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
        "true": round(1 - len(wrong) / judged, 6) if judged else None,
        "wrong": wrong[:10],
        "presence": presence.total(),
        "yes": round(presence["Yes"] / max(presence.total(), 1), 4),
        "contexts": of_contexts(given.contexts) if given.contexts else None,
        "letters": {letter: round(letters[letter] / max(letters.total(), 1), 4) for letter in LETTERS},
    }
    print(json.dumps(told, indent=1))


def of_contexts(path: str) -> dict[str, float]:
    """Return the medians of a file's turns, over its images with boxes."""
    tagger = load_tagger()
    pairs = [pair for batch in read_pairs(ReadOptions(path, verify_images="off")) for pair in batch.pairs if pair.boxes]
    tokens = tagger.tag([pair.caption for pair in pairs])
    told: dict[str, float] = {"images": len(pairs)}
    for most, name in ((24, "at most 24"), (0, "no limit")):
        maker = TemplateConversations(ConversationOptions(("conversation",), ("coco",), most))
        made = [maker.facts(pair, words, make_rng(0, pair.key)) for pair, words in zip(pairs, tokens, strict=True)]
        told[f"turns, {name}"] = median(map(len, made))
        told[f"once, {name}"] = median(len(once(facts)) for facts in made)
        told[f"below 15 once, {name}"] = sum(len(once(facts)) < FEWEST for facts in made)
    return told


def once(facts: Sequence[Fact]) -> set[tuple[object, ...]]:
    """Return what facts tell, near relatives as one.

    That a label is there, how many there are, and that it is there rather than another are one; where one stands to
    another and the other to it; which of two is larger and which smaller; what somebody does and to what; which half
    several are in, and how many of them. That there is more of one than of another is none where both are counted.
    """
    counted = {fact.about for fact in facts if fact.wordings is question_templates.HOW_MANY}
    return {
        _told(fact)
        for fact in facts
        if fact.wordings is not question_templates.MORE_THAN or not {(label,) for label in fact.about} <= counted
    }


def _told(fact: Fact) -> tuple[object, ...]:
    about = frozenset(fact.about)
    for family, wordings in RELATED.items():
        if fact.wordings in wordings:
            return family, (fact.about[0] if family == "there" else about), fact.fields.get("action", "")
    axes: dict[tuple[str, ...], int] = {question_templates.LEFT_OR_RIGHT: 0, question_templates.UPPER_OR_LOWER: 1}
    axis = axes.get(fact.wordings)
    if fact.wordings is question_templates.HOW_MANY_IN_HALF:
        axis = int(fact.fields["half"] in {"upper", "lower"})
    if axis is not None:
        return "half", about, axis
    return fact.wordings, about, *(fact.fields.get(name, "") for name in ("side", "extent", "first", "half"))


def _resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
