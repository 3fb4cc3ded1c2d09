"""An edit of a caption, as a model gives it."""

import re
from dataclasses import dataclass

_JOINED = re.compile(r"\A.*?\b(?:an?|the|some|two|his|her|their|its|and|with|of)\s+", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ModelEdit:
    """An edit.

    Attributes:
        old: the words that go, or the first of two that change places; empty for an addition.
        new: the words that come, or the second of the two.
        caption: the caption after it.
        described: the thing that an added attribute describes; else empty.
    """

    old: str
    new: str
    caption: str
    described: str = ""

    @property
    def concept(self) -> str:
        """What comes, without what joins it to the caption: "rabbit" of "and a rabbit"."""
        return self.new if self.old or self.described else _JOINED.sub("", self.new)
