"""Trains the small bundled English tagger, and writes its measured card.

    python -m tools.train_tagger TREEBANK_FOLDER OUTPUT_FOLDER

The treebank is Universal Dependencies English EWT (github.com/UniversalDependencies/UD_English-EWT, or
lindat.mff.cuni.cz), licence CC BY-SA 4.0; the folder holds ``train.conllu`` and ``dev.conllu``. What comes
out is a spaCy pipeline with one component: Penn Treebank tags by a convolutional network over hashed word
and affix embeddings. Lemmas and universal tags are made from the tags (`lemmas.py`), so nothing else is
trained. Captions are noun phrases, often in lower case and without a period; so each epoch sees some
sentences lower-cased or without their final mark, and filled caption patterns (`caption_phrases.py`).

The same seed, versions and machine give the same weights. Training runs on one core, about half a
minute an epoch.
"""

import argparse
import json
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example
from thinc.api import Adam, NumpyOps, fix_random_seed, set_current_ops, warmup_linear

from pairwright.datasets.rng import make_rng
from pairwright.generators.language.treebank import TreebankSentence, read_treebank
from tools.caption_phrases import caption_sentences

NAME, VERSION = "en_ewt_small", "1.0.0"
WIDTH, DEPTH, ROWS, DROPOUT, BATCH = 96, 4, (5000, 1000, 2500, 1000), 0.2, 32
CAPTIONS_AN_EPOCH = 2500

NOTICE = """\
This pipeline was trained from Universal Dependencies English EWT (the English Web Treebank as annotated by
the Universal Dependencies project, universaldependencies.org; Silveira et al. 2014, "A Gold Standard
Dependency Corpus for English"), licence Creative Commons Attribution-ShareAlike 4.0 International
(creativecommons.org/licenses/by-sa/4.0). The weights are distributed under the same licence. No text of the
treebank is contained in these files.
"""


def blank() -> Language:
    """Return an untrained pipeline of the tagger's shape."""
    nlp = spacy.blank("en")
    embed = {
        "@architectures": "spacy.MultiHashEmbed.v2",
        "width": WIDTH,
        "attrs": ["NORM", "PREFIX", "SUFFIX", "SHAPE"],
        "rows": list(ROWS),
        "include_static_vectors": False,
    }
    encode = {
        "@architectures": "spacy.MaxoutWindowEncoder.v2",
        "width": WIDTH,
        "depth": DEPTH,
        "window_size": 1,
        "maxout_pieces": 3,
    }
    tok2vec = {"@architectures": "spacy.Tok2Vec.v2", "embed": embed, "encode": encode}
    nlp.add_pipe("tagger", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": tok2vec}})
    return nlp


def varied(sentence: TreebankSentence, chance: random.Random) -> TreebankSentence:
    """Return the sentence as it is, or lower-cased, or without its final mark."""
    draw = chance.random()
    if draw < 0.12:
        sentence = replace(sentence, words=tuple(word.lower() for word in sentence.words))
    elif draw < 0.24:
        sentence = replace(sentence, words=(sentence.words[0].lower(), *sentence.words[1:]))
    if sentence.tags[-1] == "." and len(sentence.words) > 2 and chance.random() < 0.3:
        sentence = TreebankSentence(sentence.words[:-1], sentence.tags[:-1], (*sentence.spaces[:-2], False))
    return sentence


def example(nlp: Language, sentence: TreebankSentence) -> Example:
    """Return a training example whose tokens are the treebank's."""
    doc = Doc(nlp.vocab, words=list(sentence.words), spaces=list(sentence.spaces))
    return Example.from_dict(doc, {"words": list(sentence.words), "tags": list(sentence.tags)})


def epochs(train: list[TreebankSentence], count: int, seed: int) -> Iterator[list[TreebankSentence]]:
    """Give the sentences of each epoch, varied and shuffled by the seed."""
    for epoch in range(count):
        chance = make_rng(seed, epoch, "train-tagger")
        sentences = [varied(sentence, chance) for sentence in train] + caption_sentences(CAPTIONS_AN_EPOCH, chance)
        chance.shuffle(sentences)
        yield sentences


def train_pipeline(train: list[TreebankSentence], dev: list[TreebankSentence], count: int, seed: int) -> Language:
    """Train for ``count`` epochs and return the pipeline with the averaged weights."""
    fix_random_seed(seed)
    set_current_ops(NumpyOps(use_blis=False))  # NumPy's own matrix product is several times faster
    nlp = blank()
    steps = count * (len(train) + CAPTIONS_AN_EPOCH) // BATCH
    rate: Any = warmup_linear(0.002, 100, steps)  # a generator, though typed as an iterable
    optimizer = Adam(rate, L2=0.01, use_averages=True)
    nlp.initialize(lambda: [example(nlp, sentence) for sentence in train], sgd=optimizer)
    for number, sentences in enumerate(epochs(train, count, seed)):
        started, losses = time.perf_counter(), dict[str, float]()
        for at in range(0, len(sentences), BATCH):
            batch = [example(nlp, sentence) for sentence in sentences[at : at + BATCH]]
            nlp.update(batch, drop=DROPOUT, sgd=optimizer, losses=losses)
            optimizer.step_schedules()
        with nlp.use_params(optimizer.averages):
            accuracy = measure(nlp, dev)["xpos_accuracy"]
        print(
            f"epoch {number}: loss {losses['tagger']:.0f}, dev {accuracy:.4f}, {time.perf_counter() - started:.0f} s",
            flush=True,
        )
    with nlp.use_params(optimizer.averages):
        return without_words(nlp)


def _tagger(nlp: Language) -> Any:
    return nlp.get_pipe("tagger")  # typed as a mere callable


def without_words(nlp: Language) -> Language:
    """Return the pipeline with a fresh vocabulary, so that no word of the treebank is stored with it."""
    fresh, trained = blank(), _tagger(nlp)
    for label in trained.labels:
        fresh.vocab.strings.add(label)
    _tagger(fresh).from_bytes(trained.to_bytes(exclude=["vocab"]), exclude=["vocab"])
    return fresh


def measure(nlp: Language, dev: list[TreebankSentence]) -> dict[str, float]:
    """Return the tag accuracy on the treebank's tokens and the tokens tagged a second."""
    docs = [Doc(nlp.vocab, words=list(s.words), spaces=list(s.spaces)) for s in dev]
    started = time.perf_counter()
    tagged = list(_tagger(nlp).pipe(iter(docs), batch_size=256))
    seconds = time.perf_counter() - started
    right = sum(t.tag_ == tag for doc, s in zip(tagged, dev, strict=True) for t, tag in zip(doc, s.tags, strict=True))
    total = sum(len(s.words) for s in dev)
    return {"xpos_accuracy": right / total, "tokens": total, "tokens_a_second": round(total / seconds)}


def card(nlp: Language, dev: list[TreebankSentence], options: argparse.Namespace) -> dict[str, Any]:
    """Return what was measured and how it was made."""
    measured = measure(nlp, dev)
    return {
        "name": NAME,
        "version": VERSION,
        "license": "CC BY-SA 4.0",
        "trained_on": "Universal Dependencies English EWT, train, and caption patterns of our own",
        "measured_on": "Universal Dependencies English EWT, dev, on the treebank's tokens",
        "xpos_accuracy": round(measured["xpos_accuracy"], 4),
        "tokens": measured["tokens"],
        "tokens_a_second_one_core": measured["tokens_a_second"],
        "epochs": options.epochs,
        "seed": options.seed,
        "spacy": version("spacy"),
        "thinc": version("thinc"),
    }


def save(nlp: Language, facts: dict[str, Any], folder: Path) -> None:
    """Write the pipeline, its card and its licence note."""
    folder.mkdir(parents=True, exist_ok=True)
    nlp.meta.update(
        {k: facts[k] for k in ("name", "version", "license")} | {"name": "ewt_small", "spacy_version": ">=3.8.0,<3.9.0"}
    )
    nlp.to_disk(folder)
    (folder / "NOTICE").write_text(NOTICE, encoding="utf-8")
    facts["bytes"] = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    (folder / "card.json").write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def main() -> None:
    """Train, measure and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("treebank", type=Path, help="folder with train.conllu and dev.conllu")
    parser.add_argument("out", type=Path, help="folder for the pipeline")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    train, dev = (read_treebank(options.treebank / f"{part}.conllu") for part in ("train", "dev"))
    nlp = train_pipeline(train, dev, options.epochs, options.seed)
    facts = card(nlp, dev, options)
    save(nlp, facts, options.out)
    print(json.dumps(facts, indent=2))


if __name__ == "__main__":
    main()
