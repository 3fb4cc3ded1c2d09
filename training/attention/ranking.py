"""Document ranking by a decoder: calibrated or plain attention, query likelihood, yes or no (000, table 3.3).

- *attention*: calibrated attention over all documents in one prompt, in the given order (eq. 3.4); K + 1 passes.
- *plain-attention*: Attn(x, k); one pass.
- *likelihood*: mean log probability of the query's tokens after one document (query generation, Sun et al. 2023b); K short
  passes.
- *yes-no*: log odds of "Yes" over "No" when asked whether one document answers the query (relevance generation, Sun et
  al. 2023b); K short passes.

The last two see one document at a time, so they are independent of position.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
import torch

from pairwright.datasets.errors import UsageError
from pairwright.training.attention.calibration import Calibration, FloatArray
from pairwright.training.attention.decoder import DocumentDecoder

Ranking = Literal["attention", "plain-attention", "likelihood", "yes-no"]
RANKINGS: tuple[Ranking, ...] = get_args(Ranking)


def relevance_scores(
    reader: DocumentDecoder,
    ranking: Ranking,
    query: str,
    documents: Sequence[str],
    calibration: Calibration | None = None,
) -> FloatArray:
    """Return the relevance of each document to the query, float64 (documents,), higher is better; comparable within a query.

    ``documents`` are in prompt order, none empty; ``calibration`` is that of ``attention``.
    """
    if ranking in ("attention", "plain-attention"):
        prompt = reader.prompt(query, documents)
        if ranking == "attention":
            return reader.relevances([prompt], calibration or Calibration())[0]
        return reader.attention([prompt])[0]
    return _SCORE_PER_DOCUMENT[ranking](reader, query, documents)


def descending_order(found: FloatArray) -> list[int]:
    """Return indices by descending relevance; ties in the given order."""
    return [int(place) for place in np.argsort(-found, kind="stable")]


def _likelihood(reader: DocumentDecoder, query: str, documents: Sequence[str]) -> FloatArray:
    asked = [f"Passage: {text}\n\nPlease write a question based on this passage.\nQuestion:" for text in documents]
    found = reader.log_probabilities(asked, [f" {query}"] * len(documents))
    return np.asarray([values.mean() for values in found])


def _yes_no(reader: DocumentDecoder, query: str, documents: Sequence[str]) -> FloatArray:
    asked = [
        f"Passage: {text}\nQuery: {query}\nDoes the passage answer the query? Answer 'Yes' or 'No'.\nAnswer:"
        for text in documents
    ]
    yes, no = (reader.log_probabilities(asked, [word] * len(documents)) for word in (" Yes", " No"))
    return np.asarray([one.sum() - other.sum() for one, other in zip(yes, no, strict=True)])


_SCORE_PER_DOCUMENT: Mapping[str, Callable[[DocumentDecoder, str, Sequence[str]], FloatArray]] = {
    "likelihood": _likelihood,
    "yes-no": _yes_no,
}


def open_decoder(model: str, device: str = "", batch: int = 8, fix: str = "Give fewer documents.") -> DocumentDecoder:
    """Open a decoder of transformers by folder or name, on ``device`` (empty: a GPU if available); `DocumentDecoder` has the rest."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    on = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    try:
        found = AutoModelForCausalLM.from_pretrained(model, dtype="auto", device_map={"": on})
        tokenizer = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError, KeyError) as error:
        first = str(error).strip().partition("\n")[0]
        raise UsageError(f"{model}: not a causal language model of transformers ({first}).") from None
    if not getattr(tokenizer, "is_fast", False):
        raise UsageError(f"{model}: its tokenizer has no token offsets. Use a model with a tokenizer.json.")
    found.eval()
    return DocumentDecoder(found, tokenizer, batch, fix)
