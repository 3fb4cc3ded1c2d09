"""Ranking documents by a decoder: calibrated and plain attention, likelihood of the query, yes or no (000, table 3.3).

- *attention*: calibrated attention, the documents read together in the order in which they come (eq. 3.4); K + 1 passes.
- *plain-attention*: Attn(x, k) as it is; one pass.
- *likelihood*: mean log probability of the query's tokens after one document (query generation, Sun et al. 2023b); K short
  passes.
- *yes-no*: how much more probable "Yes" is than "No" when asked whether one document answers the query (relevance
  generation, Sun et al. 2023b); K short passes.

The last two read each document alone, so a document's place means nothing to them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np
import torch

from pairwright.datasets.errors import UsageError
from pairwright.training.attention.calibration import Calibration, FloatArray
from pairwright.training.attention.decoder import DocumentDecoder
from pairwright.training.attention.prompts import as_chat, question_prompt

Ranking = Literal["attention", "plain-attention", "likelihood", "yes-no"]
RANKINGS: tuple[Ranking, ...] = get_args(Ranking)


def relevance_scores(
    reader: DocumentDecoder,
    ranking: Ranking,
    query: str,
    documents: Sequence[str],
    calibration: Calibration | None = None,
) -> FloatArray:
    """Return how relevant each document is to the query, float64 (documents,), higher is more; of one query only.

    Args:
        reader: the decoder.
        ranking: of `RANKINGS`.
        query: a question, or a text that is looked for.
        documents: one at least, none empty, in the order in which the prompt is to hold them.
        calibration: of ``attention``; as by default when left out.

    Raises:
        UsageError: when the model cannot be asked so; see `Reader`.
    """
    if ranking in ("attention", "plain-attention"):
        prompt = as_chat(question_prompt(query, documents), reader.tokenizer)
        if ranking == "attention":
            return reader.relevances([prompt], calibration or Calibration())[0]
        return reader.attention([prompt])[0]
    return _SCORE_PER_DOCUMENT[ranking](reader, query, documents)


def descending_order(found: FloatArray) -> list[int]:
    """Return places of documents, the most relevant first; of equals the earlier."""
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
    """Open a decoder of transformers.

    Args:
        model: a folder, or a name on the hub.
        device: as torch names it; empty: a GPU where there is one.
        batch: prompts at once.
        fix: what to do about a prompt that is longer than the model reads.

    Raises:
        UsageError: when it cannot be opened, or its tokenizer tells no offsets.
    """
    from transformers import AutoModelForCausalLM, AutoTokenizer

    on = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    try:
        found = AutoModelForCausalLM.from_pretrained(model, dtype="auto", device_map={"": on})
        tokenizer = AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError, KeyError) as error:
        first = str(error).strip().partition("\n")[0]
        raise UsageError(f"{model}: no causal language model of transformers ({first}).") from None
    if not getattr(tokenizer, "is_fast", False):
        raise UsageError(f"{model}: its tokenizer tells no offsets of tokens. Use a model with a tokenizer.json.")
    found.eval()
    return DocumentDecoder(found, tokenizer, batch, fix)
