"""The job as a loop over the bare ``openai`` package: a semaphore, a gather, a file of answers. Variant: HTTP client."""

import asyncio
import json
from typing import Any

import httpx2
import openai

from benchmarks.llm.peers.job import MAX_TOKENS, MODEL, TEMPERATURE, Job, preload, read_job


async def ask_all(job: Job) -> list[tuple[int, str | None]]:
    """Ask about every caption."""
    limits = httpx2.Limits(max_connections=job.at_once, max_keepalive_connections=job.at_once)
    kind: Any = openai.DefaultAioHttpClient if job.variant == "aiohttp" else openai.DefaultAsyncHttpxClient
    places = asyncio.Semaphore(job.at_once)
    with (job.work / "out.jsonl").open("w", encoding="utf-8") as out:
        async with openai.AsyncOpenAI(base_url=job.url, api_key="none", http_client=kind(limits=limits)) as client:

            async def ask(number: int) -> tuple[int, str | None]:
                async with places:
                    answer = await client.chat.completions.create(
                        model=MODEL,
                        messages=[
                            {"role": "system", "content": job.system},
                            {"role": "user", "content": job.captions[number]},
                        ],
                        max_tokens=MAX_TOKENS,
                        temperature=TEMPERATURE,
                    )
                text = answer.choices[0].message.content
                out.write(json.dumps({"id": number, "answer": text}) + "\n")
                return number, text

            return list(await asyncio.gather(*map(ask, range(len(job.captions)))))


job = read_job()
preload(
    "openai.resources.chat.chat",
    "openai.resources.chat.completions.completions",
    "httpcore2",
    "h2.connection",
    "aiohttp",
)
with job.timed():
    answers = asyncio.run(ask_all(job))
job.finish(answers)
