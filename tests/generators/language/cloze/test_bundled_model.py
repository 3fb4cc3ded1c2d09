"""The bundled edit model: small, readable, and knows what captions say."""

import pickle

import numpy as np

from pairwright.generators.edits.edit_model import (
    BUNDLED_MODEL,
    EditModel,
    load_bundled_model,
    load_bundled_statistics,
)
from pairwright.generators.language.cloze.context import SLOT_KINDS, ClozeContext


def test_it_has_targets_of_every_kind_and_takes_less_than_five_megabytes() -> None:
    model = load_bundled_model()
    assert all(len(model.cloze.targets(kind)) > 200 for kind in SLOT_KINDS)
    assert sum(path.stat().st_size for path in EditModel.files(BUNDLED_MODEL)) < 5_000_000
    assert (BUNDLED_MODEL / "NOTICE").exists()


def test_a_worker_process_uses_its_own_model_and_statistics() -> None:
    for bundled in (load_bundled_model(), load_bundled_statistics()):
        pickled = pickle.dumps(bundled)
        assert len(pickled) < 1_000
        assert pickle.loads(pickled) is bundled  # noqa: S301 - made here


def test_it_knows_where_a_man_rides_what() -> None:
    cloze = load_bundled_model().cloze
    context = ClozeContext(("a", "riding", "man", "a"), ("in", "the", "ocean", ""), ("", ""), ("man", "ride", "ocean"))
    scores = cloze.log_probs("noun", [context])[0]
    assert cloze.targets("noun")[int(np.argmax(scores))] in {"wave", "surfboard"}
    assert scores[cloze.index("noun")["wave"]] > scores[cloze.index("noun")["pizza"]] + 3
