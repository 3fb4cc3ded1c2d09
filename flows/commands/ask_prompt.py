"""Any prompt whose answer is text, asked about every pair of an input: what ``pairwright prompts ask`` runs.

A line of OUT is a pair, in the order of the input:

    {"key": "...", "caption": "...", "text": "...", "status": "kept", "reason": "", "prompt": "name@hash",
     "model": "...", "request": "..."}

``request`` is the key of the answer in the cache. A rejected row holds what the model said last, and why it is no answer.
OUT appears when it is whole; answers are kept either way, so the same command goes on. Memory: the rows under way.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import remove_stale_temporaries, replace_atomically
from pairwright.datasets.errors import UsageError
from pairwright.datasets.readers.pairs import ReadOptions, read_pairs
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.records import Pair, compact_json
from pairwright.flows.commands.generate_with_model import failed_rows_path
from pairwright.flows.llm.context import ContextProvider
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.planning import plan_rows
from pairwright.flows.state.overwrite_checks import refuse_overwriting
from pairwright.flows.state.receipts import json_hash
from pairwright.generators.llm.client.request_errors import RequestError
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.cost_estimate import StagePlan, sample_rows
from pairwright.generators.llm.failed_rows import FailedRows
from pairwright.generators.llm.output.answers import Answer, request_answers
from pairwright.generators.llm.output.plain_text import TextShape
from pairwright.generators.llm.runner import LLMRow, RowResult
from pairwright.generators.llm.session import Snapshot
from pairwright.generators.prompts.book import Prompt, PromptBook
from pairwright.generators.prompts.prompt import pair_values


@dataclass(frozen=True)
class PromptRequest:
    """What to ask: the name of a prompt, about which pairs, into which file (.jsonl)."""

    prompt: str
    read: ReadOptions
    out: Path


@dataclass
class _PromptRows:
    """The rows of a run, and the pairs that are under way."""

    prompt: Prompt
    model: str
    attempt: Callable[[str], int]
    under_way: deque[Pair] = field(default_factory=deque)

    def of(self, pairs: Iterator[Pair]) -> Iterator[tuple[LLMRow[Answer[str]], str, str]]:
        for pair in pairs:
            self.under_way.append(pair)
            yield (
                LLMRow(pair.key, partial(_prompt_step, self.prompt, self.model, pair), self.attempt(pair.key)),
                pair.caption,
                pair.key,
            )

    def pair_of(self, done: RowResult[Answer[str]]) -> Pair:
        pair = self.under_way.popleft()
        while pair.key != done.row:  # a row that was given up when the run ended
            pair = self.under_way.popleft()
        return pair


def ask_prompt(
    request: PromptRequest, asking: ModelAccess, note: Callable[[str], None], watch: Callable[[Snapshot], None]
) -> dict[str, Any]:
    """Ask about every pair, and write the answers.

    Args:
        request: what to ask.
        asking: of which model, and how.
        note: told in one line what concerns the whole run.
        watch: told how far it is.

    Returns:
        rows, kept, rejected (by reason), what of the input is broken (by reason), prompt, out, and ``llm`` and ``failed`` as
        in `llm_generating.run_llm_generator`.

    Raises:
        PairwrightError: what stopped the run, in one line; answers are kept.
    """
    prompt = _prompt(request, asking)
    refuse_overwriting(request.out, request.read.input)
    asking.check()
    total = sum(len(batch.pairs) for batch in read_pairs(request.read))
    remove_stale_temporaries(request.out, failed_rows_path(request.out))
    kept, rejected, broken = 0, Counter[str](), SkipCounts()
    identity = json_hash([prompt.id, asking.shape()])
    with (
        FailedRows(failed_rows_path(request.out), run=identity, retry=asking.retry_failed) as failed,
        replace_atomically(request.out) as temporary,
        temporary.open("w", encoding="utf-8") as out,
        ContextProvider(asking.context) as given,
        asking.session(watch=watch, say=note) as session,
    ):
        rows = _PromptRows(prompt, asking.model, failed.attempt)
        for done in session.run(given.rows(rows.of(_pairs(request.read, broken))), of=total):
            line = _line(rows.pair_of(done), done, prompt, asking.model)
            failed.note(done, line["reason"])
            kept += not line["reason"]
            rejected.update([line["reason"]] if line["reason"] else [])
            out.write(compact_json(line) + "\n")
    if summary := failed.summary(total):
        note(summary)
    reasons = dict(sorted(failed.counts.items()))
    return {
        "rows": total,
        "kept": kept,
        "rejected": dict(sorted(rejected.items())),
        **broken.as_json(),
        "prompt": prompt.id,
        "out": str(request.out),
        "llm": asking.told(session.totals().spent),
        "failed": {"rows": sum(reasons.values()), "reasons": reasons, "file": str(failed.path)},
    }


def plan_prompt(request: PromptRequest, asking: ModelAccess) -> StagePlan:
    """Return what `ask_prompt` would ask and cost; nothing is sent.

    Raises:
        PairwrightError: when it could not begin.
    """
    prompt = _prompt(request, asking)
    sample = sample_rows(_pairs(request.read, SkipCounts()), seed=asking.seed)
    rows = _PromptRows(prompt, asking.model, lambda _: 0).of(iter(sample.items))
    return plan_rows(prompt.name, list(ContextProvider(asking.context).rows(rows)), sample.total, asking)


def _prompt(request: PromptRequest, asking: ModelAccess) -> Prompt:
    folder = asking.section.prompts
    prompt = PromptBook(Path(folder) if folder else None).get(request.prompt)
    if prompt.answer != "text":
        raise UsageError(f"prompt {prompt.name}: its answer is {prompt.answer}. Name one whose answer is text.")
    given = pair_values(Pair("", "a caption"))
    if missing := sorted(prompt.needs - given.keys()):
        raise UsageError(
            f"prompt {prompt.name}: it asks for {', '.join(missing)}, and a pair gives {', '.join(given)}. "
            "Name a prompt that asks for these only."
        )
    if request.out.suffix != ".jsonl":
        raise UsageError(f"{request.out}: write to a file that ends in .jsonl.")
    return prompt


def _pairs(read: ReadOptions, broken: SkipCounts) -> Iterator[Pair]:
    for batch in read_pairs(read):
        broken.add(batch.rejects)
        yield from batch.pairs


def _prompt_step(prompt: Prompt, model: str, pair: Pair, attempt: int) -> LLMStep[Answer[str]]:
    request = prompt.request(pair_values(pair), model=model, row=pair.key, sample=attempt)
    [answer] = yield from request_answers([request], TextShape("text"))
    return answer


def _line(pair: Pair, done: RowResult[Answer[str]], prompt: Prompt, model: str) -> dict[str, Any]:
    answer, error = done.result, done.error
    if answer is None:
        reason = error.word if isinstance(error, RequestError) else "bad_row"
        answer = Answer(None, reason)
    text = answer.value if answer.value is not None else answer.raw
    return {
        "key": pair.key,
        "caption": pair.caption,
        "text": text,
        "status": "rejected" if answer.reason else "kept",
        "reason": answer.reason,
        "prompt": prompt.id,
        "model": model,
        "request": answer.key,
    }
