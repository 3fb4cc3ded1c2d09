"""A sample before a recipe makes rows of it, and what a loader asks of those who read samples."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Body = Mapping[str, Any]
Judge = Callable[[Body], str]
"""Says why a sample has no place, in one word; nothing when it has one."""


@dataclass(frozen=True, slots=True)
class RawSample:
    """A sample as it stands in its file.

    Attributes:
        key: of the sample.
        where: file and key, for messages.
        caption: contents of ``.txt``.
        body: contents of ``.json``; empty when it has none.
        image: bytes of the image; empty for text-only samples.
    """

    key: str
    where: str
    caption: str
    body: Body
    image: bytes


class Samples(Protocol):
    """Samples numbered through, each to be read by its number, in any process."""

    @property
    def counts(self) -> tuple[int, ...]:
        """Return the number of samples of each file."""

    @property
    def left_out(self) -> Mapping[str, int]:
        """Return the number of samples that have no place, by reason."""

    def places(self) -> str:
        """Return a digest of where the samples lie: the same for the same files in another folder."""

    def read(self, numbers: Sequence[int]) -> list[RawSample]:
        """Return the samples of these numbers, in their order; a number may come twice."""
