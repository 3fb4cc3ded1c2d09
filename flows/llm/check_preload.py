"""Loads what every worker process of checks needs, once, in the server process that forks them."""

from contextlib import suppress

from pairwright.datasets.errors import PairwrightError
from pairwright.flows.llm import check_workers
from pairwright.generators.edits.edit_model import load_bundled_statistics
from pairwright.generators.edits.written.checks import EditChecks
from pairwright.generators.language.inflection import inflect
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm_edits import negatives, positives

__all__ = ("check_workers", "negatives", "positives")

with suppress(PairwrightError):  # reported by the process that needs them
    load_tagger().tag(["two dogs"])  # with lemmas
    inflect("dog", "NNS")
    EditChecks(load_wordnet(), load_bundled_statistics(), load_tagger())  # reads word lists, looks up many nouns
