"""The job as a loop over ``litellm.acompletion``: a semaphore, a gather, a file of answers."""

import asyncio
import json

import litellm  # type: ignore[import-not-found]  # it stands in an environment of its own

from benchmarks.llm.peers.job import MAX_TOKENS, MODEL, TEMPERATURE, Job, read_job


async def ask_all(job: Job) -> list[tuple[int, str | None]]:
    """Ask about every caption."""
    places = asyncio.Semaphore(job.at_once)
    with (job.work / "out.jsonl").open("w", encoding="utf-8") as out:

        async def ask(number: int) -> tuple[int, str | None]:
            async with places:
                answer = await litellm.acompletion(
                    model=f"openai/{MODEL}",
                    api_base=job.url,
                    api_key="none",
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
with job.timed():
    answers = asyncio.run(ask_all(job))
job.finish(answers)
