"""Hard negatives during training: a function from a caption and an epoch to its negatives.

FSC-CLIP generates its negatives in the data loader, new ones in each epoch. `OnlineNegatives` does the same::

    negatives = OnlineNegatives(Path("pool.parquet"), seed=7)
    texts = negatives("A man riding a horse.", epoch=3)     # {"replace-object": ("A man riding a bicycle.",), ...}

An instance holds the path of the pool's statistics and loads these, WordNet and the tagger on the first call in a process,
so it is cheap to pickle, copy and send to workers. The result depends on seed, epoch and caption alone, not on the number
of workers. A caption without a possible edit has an empty tuple for that type, to be masked out of the loss.

Pass the image's other captions and its boxes if the shards have them: without these more negatives may be true of the
image.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from pairwright.datasets.errors import UsageError
from pairwright.datasets.records import MAX_EDITABLE_CAPTION, Annotation, Box, Pair, pair_key
from pairwright.datasets.rng import make_rng
from pairwright.datasets.shards.content_counts import annotation_type
from pairwright.generators.edit_types import NEGATIVE_TYPES
from pairwright.generators.edits.edit_model import EditModel
from pairwright.generators.edits.floors import DEFAULT_FLOOR
from pairwright.generators.language.pool_statistics import PoolStatistics
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.tokens import Token
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.negatives import NAME, VERSION, NegativeOptions, RuleNegatives

ONLINE_TYPES: Final = tuple(kind for kind in NEGATIVE_TYPES if kind != "negation")
Texts = dict[str, tuple[str, ...]]
_MAX_SHOWN_CHARS = 60  # letters of a wrong value in a message


@dataclass(frozen=True, slots=True)
class OnlineNegatives:
    """Generates the negatives of one caption at a time; see the module.

    Attributes:
        pool: Parquet file that `PoolStatistics.save` wrote (``statistics/words.parquet`` of a build); the edit model is
            read from the same folder, or is the bundled one.
        types: of `edit_types.NEGATIVE_TYPES`; the default includes SHUFFLE, since this is for training, and no NEGATION.
        per_type: negatives of each type.
        seed: of the training run.
        tagger: a spaCy pipeline; empty for the default (`language.tagger`). Not used if tokens are given.
        floor: least probability of a replacement in its context; see `NegativeOptions`.
        max_caption: characters of a caption; longer ones have no negatives.
    """

    pool: Path | str
    types: Sequence[str] = ONLINE_TYPES
    per_type: int = 1
    seed: int = 0
    tagger: str = ""
    floor: float = DEFAULT_FLOOR
    max_caption: int = MAX_EDITABLE_CAPTION

    def __post_init__(self) -> None:
        """Accept any sequence of types and a path as text: instances are keys of a cache."""
        object.__setattr__(self, "pool", Path(self.pool))
        object.__setattr__(self, "types", (self.types,) if isinstance(self.types, str) else tuple(self.types))

    def __call__(
        self,
        caption: str,
        captions: Sequence[str] = (),
        boxes: Sequence[Box] = (),
        *,
        epoch: int = 0,
        tokens: Sequence[Token] | None = None,
    ) -> Texts:
        """Return the negatives of a caption by type, up to ``per_type`` each.

        Args:
            caption: to be edited.
            captions: others of the same image; their words are never inserted.
            boxes: of the same image, likewise.
            epoch: varies the negatives.
            tokens: of the caption; tagged here if None.

        Raises:
            StorageError: the pool's file is missing or torn.
            MissingResourceError: WordNet or the tagger is not set up.
            UsageError: an unknown type, or a caption that is no text.
        """
        _check_is_text(caption, "caption")
        pair = Pair(pair_key("", "", caption), caption, captions=_texts(captions), boxes=tuple(boxes))
        return self._of_pairs([pair], self._tag([caption]) if tokens is None else [tokens], epoch)[0]

    def many(self, captions: Sequence[str], *, epoch: int = 0) -> list[Texts]:
        """Return the negatives of several captions; all of them together are faster than one call each."""
        texts = _texts(captions)
        return self._of_pairs([Pair(pair_key("", "", text), text) for text in texts], self._tag(texts), epoch)

    def _tag(self, captions: Sequence[str]) -> Sequence[Sequence[Token]]:
        return load_tagger(self.tagger).tag([text if len(text) <= self.max_caption else "" for text in captions])

    def _of_pairs(self, pairs: Sequence[Pair], tokens: Sequence[Sequence[Token]], epoch: int) -> list[Texts]:
        maker = _build_generator(self.pool, self.types, self.per_type, self.floor)
        words = {pair.key: own for pair, own in zip(pairs, tokens, strict=True)}
        short = {pair.key: pair for pair in pairs if len(pair.caption) <= self.max_caption}
        rngs = [make_rng(self.seed, epoch, NAME, VERSION, key) for key in short]
        rows = maker.annotate_batch([*short.values()], [words[key] for key in short], rngs)
        made = dict(zip(short, rows, strict=True))
        return [_by_type(self.types, made.get(pair.key, ())) for pair in pairs]


def _texts(captions: Sequence[str]) -> tuple[str, ...]:
    """Return captions as a tuple, checked to be texts."""
    if isinstance(captions, str | bytes) or not isinstance(captions, Iterable):
        raise UsageError(f"captions must be a list of texts, not {_shorten(captions)}. Put a single one in a list.")
    texts = tuple(captions)
    for at, caption in enumerate(texts):
        _check_is_text(caption, f"captions[{at}]")
    return texts


def _check_is_text(caption: object, named: str) -> None:
    if not isinstance(caption, str):
        raise UsageError(
            f"{named} must be a text, not {_shorten(caption)}. Skip rows without a caption, or pass '', which has "
            "no negatives."
        )


def _shorten(given: object) -> str:
    """Return a value for a message, truncated."""
    text = repr(given)
    kind = "" if given is None else f" ({type(given).__name__})"
    return (text if len(text) <= _MAX_SHOWN_CHARS else text[:_MAX_SHOWN_CHARS] + "...") + kind


def _by_type(types: Sequence[str], rows: Sequence[Annotation]) -> Texts:
    texts: dict[str, list[str]] = {kind: [] for kind in types}
    for row in rows:
        if row.status == "kept":
            texts[annotation_type(row)].append(row.text)
    return {kind: tuple(found) for kind, found in texts.items()}


@lru_cache(maxsize=8)
def _build_generator(pool: Path, types: tuple[str, ...], per_type: int, floor: float) -> RuleNegatives:
    options = NegativeOptions(types=types, per_type=per_type, floor=floor)
    return RuleNegatives(load_wordnet(), _statistics(pool), options, EditModel.for_statistics(pool))


@lru_cache(maxsize=2)
def _statistics(pool: Path) -> PoolStatistics:
    return PoolStatistics.load(pool)
