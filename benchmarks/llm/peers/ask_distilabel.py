"""The job with distilabel: one task over rows. It asks a batch at a time, so a batch is as large as the concurrency."""

from distilabel.models import OpenAILLM  # type: ignore[import-not-found]  # it stands in an environment of its own
from distilabel.pipeline import Pipeline  # type: ignore[import-not-found]
from distilabel.steps import LoadDataFromDicts  # type: ignore[import-not-found]
from distilabel.steps.tasks import TextGeneration  # type: ignore[import-not-found]

from benchmarks.llm.peers.job import MAX_TOKENS, MODEL, TEMPERATURE, read_job

if __name__ == "__main__":  # its workers are processes that import this file
    job = read_job()
    with job.timed():
        with Pipeline(name="describe", cache_dir=str(job.work / "distilabel")) as pipeline:
            rows = LoadDataFromDicts(
                data=[{"id": number, "instruction": each} for number, each in enumerate(job.captions)],
                batch_size=job.at_once,
            )
            task = TextGeneration(
                llm=OpenAILLM(
                    model=MODEL,
                    base_url=job.url,
                    api_key="none",
                    generation_kwargs={"max_new_tokens": MAX_TOKENS, "temperature": TEMPERATURE},
                ),
                system_prompt=job.system,
                input_batch_size=job.at_once,
            )
            rows >> task
        made = pipeline.run(use_cache=True)["default"]["train"]
    job.finish(zip(made["id"], made["generation"], strict=True))
