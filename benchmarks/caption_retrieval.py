"""Finding the captions of the same image by one of them: our encoders beside BM25 and plain TF-IDF.

    python -m benchmarks.caption_retrieval CAPTIONS [--queries 4000] [--encoders lexical minilm] [--dims 512]
        [--images 20264] [--half all]

CAPTIONS is any text-only input with several captions an image (COCO's captions as JSON lines, say); every caption is a
pair. One caption of each drawn image is the query. The image's other captions are what should be found; the query's
own pair is taken out of its list, while equal captions of other images stay, and count as wrong. recall@10 is the share
of the relevant ones among the ten best; where scores tie at the tenth place, it is the mean over all orders of the tied.

Each encoder is searched exactly and through its index, built at the defaults in one `build_index_from_pairs`. The peers are
exact: TF-IDF (scikit-learn's defaults) and BM25 (bm25s, with and without its English stop words). Differences are to
plain TF-IDF, on the same queries, with a paired bootstrap 95% interval. Peers and encoders that are not installed
are left out, with a note. Times: seconds to fit, encode and index the pool, milliseconds to encode a query and answer it.

MiniLM encodes a few hundred captions a second on a CPU: ``--images 4000`` draws that many images for the pool of all
methods. ``--half`` draws the queries from one half of the images, so that weights may be tuned on the first and
measured on the second.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pairwright.datasets.errors import PairwrightError
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.records import Pair
from pairwright.datasets.rng import make_numpy_rng
from pairwright.indexes.building.build import build_index_from_pairs
from pairwright.indexes.building.open import open_index_with_encoder
from pairwright.indexes.encoders.registry import EncoderOptions
from pairwright.indexes.hnsw.search import Hits

K = 10
DEPTH = 100  # length of the exact lists; ties that go on beyond it are not seen
BLOCK = 100  # queries that are scored at a time
TIE = 1e-5  # of the best score: nearer scores are the same, summed in another order
BATCH = 4096

Recalls = NDArray[np.float64]
Answer = Callable[[NDArray[np.int64]], tuple[NDArray[np.float32], NDArray[np.int64]]]


@dataclass(frozen=True)
class Task:
    """The pool, the image number of each caption, and which captions are asked."""

    pairs: list[Pair]
    images: NDArray[np.int64]
    queries: NDArray[np.int64]

    @property
    def texts(self) -> list[str]:
        """The captions of the pool."""
        return [pair.caption for pair in self.pairs]

    @property
    def asked(self) -> list[str]:
        """The captions that are queries."""
        return [self.pairs[number].caption for number in self.queries]

    def batches(self) -> Iterator[list[Pair]]:
        """Yield the pool as an index is built from it."""
        for start in range(0, len(self.pairs), BATCH):
            yield self.pairs[start : start + BATCH]


@dataclass(frozen=True)
class Row:
    """One line of the table: recall of each query, seconds for the pool, milliseconds a query."""

    name: str
    recalls: Recalls
    pool_seconds: float
    query_ms: float


def read_task(source: str, images: int, queries: int, half: str) -> Task:
    """Read the captions, and draw the pool's images and the queries by chance, seeded."""
    read = read_pairs(ReadOptions(source, explode=True, verify_images="off"))
    pairs = [pair for batch in read for pair in batch.pairs]
    _, numbers = np.unique([pair.source_id for pair in pairs], return_inverse=True)
    order = make_numpy_rng("caption_retrieval", "images").permutation(numbers.max() + 1)
    inside = np.isin(numbers, order[:images])
    pairs, numbers = [pair for pair, wanted in zip(pairs, inside, strict=True) if wanted], numbers[inside]
    shuffled = make_numpy_rng("caption_retrieval", "queries").permutation(len(pairs))
    _, first = np.unique(numbers[shuffled], return_index=True)  # one caption of each image
    able = shuffled[first]
    able = able[np.bincount(numbers)[numbers[able]] > 1]
    able = able[make_numpy_rng("caption_retrieval", "order").permutation(len(able))]
    middle = len(able) // 2
    able = {"all": able, "first": able[:middle], "second": able[middle:]}[half]
    return Task(pairs, numbers, np.sort(able[:queries]))


def recalls(task: Task, scores: NDArray[np.float32], numbers: NDArray[np.int64]) -> Recalls:
    """Return recall@10 of each query from its list of pairs (n, depth), best first; -1 is no pair."""
    scores = np.where((numbers == task.queries[:, None]) | (numbers < 0), -np.inf, scores).astype(np.float64)
    order = np.argsort(-scores, axis=1, kind="stable")
    scores, numbers = np.take_along_axis(scores, order, 1), np.take_along_axis(numbers, order, 1)
    right = task.images[numbers] == task.images[task.queries][:, None]
    last, margin = scores[:, K - 1 : K], TIE * np.abs(scores[:, :1])
    above = scores > last + margin
    tied = ~above & (scores >= last - margin)
    free = K - above.sum(axis=1)
    found = (above & right).sum(axis=1) + free * (tied & right).sum(axis=1) / tied.sum(axis=1)
    recall: Recalls = found / (np.bincount(task.images)[task.images[task.queries]] - 1)
    return recall


def timed(name: str, task: Task, pool_seconds: float, answer: Answer) -> Row:
    """Ask all queries and return the row."""
    started = time.perf_counter()
    scores, numbers = answer(task.queries)
    seconds = time.perf_counter() - started
    return Row(name, recalls(task, scores, numbers), pool_seconds, 1000 * seconds / len(task.queries))


def encoder_rows(task: Task, options: EncoderOptions, label: str) -> list[Row]:
    """Build an index with one encoder, and search it both ways."""
    number_of = {pair.key: number for number, pair in enumerate(task.pairs)}
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        info = build_index_from_pairs(task.batches, Path(folder) / "index", encoder=options)
        pool_seconds = time.perf_counter() - started
        opened = open_index_with_encoder(Path(folder) / "index")
        encoder = opened.encoder
        assert encoder is not None
        started, used = time.perf_counter(), time.process_time()
        encoder.encode_texts(task.asked)
        wall, cpu = (now / len(task.asked) for now in (time.perf_counter() - started, time.process_time() - used))
        print(f"{label}: {1 / wall:,.0f} captions/s encoded, {1e6 * cpu:,.0f} us of one core a caption")

        def answer(search: Callable[..., Hits], depth: int) -> Answer:
            return lambda _: lists(search(encoder.encode_texts(task.asked), depth), number_of, len(task.queries), depth)

        through = f"{label}, {info.kind} index"
        # K and the query's own pair: a longer list would let the search look further than one for K does.
        return [
            timed(f"{label}, exact", task, pool_seconds, answer(opened.index.exact, DEPTH)),
            timed(through, task, pool_seconds, answer(opened.index.search, K + 1)),
        ]


def lists(
    hits: Hits, number_of: dict[str, int], queries: int, depth: int
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return scores and pair numbers (queries, depth) of ``hits``; -1 where there are fewer."""
    scores, numbers = np.zeros((queries, depth), np.float32), np.full((queries, depth), -1)
    places = hits.queries, hits.ranks - 1
    scores[places] = hits.scores
    numbers[places] = [number_of[key] for key in hits.frame()["key"]]
    return scores, numbers


def tf_idf_row(task: Task) -> Row | None:
    """Return the row of scikit-learn's TF-IDF, compared exactly; None when it is not installed."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return None
    started = time.perf_counter()
    vectorizer = TfidfVectorizer(dtype=np.float32)
    pool = vectorizer.fit_transform(task.texts)
    by_word = pool.T.tocsr()
    seconds = time.perf_counter() - started
    return timed("plain TF-IDF", task, seconds, in_blocks(lambda part: (pool[part] @ by_word).toarray()))


def bm25_row(task: Task, stop_words: str | None) -> Row | None:
    """Return the row of bm25s; None when it is not installed."""
    try:
        import bm25s  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return None
    started = time.perf_counter()
    texts = task.texts
    words = bm25s.tokenize(texts, stopwords=stop_words, return_ids=False, show_progress=False)
    model = bm25s.BM25()
    model.index(words, show_progress=False)
    seconds = time.perf_counter() - started
    name = f"BM25, {'stop words left out' if stop_words else 'all words'}"
    return timed(
        name, task, seconds, in_blocks(lambda part: np.stack([model.get_scores(words[number]) for number in part]))
    )


def in_blocks(score: Callable[[NDArray[np.int64]], NDArray[np.float32]]) -> Answer:
    """Return the best `DEPTH` of each query's scores of the whole pool, block by block."""

    def answer(queries: NDArray[np.int64]) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        scores, numbers = [], []
        for start in range(0, len(queries), BLOCK):
            found = score(queries[start : start + BLOCK])
            best = np.argpartition(-found, DEPTH, axis=1)[:, :DEPTH]
            numbers.append(best)
            scores.append(np.take_along_axis(found, best, 1))
        return np.concatenate(scores), np.concatenate(numbers)

    return answer


def interval(difference: Recalls) -> tuple[float, float]:
    """Return the 95% bootstrap interval of the mean of paired differences."""
    stream = make_numpy_rng("caption_retrieval", "bootstrap")
    means = [difference[stream.integers(0, len(difference), len(difference))].mean() for _ in range(2000)]
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


def line(row: Row, base: Row | None) -> str:
    """Return one line of the table."""
    beside = ""
    if base is not None and row is not base:
        low, high = interval(row.recalls - base.recalls)
        beside = f"{(row.recalls - base.recalls).mean():+.4f} [{low:+.4f}, {high:+.4f}]"
    return f"{row.name:<30}{row.recalls.mean():>10.4f}   {beside:<28}{row.pool_seconds:>8.1f}{row.query_ms:>10.2f}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions")
    parser.add_argument("--queries", type=int, default=4000)
    parser.add_argument("--encoders", nargs="+", default=["lexical"])
    parser.add_argument("--dims", type=int, nargs="+", default=[512], help="of the lexical encoder")
    parser.add_argument("--images", type=int, default=2**31, help="drawn for the pool; all when left out")
    parser.add_argument("--half", choices=("all", "first", "second"), default="all", help="that queries are drawn from")
    chosen = parser.parse_args()
    task = read_task(chosen.captions, chosen.images, chosen.queries, chosen.half)
    print(f"{len(task.queries):,} queries (half: {chosen.half}), {len(task.pairs):,} captions")
    print(f"{'':<30}{f'recall@{K}':>10}   {'less plain TF-IDF [95%]':<28}{'pool s':>8}{'ms/query':>10}")
    base = tf_idf_row(task)
    for name, row in (
        ("scikit-learn", base),
        ("bm25s", bm25_row(task, None)),
        ("bm25s", bm25_row(task, "en")),
    ):
        print(line(row, base) if row else f"{name}: not installed, left out", flush=True)
    for name in chosen.encoders:
        for dim in chosen.dims if name == "lexical" else (0,):
            label = f"{name} {dim}" if dim else name
            options = EncoderOptions(name=name, dim=dim) if dim else EncoderOptions(name=name)
            try:
                rows = encoder_rows(task, options, label)
            except PairwrightError as error:
                print(f"{label}: left out ({error})")
                continue
            for row in rows:
                print(line(row, base), flush=True)


if __name__ == "__main__":
    main()
