"""The two text scorers of SugarCrepe: grammar by a CoLA classifier and plausibility by Vera.

Both are pretrained on other texts, so they are not cross-fitted. *cola* is any sequence classifier whose last label
means "acceptable" (``textattack/distilbert-base-uncased-CoLA``). *vera* is a T5 encoder whose head is stored in the
last rows of its embedding: row 32099 is the weight, 32098 the bias, 32097 the temperature (model card of
``liujch1998/vera``). Scores are rounded to six decimals, as batching changes the last digits. They need torch and
transformers, and the checkpoint as a folder or in the Hugging Face cache.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairwright.datasets.errors import MissingResourceError
from pairwright.generators.language.vocabulary import FloatArray

COLA = "textattack/distilbert-base-uncased-CoLA"
VERA = "liujch1998/vera"

_DECIMALS = 6
_BATCH = 64
_MAX_TOKENS = 128
_WEIGHT, _BIAS, _TEMPERATURE = 32099, 32098, 32097


@dataclass(frozen=True, eq=False)
class NeuralScorer:
    """A loaded model as a fixed scorer; create one with `load_cola` or `load_vera`.

    Attributes:
        name: in reports.
        probability: returns the scores in 0-1 of the texts of a batch.
    """

    name: str
    probability: Callable[[list[str]], FloatArray]

    def score(self, texts: Sequence[str]) -> FloatArray:
        """Return the score of each text, float64 (n,) in 0-1; equal texts have equal scores."""
        # Each text once, sorted by length for little padding.
        distinct = sorted(set(texts), key=lambda text: (len(text), text))
        scores: dict[str, float] = {}
        for batch in _batches(distinct):
            scores.update(zip(batch, np.round(self.probability(batch), _DECIMALS).tolist(), strict=True))
        return np.array([scores[text] for text in texts], np.float64)

    def gaps(self, positives: Sequence[str], negatives: Sequence[str], groups: Sequence[str], seed: int) -> FloatArray:
        """Return score(positive) - score(negative) of each row, float64 (n,) in -1..1."""
        del groups, seed
        scores = self.score([*positives, *negatives])
        gaps: FloatArray = np.round(scores[: len(positives)] - scores[len(positives) :], _DECIMALS)
        return gaps


def load_cola(model: str = COLA) -> NeuralScorer:
    """Return the scorer of grammatical acceptability.

    Args:
        model: folder or hub name of a sequence classifier whose last label is "acceptable".

    Raises:
        MissingResourceError: torch, transformers or the checkpoint is missing.
    """
    torch, transformers = _import_libraries()
    tokenizer = _load_model(transformers.AutoTokenizer, model)
    network = _load_model(transformers.AutoModelForSequenceClassification, model).eval()

    def probability(texts: list[str]) -> FloatArray:
        inputs = tokenizer(texts, return_tensors="pt", padding=True, truncation=True, max_length=_MAX_TOKENS)
        with torch.inference_mode():
            logits = network(**inputs).logits.double()
        return np.asarray(logits.softmax(-1)[:, -1].numpy(), np.float64)

    return NeuralScorer("cola", probability)


def load_vera(model: str = VERA) -> NeuralScorer:
    """Return the scorer of common-sense plausibility.

    Args:
        model: folder or hub name of a checkpoint in Vera's layout.

    Raises:
        MissingResourceError: torch, transformers or the checkpoint is missing, or it is not in Vera's layout.
    """
    torch, transformers = _import_libraries()
    tokenizer = _load_model(transformers.AutoTokenizer, model)
    network = _load_model(transformers.T5EncoderModel, model).eval()
    table = network.shared.weight.detach().double()
    if len(table) <= _WEIGHT:
        raise MissingResourceError(
            f"{model}: {len(table):,} embeddings; Vera's head is in row {_WEIGHT:,}. Give a checkpoint of Vera."
        )
    weight, bias, temperature = table[_WEIGHT], table[_BIAS, 0], table[_TEMPERATURE, 0]

    def probability(texts: list[str]) -> FloatArray:
        inputs = tokenizer(texts, return_tensors="pt", padding=True, truncation=True, max_length=_MAX_TOKENS)
        with torch.inference_mode():
            states = network(input_ids=inputs.input_ids, attention_mask=inputs.attention_mask).last_hidden_state
        last = inputs.attention_mask.sum(1) - 1  # the end token of each text
        hidden = states[torch.arange(len(texts)), last].double()
        return np.asarray(((hidden @ weight + bias) / temperature).sigmoid().numpy(), np.float64)

    return NeuralScorer("vera", probability)


def _import_libraries() -> tuple[Any, Any]:
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingResourceError(f"neural scorers need torch and transformers ({error}). Install them.") from None
    return torch, transformers


def _load_model(kind: Any, model: str) -> Any:
    try:
        return kind.from_pretrained(model)
    except (OSError, ValueError) as error:
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise MissingResourceError(f"{model}: cannot be loaded ({first}). Download it, or give its folder.") from None


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(texts), _BATCH):
        yield list(texts[start : start + _BATCH])
