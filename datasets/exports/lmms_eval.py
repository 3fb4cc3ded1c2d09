"""lmms-eval export: a task folder with two-choice questions.

``lmms_eval --include_path FOLDER --tasks NAME`` runs it; ``NAME`` is the folder's name. The folder has the task
(``NAME.yaml``), its functions (``utils.py``, a copy of `lmms_eval_functions.py`) and the questions with embedded images
(``data/test-00000.parquet``, ...). The task names each of these files by its path below the folder, which lmms-eval resolves
against that of the task, so the folder can be moved. Metrics: accuracy, the share of negatives right in both orders, and the share of
answers A.

Source: lmms-eval 0.7.3, docs/task_guide.md and ``load_yaml_config`` (local files, not patterns, below the task's folder).
"""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pairwright.datasets.atomic_files import replace_atomically, write_text
from pairwright.datasets.exports.embedded_tables import IMAGE, Schema, embed_images, write_tables
from pairwright.datasets.exports.two_choice import QUESTION, ChoiceSource
from pairwright.datasets.exports.writing import ExportOptions, ExportResult
from pairwright.datasets.shards.sample_source import SampleSource

_FUNCTIONS = Path(__file__).with_name("lmms_eval_functions.py")
_TEXTS = ("pair", "question", "A", "B", "answer", "category")
_SCHEMA: Schema = {"image": IMAGE, **dict.fromkeys(_TEXTS, "string")}
_TASK = """task: {name}
dataset_path: parquet
dataset_kwargs:
  data_files:
    test: {files}
test_split: test
output_type: generate_until
doc_to_visual: !function utils.doc_to_visual
doc_to_text: !function utils.doc_to_text
doc_to_target: answer
generation_kwargs:
  max_new_tokens: 16
  do_sample: false
process_results: !function utils.process_results
metric_list:
  - metric: accuracy
    aggregation: !function utils.accuracy
    higher_is_better: true
  - metric: both_orders
    aggregation: !function utils.both_orders
    higher_is_better: true
  - metric: answered_a
    aggregation: !function utils.answered_a
    higher_is_better: false
metadata:
  - version: 1.0
"""


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write the questions of ``source`` into the task folder ``out``; details: ``without_negatives`` (pairs)."""
    choices = ChoiceSource(source)
    written = write_tables(_rows(choices, options), _SCHEMA, out / "data", options, "test")
    name = re.sub(r"\W+", "_", out.name)
    task, functions = out / f"{name}.yaml", out / "utils.py"
    files = [file.relative_to(out).as_posix() for file in written.files]
    write_text(task, _TASK.format(name=name, files=json.dumps(files)))
    with replace_atomically(functions) as temporary:
        shutil.copyfile(_FUNCTIONS, temporary)
    details = {"without_negatives": choices.without}
    return ExportResult(written.rows, (task, functions, *written.files), details)


def _rows(choices: ChoiceSource, options: ExportOptions) -> Iterator[dict[str, Any]]:
    for sample, found in choices.each():
        with options.skip_unusable_images():
            (image,) = embed_images(sample, options)
            for each in found:
                texts = (each.pair, QUESTION, *each.options, each.answer, each.category)
                yield {"image": image, **dict(zip(_TEXTS, texts, strict=True))}
