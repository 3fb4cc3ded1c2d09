"""Recall of the lexical encoder on captions that describe the same image, beside plain TF-IDF.

One caption of each of some images is the query, the other captions of all images are the pool, and those of the same
image are what should be found. Prints recall@10 for several vector lengths, its difference to the exact cosine of
plain TF-IDF vectors (scikit-learn's defaults, no projection) with a paired bootstrap interval, and the time to encode.

    python benchmarks/lexical_recall.py CAPTIONS.jsonl [--queries 2000] [--dims 256 384 512 768]

A line of CAPTIONS.jsonl is ``{"captions": [...]}``, one image a line. Without scikit-learn the peer is left out, with
a note.
"""

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.chance import array_stream
from pairwright.indexes.lexical import DEFAULT_DIM, LexicalEncoder

K = 10
BLOCK = 200  # queries that are scored at a time
Scores = Callable[[slice], NDArray[np.float32]]


@dataclass(frozen=True)
class Task:
    """Queries, pool, and the image number of each."""

    queries: list[str]
    query_images: NDArray[np.int64]
    pool: list[str]
    pool_images: NDArray[np.int64]


def read_task(path: Path, wanted: int) -> Task:
    """Draw ``wanted`` images with two captions or more; the first caption of each is the query."""
    images = [json.loads(line)["captions"] for line in path.read_text(encoding="utf-8").splitlines()]
    able = [number for number, captions in enumerate(images) if len(captions) > 1]
    drawn = set(array_stream("lexical_recall").permutation(able)[:wanted].tolist())
    rest = [(text, n) for n, captions in enumerate(images) for text in captions[int(n in drawn) :]]
    asked = sorted(drawn)
    return Task(
        [images[n][0] for n in asked], np.array(asked), [text for text, _ in rest], np.array([n for _, n in rest])
    )


def recalls(task: Task, scores: Scores) -> NDArray[np.float64]:
    """Return recall@10 of each query: of the captions of its image, the share among the ten best."""
    relevant = np.bincount(task.pool_images, minlength=int(task.query_images.max()) + 1)[task.query_images]
    found = []
    for start in range(0, len(task.queries), BLOCK):
        part = slice(start, start + BLOCK)
        best = np.argpartition(-scores(part), K, axis=1)[:, :K]
        found.append((task.pool_images[best] == task.query_images[part, None]).sum(axis=1))
    return np.concatenate(found) / relevant


def lexical(task: Task, dim: int) -> tuple[NDArray[np.float64], float]:
    """Return the recalls at one vector length, and the seconds to fit and encode the pool."""
    started = time.perf_counter()
    encoder = LexicalEncoder.fit(task.pool, dim=dim)
    pool = encoder.encode_texts(task.pool)
    seconds = time.perf_counter() - started
    queries = encoder.encode_texts(task.queries)
    return recalls(task, lambda part: queries[part] @ pool.T), seconds


def plain_tf_idf(task: Task) -> tuple[NDArray[np.float64], float] | None:
    """Return the same for scikit-learn's TF-IDF, compared exactly; None when it is not installed."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError:
        return None
    started = time.perf_counter()
    vectorizer = TfidfVectorizer(dtype=np.float32)
    pool = vectorizer.fit_transform(task.pool)
    seconds = time.perf_counter() - started
    queries = vectorizer.transform(task.queries)
    by_word = pool.T.tocsr()
    return recalls(task, lambda part: (queries[part] @ by_word).toarray()), seconds


def interval(difference: NDArray[np.float64]) -> tuple[float, float]:
    """Return the 95% bootstrap interval of the mean of paired differences."""
    draws = array_stream("lexical_recall", "bootstrap").integers(0, len(difference), (2000, len(difference)))
    low, high = np.quantile(difference[draws].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path)
    parser.add_argument("--queries", type=int, default=2000)
    parser.add_argument("--dims", type=int, nargs="+", default=[256, 384, 512, 768])
    chosen = parser.parse_args()
    task = read_task(chosen.captions, chosen.queries)
    print(f"{len(task.queries)} queries, {len(task.pool)} captions, recall@{K}")
    peer = plain_tf_idf(task)
    if peer is None:
        print("plain TF-IDF: left out, scikit-learn is not installed")
    else:
        print(f"{'plain TF-IDF, exact':<24} {peer[0].mean():.4f}   {'':<26} {peer[1]:5.1f} s")
    for dim in chosen.dims:
        found, seconds = lexical(task, dim)
        beside = ""
        if peer is not None:
            low, high = interval(found - peer[0])
            beside = f"{(found - peer[0]).mean():+.4f} [{low:+.4f}, {high:+.4f}]"
        name = f"lexical, dim {dim}" + (" (default)" if dim == DEFAULT_DIM else "")
        print(f"{name:<24} {found.mean():.4f}   {beside:<26} {seconds:5.1f} s")


if __name__ == "__main__":
    main()
