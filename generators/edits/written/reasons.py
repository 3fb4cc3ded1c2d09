"""Reason codes of rejected rewritten captions.

One table for texts by rules and by a model; rules use a part of it (`captions.caption.REASONS`). Codes for unusable
answers (refused, malformed, ...) are in `llm.output.errors` and `llm.client.request_errors`.
"""

from collections.abc import Mapping

from pairwright.generators.lexicon.tables import read_rows
from pairwright.generators.llm.client import request_errors
from pairwright.generators.llm.output import errors

REASONS: Mapping[str, str] = {row["reason"]: row["meaning"] for row in read_rows("edit_reasons")}

_ORDER = [*request_errors.REQUEST_ERROR_CODES, *errors.OUTPUT_ERROR_CODES, *REASONS]
_NEARNESS = {word: at for at, word in enumerate(_ORDER)}


def nearness(reason: str) -> int:
    """Return the rank of a reason: higher is closer to a valid edit; an unknown reason ranks highest."""
    return _NEARNESS.get(reason, len(_ORDER))
