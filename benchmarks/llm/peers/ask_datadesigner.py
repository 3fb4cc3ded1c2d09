"""The job with NeMo Data Designer: captions as seed rows, one text column."""

import json

import data_designer.config as dd  # type: ignore[import-not-found]  # it stands in an environment of its own
from data_designer.config.run_config import ResumeMode  # type: ignore[import-not-found]
from data_designer.interface import DataDesigner  # type: ignore[import-not-found]

from benchmarks.llm.peers.job import MAX_TOKENS, MODEL, TEMPERATURE, preload, read_job

job = read_job()
preload(
    "data_designer.engine.models.facade",
    "duckdb",
    "opentelemetry.exporter.prometheus",
    "opentelemetry.sdk.metrics",
    "pyarrow.dataset",
    "tiktoken",
)
seed = job.work / "captions.jsonl"
seed.write_text("".join(json.dumps({"id": n, "caption": each}) + "\n" for n, each in enumerate(job.captions)))
with job.timed():
    designer = DataDesigner(
        artifact_path=job.work / "designed",
        model_providers=[dd.ModelProvider(name="here", endpoint=job.url, api_key="none")],
    )
    model = dd.ModelConfig(
        alias="model",
        model=MODEL,
        provider="here",
        inference_parameters=dd.ChatCompletionInferenceParams(
            max_tokens=MAX_TOKENS, temperature=TEMPERATURE, max_parallel_requests=job.at_once
        ),
    )
    builder = dd.DataDesignerConfigBuilder(model_configs=[model])
    builder.with_seed_dataset(dd.LocalFileSeedSource(path=str(seed)))
    builder.add_column(
        dd.LLMTextColumnConfig(name="answer", model_alias="model", system_prompt=job.system, prompt="{{ caption }}")
    )
    made = designer.create(
        builder, num_records=len(job.captions), dataset_name="captions", resume=ResumeMode.IF_POSSIBLE
    ).load_dataset()
job.finish(zip(map(int, made["id"]), made["answer"], strict=True))
