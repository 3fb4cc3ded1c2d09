"""The job with datatrove's inference runner against an endpoint. Variant ``checkpoints``: with its checkpoints."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from datatrove.data import Document  # type: ignore[import-not-found]  # it stands in an environment of its own
from datatrove.executor import LocalPipelineExecutor  # type: ignore[import-not-found]
from datatrove.pipeline.inference.run_inference import (  # type: ignore[import-not-found]
    InferenceConfig,
    InferenceRunner,
)
from datatrove.pipeline.writers import JsonlWriter  # type: ignore[import-not-found]

from benchmarks.llm.peers.job import MAX_TOKENS, MODEL, TEMPERATURE, preload, read_job


async def describe(document: Any, generate: Callable[[dict[str, Any]], Awaitable[Any]]) -> str:
    """Ask once about a document."""
    messages = [{"role": "system", "content": job.system}, {"role": "user", "content": document.text}]
    answer = await generate({"messages": messages, "max_tokens": MAX_TOKENS, "temperature": TEMPERATURE})
    return str(answer.text)


job = read_job()
preload("httpx", "httpcore", "aiofiles", "aiosqlite", "orjson")
checked = job.variant == "checkpoints"
name = "${rank}_chunk_${chunk_index}.jsonl" if checked else "${rank}.jsonl"
documents = [Document(text=caption, id=str(number)) for number, caption in enumerate(job.captions)]
with job.timed():
    runner = InferenceRunner(
        rollout_fn=describe,
        config=InferenceConfig(
            server_type="endpoint",
            model_name_or_path=MODEL,
            endpoint_url=job.url.removesuffix("/v1"),
            max_concurrent_generations=job.at_once,
        ),
        output_writer=JsonlWriter(str(job.work / "out"), output_filename=name, compression=None),
        checkpoints_local_dir=str(job.work / "checkpoints") if checked else None,
        records_per_chunk=500,
        skip_bad_requests=True,
    )
    LocalPipelineExecutor([documents, runner], tasks=1, logging_dir=str(job.work / "logs")).run()
written = [json.loads(line) for file in sorted((job.work / "out").glob("*.jsonl")) for line in file.open()]
job.finish((int(each["id"]), each["metadata"]["rollout_results"][0]) for each in written)
