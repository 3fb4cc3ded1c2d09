"""Tags of a spaCy tagger with a windowed encoder (spaCy's ``HashEmbedCNN``), computed once for each distinct window.

A layer of the encoder sees a token and its neighbours, so its output is the same wherever the same words stand in the
same window. Captions share many windows, and a caption shares nearly all with its edits: half of the matrix products
are saved for captions with their edits, a quarter for captions alone. Of the padding between texts, a layer computes
only what later layers need for tokens. The tags are those of the pipeline.

The layers are computed here and not by thinc, whose layers keep what training needs: with the pieces of a maxout unit
in blocks, and sums in place, a thousand windows at once, they take a third less time.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc
    from thinc.model import Model

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
_EMBED = ["extract_features", "list2ragged", "with_array", "with_array", "ragged2list"]
_LAYER = "maxout>>layernorm"
_EPSILON = np.float32(1e-8)  # of thinc's layer normalisation
_FEWER = 2  # vectors than windows, by a factor, from which sums of products take less time than products of sums
_CHUNK = 1024  # windows at once, whose sums stay in a core's cache
_MIX = np.uint64(0x9E3779B97F4A7C15)  # an odd number, to mix hashes


class DistinctWindowTagger:
    """Predicts the tags of documents; made by `distinct_window_tagger`."""

    def __init__(self, labels: Sequence[str], model: "Model[Any, Any]") -> None:
        self._labels = labels
        tok2vec, softmax = model.layers
        (features, _, embed, mix, _), encoder = tok2vec.layers[0].layers, tok2vec.layers[1]
        self._columns, self._pad = features.attrs["columns"], encoder.attrs["pad"]
        self._embed, self._mix, self._softmax = embed.layers[0], mix.layers[0], softmax.layers[0]
        self._windows = [_MaxoutLayer(block.layers[0].layers[1]) for block in encoder.layers[0].layers]

    def tags(self, docs: "Sequence[Doc]") -> list[list[str]]:
        """Return the tag of each token of each document."""
        lengths = [len(doc) for doc in docs]
        if not sum(lengths):
            return [[] for _ in docs]
        words = np.concatenate([doc.to_array(self._columns) for doc in docs])
        numbers, first = _distinct_rows(words)
        vectors = self._mix.predict(self._embed.predict(words[first]))
        vectors = np.concatenate([np.zeros((1, vectors.shape[1]), vectors.dtype), vectors])  # number 0: padding
        at = np.arange(len(words)) + self._pad + np.repeat(np.arange(len(docs)) * self._pad, lengths)
        ids = np.zeros(len(words) + self._pad * (len(docs) + 1), dtype=np.int64)
        ids[at] = numbers + 1
        near = ids > 0
        needed = [near]  # by each layer from the last one on: one more place around the tokens, of the padding
        for _ in self._windows[1:]:
            near = near.copy()
            near[1:] |= needed[-1][:-1]
            near[:-1] |= needed[-1][1:]
            needed.append(near)
        for layer, places in zip(self._windows, reversed(needed), strict=True):
            ids, vectors = _windowed(ids, vectors, layer, np.flatnonzero(places))
        best = [self._labels[number] for number in self._softmax.predict(vectors).argmax(axis=1)]
        found = [best[number] for number in ids[at].tolist()]
        ends = np.cumsum(lengths).tolist()
        return [found[end - length : end] for end, length in zip(ends, lengths, strict=True)]


class _MaxoutLayer:
    """A maxout layer with layer normalisation (``maxout>>layernorm``), for prediction alone."""

    def __init__(self, model: "Model[Any, Any]") -> None:
        layers = {layer.name: layer for layer in model.walk()}
        maxout, norm = layers["maxout"], layers["layernorm"]
        weights = _parameter(maxout, "W")  # units, pieces, inputs
        self._units, self._pieces, inputs = weights.shape
        self._weights = np.ascontiguousarray(weights.transpose(1, 0, 2).reshape(-1, inputs).T)
        self._bias = np.ascontiguousarray(_parameter(maxout, "b").T).reshape(-1)
        self._gain, self._shift = _parameter(norm, "G"), _parameter(norm, "b")

    def predict(self, vectors: Floats, windows: Ids) -> Floats:
        """Return the outputs for windows of three vectors, given by their numbers."""
        width, found = vectors.shape[1], np.empty((len(windows), self._units), np.float32)
        products: list[Floats] = []
        if _FEWER * len(vectors) < len(windows):  # a product for each vector, and sums of three of them for each window
            products = [vectors @ self._weights[at * width : (at + 1) * width] for at in range(3)]
        for start in range(0, len(windows), _CHUNK):
            chunk = windows[start : start + _CHUNK]
            if products:
                sums = products[0][chunk[:, 0]]
                for product, numbers in zip(products[1:], chunk.T[1:], strict=True):
                    sums += product[numbers]
            else:
                sums = vectors[chunk].reshape(len(chunk), -1) @ self._weights
            self._normalize(sums, found[start : start + _CHUNK])
        return found

    def _normalize(self, sums: Floats, out: Floats) -> None:
        """Write the largest of the pieces of each unit, normalised."""
        sums += self._bias
        np.maximum(sums[:, : self._units], sums[:, self._units : 2 * self._units], out=out)
        for piece in range(2, self._pieces):
            np.maximum(out, sums[:, piece * self._units : (piece + 1) * self._units], out=out)
        out -= out.mean(axis=1, keepdims=True)
        variance = np.einsum("ij,ij->i", out, out) / self._units + _EPSILON
        out *= (variance**-0.5)[:, None]
        out *= self._gain
        out += self._shift


def _parameter(layer: "Model[Any, Any]", name: str) -> Floats:
    return np.asarray(layer.get_param(name), np.float32)


def distinct_window_tagger(nlp: "Language") -> DistinctWindowTagger | None:
    """Return the tagger of a pipeline; None if its model has another structure."""
    pipe = nlp.get_pipe("tagger")
    model: Model[Any, Any] = pipe.model  # type: ignore[attr-defined]
    return DistinctWindowTagger(pipe.labels, model) if _is_supported(nlp.pipe_names, model) else None  # type: ignore[attr-defined]


def _is_supported(names: Sequence[str], model: "Model[Any, Any]") -> bool:
    try:
        tok2vec, softmax = model.layers
        embed, encoder = tok2vec.layers
        blocks = encoder.layers[0].layers
        parts = [[layer.name for layer in block.layers[0].layers] for block in blocks]
        widths = [block.layers[0].layers[0].attrs["window_size"] for block in blocks]
    except (ValueError, IndexError, KeyError, AttributeError):
        return False
    return (
        list(names) == ["tagger"]
        and [layer.name.partition("(")[0] for layer in embed.layers] == _EMBED
        and all(block.name.startswith("residual(") for block in blocks)
        and all(len(part) == 2 and part[0] == "expand_window" and part[1].startswith(_LAYER) for part in parts)
        and widths == [1] * len(blocks)
        and encoder.attrs.get("pad", 0) >= len(blocks)
        and softmax.layers[0].name == "softmax"
    )


def _distinct_rows(rows: npt.NDArray[np.uint64]) -> tuple[Ids, Ids]:
    """Return the number of each row among the distinct ones, and where each of them occurs first."""
    keys = rows[:, 0] * _MIX
    for column in rows[:, 1:].T:
        keys = (keys ^ column) * _MIX
    _, first, numbers = np.unique(keys, return_index=True, return_inverse=True)
    return numbers, first


def _windowed(ids: Ids, vectors: Floats, layer: _MaxoutLayer, places: Ids) -> tuple[Ids, Floats]:
    """Return the numbers of the windows around some places, and what a residual layer gives for each window."""
    padded = np.concatenate([[0], ids, [0]])
    windows = np.stack([padded[places], padded[places + 1], padded[places + 2]], axis=1)
    keys = (windows[:, 0] * len(vectors) + windows[:, 1]) * len(vectors) + windows[:, 2]
    _, first, own = np.unique(keys, return_index=True, return_inverse=True)
    numbers = np.zeros_like(ids)
    numbers[places] = own
    found = layer.predict(vectors, windows[first])
    found += vectors[windows[first, 1]]
    return numbers, found
