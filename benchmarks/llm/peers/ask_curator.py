"""The job with Bespoke Curator. Its limits are set out of the way: where a server tells none, they are 200 a minute."""

from typing import Any

from bespokelabs import curator  # type: ignore[import-not-found]  # it stands in an environment of its own

from benchmarks.llm.peers.job import MAX_TOKENS, MODEL, TEMPERATURE, preload, read_job
from datasets import Dataset


class Describe(curator.LLM):  # type: ignore[misc]  # its types are not here
    """Ask once about a caption."""

    def prompt(self, input: dict[str, Any]) -> str:  # noqa: A002 - its name there
        """Return the user's message."""
        return str(input["caption"])

    def parse(self, input: dict[str, Any], response: str) -> dict[str, Any]:  # noqa: A002
        """Return the row of an answer."""
        return {"id": input["id"], "answer": response}


job = read_job()
preload("bespokelabs.curator.request_processor.online.openai_online_request_processor")
with job.timed():
    model = Describe(
        model_name=MODEL,
        backend="openai",
        system_prompt=job.system,
        generation_params={"max_tokens": MAX_TOKENS, "temperature": TEMPERATURE},
        backend_params={
            "base_url": job.url,
            "api_key": "none",
            "max_requests_per_minute": 1_000_000,
            "max_tokens_per_minute": 1_000_000_000,
            "max_concurrent_requests": job.at_once,
            "require_all_responses": False,
        },
    )
    rows = Dataset.from_list([{"id": number, "caption": each} for number, each in enumerate(job.captions)])
    made = model(rows, working_dir=str(job.work / "curator")).dataset
job.finish((each["id"], each["answer"]) for each in made)
