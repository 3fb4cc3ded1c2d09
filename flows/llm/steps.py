"""A maker that asks a model, over pairs: what a stage of a build and ``pairwright generate --method llm`` share.

A row is a pair. It is noted as failed when its talk broke off, when a request of it got no answer, or when nothing was
kept of it for a reason that lies in the answers: such a row can be asked anew. A caption that holds nothing to edit is none.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from pairwright.datasets.errors import PairwrightError
from pairwright.datasets.records import Annotation, Origin, Pair, annotation_id
from pairwright.datasets.rng import make_rng
from pairwright.flows.llm.context import ContextProvider
from pairwright.generators.language.tokens import Token
from pairwright.generators.llm.client.request_errors import REQUEST_ERROR_CODES, RequestError
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.failed_rows import FailedRows
from pairwright.generators.llm.runner import LLMRow, RowResult
from pairwright.generators.llm.session import Session
from pairwright.generators.protocols import LLMGenerator

TaggedPair = tuple[Pair, Sequence[Token]]

FINAL_REASONS = frozenset(
    {"no_edit", "no_candidate", "no_and", "no_image", "no_context", "over_quota"}
)  # reasons that lie in the caption or in what was asked for, whoever is asked


@dataclass
class PairSteps:
    """The talks of one maker.

    Attributes:
        maker: whose talks they are.
        seed: of the run.
        failed: takes note of the rows that failed.
        given: gives rows what they read besides.
        under_way: pairs whose talk has begun and is not yet given, in order.
    """

    maker: LLMGenerator
    seed: int
    failed: FailedRows
    given: ContextProvider = field(default_factory=lambda: ContextProvider(None))
    under_way: deque[Pair] = field(default_factory=deque)

    def hold(
        self, session: Session, pairs: Iterable[TaggedPair], *, of: int = 0
    ) -> Iterator[tuple[Pair, list[Annotation]]]:
        """Give each pair with its annotations, in order; a pair whose talk broke off has one, rejected.

        Args:
            session: the model.
            pairs: read as there is room.
            of: how many there are, for the watcher; 0: unknown.

        Raises:
            PairwrightError: what ends the run (`llm.runner`); what is done was given before.
            KeyboardInterrupt: after Ctrl-C, likewise.
        """
        for done in session.run(self.rows(pairs), of=of):
            pair = self.under_way.popleft()
            while pair.key != done.row:  # a row that was given up when the run ended
                pair = self.under_way.popleft()
            yield pair, self._ended(pair, done)

    def rows(self, pairs: Iterable[TaggedPair]) -> Iterator[LLMRow[list[Annotation]]]:
        """Return the rows that a session runs."""
        return self.given.rows(self._plain(pairs))

    def _plain(self, pairs: Iterable[TaggedPair]) -> Iterator[tuple[LLMRow[list[Annotation]], str, str]]:
        for pair, tokens in pairs:
            self.under_way.append(pair)
            talk = partial(pair_step, self.maker, self.seed, pair, tokens)
            yield LLMRow(pair.key, talk, self.failed.attempt(pair.key)), pair.caption, pair.key

    def _ended(self, pair: Pair, done: RowResult[list[Annotation]]) -> list[Annotation]:
        if done.error is not None:
            self.failed.note(done)
            return [self._broken_off(pair, done.error)]
        rows = done.result or []
        self.failed.note(done, _failure_reason(rows, done.unanswered))
        return rows

    def _broken_off(self, pair: Pair, error: PairwrightError) -> Annotation:
        origin = Origin(self.maker.name, self.maker.version, self.seed)
        return Annotation(
            id=annotation_id(pair.key, self.maker.kind, origin, "broken-off", ""),
            key=pair.key,
            kind=self.maker.kind,
            origin=origin,
            source_text=pair.caption,
            status="rejected",
            reason=error.code if isinstance(error, RequestError) else "bad_row",
        )


def pair_step(
    maker: LLMGenerator, seed: int, pair: Pair, tokens: Sequence[Token], attempt: int
) -> LLMStep[list[Annotation]]:
    """Return a maker's talk about a pair; its chance is that of (seed, maker, pair)."""
    rng = make_rng(seed, 0, maker.name, maker.version, pair.key)
    return maker.annotate(pair, tokens, rng, attempt=attempt)


def _failure_reason(rows: Sequence[Annotation], unanswered: int) -> str:
    """Return the commonest reason when the row is worth asking anew, else nothing.

    Where requests got no answer that is why, however many texts of the others did not pass.
    """
    reasons = Counter(row.reason for row in rows if row.status == "rejected" and row.reason not in FINAL_REASONS)
    if unanswered:
        reasons = Counter({word: count for word, count in reasons.items() if word in REQUEST_ERROR_CODES}) or reasons
    kept = any(row.status == "kept" for row in rows)
    return reasons.most_common(1)[0][0] if reasons and (unanswered or not kept) else ""
