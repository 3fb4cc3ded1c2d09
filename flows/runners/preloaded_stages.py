"""Loads what the worker processes of a build need, once, in the server process that forks them.

Nothing here starts a thread: a forked process would wait for it forever.
"""

import gc
from contextlib import suppress

import pyarrow as pa

from pairwright.datasets.errors import PairwrightError
from pairwright.flows.stages import balance, generate, pairs, refine, scan, shards, tag, words
from pairwright.generators import negatives, positives
from pairwright.generators.language.inflection import inflect
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet

__all__ = ("balance", "generate", "negatives", "pairs", "positives", "refine", "scan", "shards", "tag", "words")

pa.array([""])  # imports pandas where it is installed
with suppress(PairwrightError):  # reported by the job that needs them
    load_tagger().tag(["two dogs"])  # with lemmas
    load_wordnet()
    inflect("dog", "NNS")
gc.freeze()  # the memory of what is loaded stays shared
