"""A prompt whose answer is text, for every pair of an input: ``pairwright prompts ask``.

A line of OUT is a pair, in the order of the input:

    {"key": "...", "caption": "...", "text": "...", "status": "kept", "reason": "", "prompt": "name@hash",
     "model": "...", "request": "..."}

``request`` is the key of the answer in the cache. The text of a rejected row is the last output of the model. OUT appears
when it is complete; answers are in the cache, so the same command continues a stopped run. Memory: the rows in flight.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import remove_stale_temporaries, replace_atomically
from pairwright.datasets.errors import UsageError
from pairwright.datasets.readers.pairs import ReadOptions
from pairwright.datasets.readers.skip_counts import SkipCounts
from pairwright.datasets.records import Pair, compact_json
from pairwright.flows.commands.pair_inputs import count_pairs, read_counted_pairs
from pairwright.flows.llm.context import ModelRow
from pairwright.flows.llm.estimate import estimate_all
from pairwright.flows.llm.failed_rows import failed_rows_path, read_attempts
from pairwright.flows.llm.model_access import ModelAccess
from pairwright.flows.llm.row_run import run_rows
from pairwright.flows.state.overwrite_checks import refuse_overwriting
from pairwright.flows.state.receipts import json_hash
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.cost_estimate import StagePlan
from pairwright.generators.llm.images import MessageImages, missing_image_reason
from pairwright.generators.llm.output.answers import Answer, request_answers
from pairwright.generators.llm.output.plain_text import TextShape
from pairwright.generators.llm.runner import RowResult
from pairwright.generators.llm.session import Snapshot
from pairwright.generators.prompts.book import Prompt
from pairwright.generators.prompts.prompt import pair_values


@dataclass(frozen=True)
class PromptRequest:
    """Name of a prompt, the pairs to ask about, and the file to write (.jsonl); ``see_image``: send the images too."""

    prompt: str
    read: ReadOptions
    out: Path
    see_image: bool = False


@dataclass(frozen=True)
class PromptTask:
    """The task of a prompt (`flows.llm.row_run.RowTask`): a pair's output is its line of OUT.

    Attributes:
        prompt: the prompt.
        access: the model.
        images: reads the images, which are sent too; None: texts only.
    """

    prompt: Prompt
    access: ModelAccess
    images: MessageImages | None = None
    checks = None

    @property
    def identity(self) -> str:
        """Hash over everything that shapes the requests, except the pairs."""
        return json_hash([self.prompt.id, self.access.stage_identity()])

    def row(self, pair: Pair) -> ModelRow[Pair, Answer[str]]:
        """Return the row of a pair."""
        return ModelRow((pair.key,), (pair,), partial(self._step, pair), pair.caption, pair.key)

    def _step(self, pair: Pair, attempts: Sequence[int]) -> LLMStep[Sequence[Answer[str]]]:
        [attempt] = attempts
        images = self.images.find(pair.image, (pair.width, pair.height)) if self.images is not None else ()
        if self.images is not None and not images:
            return [Answer(None, missing_image_reason(pair.image))]
        values = {**pair_values(pair), "sees": bool(images)}
        request = self.prompt.request(values, model=self.access.model, row=pair.key, sample=attempt, images=images)
        return (yield from request_answers([request], TextShape("text")))

    def finish(self, item: Pair, done: RowResult[Answer[str]]) -> tuple[dict[str, Any], str]:
        """Return the line of a pair, and the reason if it is rejected."""
        answer = done.result if done.result is not None else Answer(None, done.error_code)
        line = {
            "key": item.key,
            "caption": item.caption,
            "text": answer.value if answer.value is not None else answer.raw,
            "status": "rejected" if answer.reason else "kept",
            "reason": answer.reason,
            "prompt": self.prompt.id,
            "model": self.access.model,
            "request": answer.key,
        }
        return line, answer.reason


def ask_prompt(
    request: PromptRequest, access: ModelAccess, note: Callable[[str], None], watch: Callable[[Snapshot], None]
) -> dict[str, Any]:
    """Ask about every pair, and write the answers.

    Args:
        request: prompt, input and output.
        access: the model.
        note: receives messages about the run.
        watch: receives progress snapshots.

    Returns:
        rows, kept, rejected (by reason), skipped rows of the input (by reason), prompt, out, and ``llm`` and ``failed``
        as in `generate_with_model.run_llm_generator`.

    Raises:
        PairwrightError: what stopped the run; answers are in the cache.
    """
    task = _open_task(request, access)
    refuse_overwriting(request.out, request.read.input)
    access.check()
    total = count_pairs(request.read)
    remove_stale_temporaries(request.out, failed_rows_path(request.out))
    reasons, broken = Counter[str](), SkipCounts()

    @contextmanager
    def writer() -> Iterator[Callable[[Pair, dict[str, Any]], None]]:
        with replace_atomically(request.out) as temporary, temporary.open("w", encoding="utf-8") as out:

            def write(_: Pair, line: dict[str, Any]) -> None:
                reasons[line["reason"]] += 1
                out.write(compact_json(line) + "\n")

            yield write

    rows = map(task.row, read_counted_pairs(request.read, broken))
    run = run_rows(access, task, rows, total, writer(), out=request.out, note=note, watch=watch, unit="pairs")
    return {
        "rows": total,
        "kept": reasons.pop("", 0),
        "rejected": dict(sorted(reasons.items())),
        **broken.as_json(),
        "prompt": task.prompt.id,
        "out": str(request.out),
        "llm": run.bill(),
        "failed": run.failures(),
    }


def plan_prompt(request: PromptRequest, access: ModelAccess) -> StagePlan:
    """Return an estimate of `ask_prompt`.

    Raises:
        PairwrightError: the run could not start.
    """
    task = _open_task(request, access)
    rows = map(task.row, read_counted_pairs(request.read, SkipCounts()))
    attempt = read_attempts(request.out, run=task.identity, retry=access.retry_failed)
    return estimate_all(task.prompt.name, rows, access, attempt=attempt, seed=access.seed)


def _open_task(request: PromptRequest, access: ModelAccess) -> PromptTask:
    prompt = access.prompts().get(request.prompt)
    if prompt.answer != "text":
        raise UsageError(f"prompt {prompt.name}: its answer is {prompt.answer}. Name a prompt whose answer is text.")
    available = pair_values(Pair("", "a caption"))
    if not prompt.needs and not request.see_image:
        raise UsageError(
            f"prompt {prompt.name}: it uses no value of a pair, so that all requests would be equal. Write for example "
            "{{ caption }} in `user`, or pass --see-image."
        )
    if missing := sorted(prompt.needs - available.keys()):
        raise UsageError(
            f"prompt {prompt.name}: it asks for {', '.join(missing)}, but a pair has only {', '.join(available)}. "
            "Name a prompt that uses only these."
        )
    if request.out.suffix != ".jsonl":
        raise UsageError(f"{request.out}: the output must end in .jsonl.")
    return PromptTask(prompt.with_image(sees=request.see_image), access, access.images if request.see_image else None)
