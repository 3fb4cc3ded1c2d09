"""The job with our own session: talks, retries, pacing, and every answer in the durable cache. Variant: transport."""

import json
from collections.abc import Iterator
from functools import partial

from benchmarks.llm.peers.job import MAX_TOKENS, MODEL, TEMPERATURE, Job, preload, read_job
from pairwright.generators.llm.client.messages import Message, Reply, Request
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.client.steps import LLMStep
from pairwright.generators.llm.runner import LLMRow
from pairwright.generators.llm.session import Session

LATE = {
    "direct": ("pairwright.generators.llm.client.direct_transport", "uvloop"),
    "sdk": (
        "pairwright.generators.llm.client.sdk_transport",
        "openai.resources.chat.completions.completions",
        "httpcore2",
        "uvloop",
    ),
}


def describe(system: str, caption: str, attempt: int) -> LLMStep[str | None]:
    """Ask once; a refusal is no answer."""
    messages = (Message("system", system), Message("user", caption))
    parameters = {"max_tokens": MAX_TOKENS, "temperature": TEMPERATURE}
    [outcome] = yield [Request(messages, MODEL, parameters, sample=attempt)]
    return outcome.text if isinstance(outcome, Reply) and not outcome.refusal else None


def ask_all(job: Job) -> Iterator[tuple[int, str | None]]:
    """Ask about every caption."""
    settings = LLMSettings.from_env(
        {}, base_url=job.url, api_key="none", model=MODEL, transport=job.variant, max_concurrency=job.at_once
    )
    rows = (LLMRow(str(number), partial(describe, job.system, each)) for number, each in enumerate(job.captions))
    with (
        (job.work / "out.jsonl").open("w", encoding="utf-8") as out,
        Session(settings, cache=job.work / "cache.sqlite") as session,
    ):
        for done in session.run(rows):
            out.write(json.dumps({"id": int(done.row), "answer": done.result}) + "\n")
            yield int(done.row), done.result


job = read_job()
preload(*LATE[job.variant])
with job.timed():
    answers = list(ask_all(job))
job.finish(answers)
