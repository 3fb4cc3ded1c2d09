"""Class lists against a caption pool: how many of the hits name the class, with bare names, with templates, as lines.

    python -m benchmarks.class_retrieval CAPTIONS QUERIES.json [--half second] [--k 20] [--encoder lexical] [--by caption]

CAPTIONS is any text-only input with several captions an image; QUERIES.json holds class lists with templates (REACT's, say).
An image *names* a class when one of its captions holds a name of the class (any of its synonyms) as whole words, in
their order, whatever case and punctuation; each word may stand in the singular or in the plural (a final s, es or ies).
Nothing else counts: "kitten" does not name cat, and "hot dog" does name dog.

Each set is asked in three ways: ``names`` (template "{}"), ``templates`` (all of the set), and ``lines`` (the first template
filled in, as lines of a .txt). Columns, each a mean over classes, and within a class over its queries:

    prec@20   share of the 20 best images that name the class; classes that at least 20 images name
    rare      images among the 20 best that name the class / images that do; classes that 1 to 19 images name
    covered   classes that count as covered, of all
    junk      covered classes of which less than a fifth of the returned images name the class

``--half`` takes half of the images (drawn by a seeded permutation) and every other set, so that what was tuned on the first
half can be reported on the second. ``--by first`` indexes the first caption of an image alone. ``--classes cat dog``
asks for these, with the template "a photo of a {}.", in place of QUERIES.json's sets.
"""

import argparse
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.records import Pair
from pairwright.datasets.rng import make_numpy_rng
from pairwright.indexes.building.build import build_index_from_pairs
from pairwright.indexes.building.open import IndexWithEncoder, open_index_with_encoder
from pairwright.indexes.encoders.hashed_features import split_words
from pairwright.indexes.encoders.registry import EncoderOptions
from pairwright.indexes.retrieval.queries import Query, queries_from_classes, queries_from_lines
from pairwright.indexes.retrieval.results import RetrieveOptions
from pairwright.indexes.retrieval.retrieve import retrieve

WAYS = ("names", "templates", "lines")
JUNK = 0.2


class NamedImages:
    """Finds the images whose captions hold a name."""

    def __init__(self, pool: Sequence[Pair]) -> None:
        """Read the captions of the pool."""
        self._captions = [(pair.key, tuple(map(singular, split_words(text)))) for pair in pool for text in texts(pair)]
        self._by_word: dict[str, set[int]] = defaultdict(set)
        for number, (_, words) in enumerate(self._captions):
            for word in words:
                self._by_word[word].add(number)

    def of(self, names: Iterable[str]) -> set[str]:
        """Return the keys of the images that one of ``names`` names."""
        found: set[str] = set()
        for name in names:
            words = tuple(map(singular, split_words(name)))
            if words:
                numbers = set.intersection(*(self._by_word.get(word, set()) for word in words))
                found |= {self._captions[n][0] for n in numbers if holds(self._captions[n][1], words)}
        return found


@dataclass(frozen=True)
class Row:
    """What one way of asking for a set gave; see the module for the columns."""

    frequent: int
    precision: float
    rare: int
    found: float
    covered: int
    junk: int
    classes: int
    hits: int
    right: int


def texts(pair: Pair) -> tuple[str, ...]:
    """Return all captions of an image."""
    return (pair.caption, *pair.captions)


def singular(word: str) -> str:
    """Return one form for the singular and the regular plural of a word."""
    for ending, instead in (("ies", "y"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("sses", "ss"), ("zes", "z")):
        if word.endswith(ending) and len(word) > len(ending) + 1:
            return word.removesuffix(ending) + instead
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def holds(words: tuple[str, ...], name: tuple[str, ...]) -> bool:
    """Say whether a caption holds a name's words side by side."""
    return any(words[start : start + len(name)] == name for start in range(len(words) - len(name) + 1))


def queries_of(one: Mapping[str, Any], way: str) -> list[Query]:
    """Return the queries of a set for one way of asking."""
    if way == "names":
        return queries_from_classes({"classes": one["classes"], "templates": ["{}"]})
    if way == "templates":
        return queries_from_classes(dict(one))
    asked = queries_from_classes({"classes": one["classes"], "templates": one["templates"][:1]})
    lines = queries_from_lines(query.text for query in asked)
    return [replace(line, concept=query.concept) for line, query in zip(lines, asked, strict=True)]


def measured(opened: IndexWithEncoder, named: NamedImages, one: Mapping[str, Any], way: str, k: int) -> Row:
    """Ask for a set and count the hits that name their class."""
    queries = queries_of(one, way)
    names: dict[str, set[str]] = defaultdict(set)
    for query in queries_of(one, "names"):
        names[query.concept].add(query.name)
    truth = {concept: named.of(found) for concept, found in names.items()}
    found = retrieve(opened.index, opened.encoder, queries, RetrieveOptions(k))
    counts: dict[str, list[int]] = defaultdict(list)
    for query, keys in zip(queries, keys_by_query(found.hits, len(queries)), strict=True):
        counts[query.concept].append(sum(key in truth[query.concept] for key in keys))
    means = {concept: float(np.mean(count)) for concept, count in counts.items()}
    frequent = [concept for concept in truth if len(truth[concept]) >= k]
    rare = [concept for concept in truth if 0 < len(truth[concept]) < k]
    covered = set(found.coverage.filter("covered")["concept"])
    return Row(
        frequent=len(frequent),
        precision=float(np.mean([means[c] / k for c in frequent])) if frequent else float("nan"),
        rare=len(rare),
        found=float(np.mean([means[c] / len(truth[c]) for c in rare])) if rare else float("nan"),
        covered=len(covered),
        junk=sum(means[concept] < JUNK * min(k, opened.index.info.pairs) for concept in covered),
        classes=len(truth),
        hits=found.hits.height,
        right=sum(map(sum, counts.values())),
    )


def keys_by_query(hits: Any, count: int) -> list[list[str]]:
    """Return the keys of each query's hits."""
    keys: list[list[str]] = [[] for _ in range(count)]
    for query, key in hits.select("query", "key").iter_rows():
        keys[query].append(key)
    return keys


def line(name: str, way: str, row: Row) -> str:
    """Return one line of the table."""
    precision, found = (f"{value:.3f}" if not np.isnan(value) else "-" for value in (row.precision, row.found))
    return (
        f"{name:<32}{way:<11}{row.frequent:>6}{precision:>9}{row.rare:>7}{found:>8}"
        f"{row.covered:>9}{row.junk:>6}{row.classes:>9}{row.right:>9} of {row.hits:,}"
    )


def read_pool(source: str, half: str, by: str) -> list[Pair]:
    """Read the images, half of them by a seeded permutation if asked."""
    pairs = [pair for batch in read_pairs(ReadOptions(source, verify_images="off")) for pair in batch.pairs]
    order = make_numpy_rng("class_retrieval", "images").permutation(len(pairs))
    middle = len(pairs) // 2
    chosen = {"all": order, "first": order[:middle], "second": order[middle:]}[half]
    pool = [pairs[number] for number in np.sort(chosen)]
    return pool if by == "all" else [replace(pair, captions=()) for pair in pool]


def sets_of(path: Path, half: str, classes: Sequence[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the class lists, every other one by name if asked."""
    if classes:
        yield "given", {"classes": list(classes), "templates": ["a photo of a {}."]}
        return
    content = orjson.loads(path.read_bytes())
    names = sorted(content)
    for name in {"all": names, "first": names[::2], "second": names[1::2]}[half]:
        yield name, content[name]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions")
    parser.add_argument("queries", type=Path)
    parser.add_argument("--half", choices=("all", "first", "second"), default="all")
    parser.add_argument("--k", type=int, default=20)
    parser.add_argument("--encoder", default="lexical")
    parser.add_argument("--by", choices=("all", "first"), default="all", help="captions of an image that are indexed")
    parser.add_argument("--classes", nargs="+", default=[])
    chosen = parser.parse_args()
    whole = read_pool(chosen.captions, chosen.half, "all")
    pool = read_pool(chosen.captions, chosen.half, chosen.by)
    named = NamedImages(whole)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        info = build_index_from_pairs(
            lambda: [pool], Path(folder) / "index", encoder=EncoderOptions(name=chosen.encoder)
        )
        seconds = time.perf_counter() - started
        print(
            f"{info.pairs:,} images, {info.captions:,} captions indexed in {seconds:.1f} s, {info.bytes / 2**20:.0f} MiB"
        )
        opened = open_index_with_encoder(Path(folder) / "index")
        print(
            f"{'':<32}{'':<11}{'freq.':>6}{f'prec@{chosen.k}':>9}{'rare':>7}{'found':>8}"
            f"{'covered':>9}{'junk':>6}{'classes':>9}   hits that name"
        )
        for name, one in sets_of(chosen.queries, chosen.half, chosen.classes):
            for way in WAYS:
                print(line(name, way, measured(opened, named, one, way, chosen.k)), flush=True)


if __name__ == "__main__":
    main()
