"""A lookup among documents, and decoders trained on it from scratch so that they favour the first and the last document.

A document is three words, one of which is a fact: a topic of two halves and its value (``t07=v3``). A question is a word
that names a topic; each half of it is drawn anew with a chance of 0.2. So other documents fit a question as well, more or
less, and nobody can answer all: the best reader without a liking for places answers `Task.ceiling`. The answer is the
value of the gold document.

A decoder is trained in two parts, by rules that look at accuracy and steps only:

1. *learn*: the gold document at any place, until nine tenths of that ceiling are answered right. The attention of the
   first half of the layers is shut meanwhile, so that the lookup is learned where calibration reaches it;
2. *bend*: all of it open, for 400 steps; the gold document first or last 90 times of a hundred and anywhere in the
   other 10. A reader that has learned where answers stand is right to prefer a first or last document that fits half.

So the U-curve comes from what was learned, on top of a lookup that is there.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerFast

from pairwright.datasets.rng import hash_to_int, make_numpy_rng
from pairwright.training.attention.question_files import MultiDocumentQuestion

PARTS, VALUES, FILLERS, LENGTH = 6, 6, 8, 3
TOPICS = PARTS * PARTS
WRONG = 0.2  # chance that half of a question's topic is drawn anew
WORDS = [
    *("<pad>", "<s>", "?"),
    *(f"t{topic:02d}" for topic in range(TOPICS)),
    *(f"v{value}" for value in range(VALUES)),
    *(f"w{filler}" for filler in range(FILLERS)),
    *(f"t{topic:02d}=v{value}" for topic in range(TOPICS + 1) for value in range(VALUES)),
]
_TOPIC, _VALUE, _FILLER, _FACT = 3, 3 + TOPICS, 3 + TOPICS + VALUES, 3 + TOPICS + VALUES + FILLERS
DUMMY = f"w0 t{TOPICS}=v0 w1"  # of a topic that nobody asks for; every other row of training holds such a document
ENDS, LEARNED, BENDING = 0.9, 0.9, 400
_ROWS, _ASKED, _RATE, _LOOK, _MOST = 32, 16, 3e-3, 10, 1500


@dataclass(frozen=True)
class Bend:
    """What training went through.

    Attributes:
        learned: steps of the first part.
        bent: steps of the second.
        before: share of right answers by the gold document's place, after the first part.
        after: the same at the end.
    """

    learned: int
    bent: int
    before: tuple[float, ...]
    after: tuple[float, ...]


@dataclass(frozen=True)
class Drawn:
    """What rows of documents and questions are about.

    Attributes:
        topics: of documents, int64 (rows, documents).
        values: of documents, int64 (rows, documents).
        strange: place of the document that has a topic nobody asks for, int64 (rows, 1); behind the last for none.
        gold: places of the documents that answer the questions, int64 (rows, asked).
        asked: topics that the questions name, int64 (rows, asked).
    """

    topics: Tensor
    values: Tensor
    strange: Tensor
    gold: Tensor
    asked: Tensor


@dataclass(frozen=True)
class Task:
    """Lookups among so many documents."""

    documents: int

    @cached_property
    def ceiling(self) -> float:
        """Share of questions that the best reader without a liking for places answers, of 64,000 drawn."""
        one = self.drawn(torch.Generator().manual_seed(0), 4000, 0.0)
        topics, asked = one.topics[:, None], one.asked[..., None]
        shared = (topics // PARTS == asked // PARTS).long() + (topics % PARTS == asked % PARTS)
        fits = ((1 - WRONG) * PARTS / WRONG + 1) ** shared
        fits = fits * (torch.arange(self.documents) != one.strange)[:, None]
        return float((fits.max(-1).values / fits.sum(-1)).mean())

    def drawn(self, chance: torch.Generator, rows: int, ends: float, place: int | None = None) -> Drawn:
        """Return what rows of documents and questions are about."""
        topics = torch.rand(rows, TOPICS, generator=chance).argsort(1)[:, : self.documents]
        values = torch.randint(0, VALUES, topics.shape, generator=chance)
        gold = torch.randint(0, self.documents, (rows, _ASKED), generator=chance)
        at_ends = torch.randint(0, 2, gold.shape, generator=chance) * (self.documents - 1)
        gold = torch.where(torch.rand(gold.shape, generator=chance) < ends, at_ends, gold)
        if place is not None:
            gold = torch.full_like(gold, place)
        strange = torch.randint(0, 2 * self.documents, (rows, 1), generator=chance)
        strange = strange.masked_fill(strange == place, 2 * self.documents) if place is not None else strange
        gold = torch.where(gold == strange, self.documents - 1 - gold, gold)
        own = topics.gather(1, gold)
        halves = torch.stack([own // PARTS, own % PARTS])
        anew = torch.rand(halves.shape, generator=chance) < WRONG
        halves = torch.where(anew, torch.randint(0, PARTS, halves.shape, generator=chance), halves)
        return Drawn(topics, values, strange, gold, halves[0] * PARTS + halves[1])

    def rows(self, chance: torch.Generator, rows: int, ends: float, place: int | None = None) -> tuple[Tensor, Tensor]:
        """Return tokens, documents and then all questions about them, and the tokens that answer them."""
        one = self.drawn(chance, rows, ends, place)
        shown = _FILLER + torch.randint(0, FILLERS, (rows, self.documents, LENGTH), generator=chance)
        at = torch.randint(0, LENGTH, (rows, self.documents, 1), generator=chance)
        topics = torch.where(torch.arange(self.documents) == one.strange, TOPICS, one.topics)
        shown = shown.scatter(2, at, (_FACT + topics * VALUES + one.values)[..., None]).flatten(1)
        asked = torch.stack([torch.full_like(one.gold, 2), _TOPIC + one.asked], -1).flatten(1)
        answers = _VALUE + one.values.gather(1, one.gold)
        return torch.cat([torch.ones(rows, 1, dtype=torch.int64), shown, asked], 1), answers

    @cached_property
    def _sight(self) -> tuple[Tensor, Tensor]:
        """Attention mask and positions by which each question of a row stands right behind the documents, alone."""
        before, each = 1 + LENGTH * self.documents, 2
        asked = torch.cat([torch.full((before,), -1), torch.arange(_ASKED).repeat_interleave(each)])
        places = torch.cat([torch.arange(before), before + torch.arange(each).repeat(_ASKED)])
        order = torch.arange(len(asked))
        seen = (order[:, None] >= order) & ((asked == -1) | (asked[:, None] == asked))
        mask = torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)
        return mask[None, None], places[None]

    def said(self, model: LlamaForCausalLM, ids: Tensor) -> Tensor:
        """Return logits of the answers to all questions of rows, (rows, asked, words)."""
        mask, places = self._sight
        hidden = model.model(
            input_ids=ids,
            attention_mask=mask.expand(len(ids), -1, -1, -1),
            position_ids=places.expand(len(ids), -1),
            use_cache=False,
        ).last_hidden_state
        found: Tensor = model.lm_head(hidden[:, LENGTH * self.documents + 2 :: 2])
        return found

    @torch.no_grad()
    def right(self, model: LlamaForCausalLM, chance: torch.Generator, place: int) -> float:
        """Return the share of right answers with the gold document at a place, of 256 questions."""
        ids, answers = self.rows(chance, 256 // _ASKED, 0.0, place)
        return float((self.said(model, ids).argmax(-1) == answers).float().mean())

    def questions(self, seed: int, count: int) -> list[MultiDocumentQuestion]:
        """Return questions over documents, each of which holds a fact."""
        chance = make_numpy_rng("found questions", seed)
        found = []
        for _ in range(count):
            topics = chance.permutation(TOPICS)[: self.documents]
            values = chance.integers(0, VALUES, self.documents)
            texts = []
            for topic, value in zip(topics, values, strict=True):
                words = [f"w{filler}" for filler in chance.integers(0, FILLERS, LENGTH)]
                words[int(chance.integers(0, LENGTH))] = f"t{topic:02d}=v{value}"
                texts.append(" ".join(words))
            drawn, anew = chance.integers(0, PARTS, 2), chance.random(2) < WRONG
            halves = np.where(anew, drawn, [topics[0] // PARTS, topics[0] % PARTS])
            text = f"t{halves[0] * PARTS + halves[1]:02d}"
            found.append(MultiDocumentQuestion(text, (f"v{values[0]}",), texts[0], tuple(texts[1:])))
        return found


def tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer of `WORDS`, split at spaces."""
    words = Tokenizer(models.WordLevel({word: place for place, word in enumerate(WORDS)}, unk_token=WORDS[0]))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token=WORDS[0], bos_token=WORDS[1])


def trained(task: Task, seed: int, layers: int) -> tuple[PreTrainedModel, Bend]:
    """Return a decoder of 64 numbers a token, trained as the module says."""
    with torch.random.fork_rng():
        torch.manual_seed(hash_to_int("found model", seed) % 2**31)
        model = LlamaForCausalLM(
            LlamaConfig(
                hidden_size=64,
                intermediate_size=128,
                num_hidden_layers=layers,
                num_attention_heads=2,
                vocab_size=len(WORDS),
                pad_token_id=0,
                bos_token_id=1,
                eos_token_id=None,
                max_position_embeddings=512,
                initializer_range=0.05,
            )
        )
    chance = torch.Generator().manual_seed(hash_to_int("found rows", seed) % 2**31)
    optimizer = torch.optim.AdamW(model.parameters(), lr=_RATE, weight_decay=0.01, betas=(0.9, 0.98))
    early = [layer.self_attn.o_proj.weight for layer in model.model.layers[: layers // 2]]
    for weight in early:
        torch.nn.init.zeros_(weight).requires_grad_(False)
    before: tuple[float, ...] = ()
    learned, step = 0, 0
    while True:
        step += 1
        for group in optimizer.param_groups:
            group["lr"] = _RATE * min(1, step / 50)
        ids, answers = task.rows(chance, _ROWS, ENDS if learned else 0.0)
        optimizer.zero_grad()
        functional.cross_entropy(task.said(model, ids).flatten(0, 1), answers.flatten()).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % _LOOK:
            continue
        places = tuple(task.right(model, chance, place) for place in range(task.documents))
        if not learned and sum(places) / len(places) >= LEARNED * task.ceiling:
            learned, before = step, places
            for weight in early:
                weight.requires_grad_(True)
        elif learned and step - learned >= BENDING:
            break
        if step >= _MOST:
            raise SystemExit(f"seed {seed}: not learned and bent in {_MOST} steps; places {places}")
    model.eval()
    return model, Bend(learned, step - learned, before, places)
