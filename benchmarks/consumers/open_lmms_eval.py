"""Open a task folder with lmms-eval, and evaluate a model that always answers A; prints one JSON object.

python open_lmms_eval.py FOLDER SCRATCH
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cpu_torch  # noqa: F401 - first
from lmms_eval import evaluator
from lmms_eval.api.model import lmms
from lmms_eval.tasks import TaskManager

folder, scratch = sys.argv[1:]
task = next(Path(folder).glob("*.yaml")).stem


class AlwaysA(lmms):
    """Answers A, and opens every image."""

    def generate_until(self, requests: list[Any]) -> list[str]:
        """Return A for each request."""
        for request in requests:
            context, _, doc_to_visual, doc_id, name, split = request.args
            assert "A. " in context
            assert doc_to_visual(self.task_dict[name][split][doc_id])[0].size
        return ["A"] * len(requests)

    def loglikelihood(self, requests: list[Any]) -> list[Any]:
        """Not asked by the task."""
        raise NotImplementedError

    def generate_until_multi_round(self, requests: list[Any]) -> list[Any]:
        """Not asked by the task."""
        raise NotImplementedError


found = evaluator.simple_evaluate(
    model=AlwaysA(), tasks=[task], task_manager=TaskManager(include_path=folder), batch_size=1
)
scores = {key.split(",")[0]: value for key, value in found["results"][task].items() if isinstance(value, float)}
rows = len(found["samples"][task])
print(json.dumps({"version": version("lmms-eval"), "rows": rows, "scores": scores}))
