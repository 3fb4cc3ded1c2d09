"""Loads what the worker processes of a build need, once, in the server process that forks them.

Nothing here starts a thread: a forked process would wait for it forever.
"""

import gc
from contextlib import suppress
from importlib import import_module

from pairwright.datasets.errors import PairwrightError
from pairwright.datasets.garbage_collection import collect_rarely

_ROOMS = {
    "flows.stages": ("balance", "generate", "pairs", "refine", "scan", "shards", "tag", "words"),
    "generators": ("negatives", "positives"),
}

collect_rarely()  # the imports of so many modules make hardly any garbage
for room, modules in _ROOMS.items():
    for module in modules:
        import_module(f"pairwright.{room}.{module}")

import_module("pyarrow").array([""])  # imports pandas where it is installed
with suppress(PairwrightError):  # reported by the job that needs them
    import_module("pairwright.generators.language.tagger").load_tagger().tag(["two dogs"])  # with lemmas
    import_module("pairwright.generators.language.wordnet").load_wordnet()
    import_module("pairwright.generators.language.inflection").inflect("dog", "NNS")
gc.freeze()  # the memory of what is loaded stays shared
