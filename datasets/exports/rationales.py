"""Export of student rows from examples with rationales (Distilling step-by-step, section 2.3.2).

``multi-task``   each example twice, distinguished by a prefix of the input: ``[label] x`` gives the label,
                 ``[rationale] x`` the rationale (equations 2.3 and 2.4)
``single-task``  each example once: x gives rationale and label in one text (equation 2.5)

A row has ``id`` (of the example), ``task``, ``objective`` (label, rationale or both), ``input``, ``output``, ``split``
(train or validation), ``key`` (of the pair, for image-text matching) and ``image``.

A file ending in ``.jsonl`` has both splits; a folder gets ``train.jsonl`` and ``validation.jsonl``. Only kept examples
become rows.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pairwright.datasets.atomic_files import replace_atomically
from pairwright.datasets.errors import NothingKeptError
from pairwright.datasets.exports.writing import ExportOptions, ExportResult, ImageNames, encode_json
from pairwright.datasets.records import Example
from pairwright.datasets.shards.sample_source import SampleSource

Objectives = Literal["multi-task", "single-task"]
SPLITS = ("train", "validation")


@dataclass(frozen=True, slots=True)
class StudentRows:
    """Format of a student's rows.

    Attributes:
        objectives: ``multi-task`` or ``single-task``; see the module.
        label_prefix: prefix of inputs whose output is the label.
        rationale_prefix: prefix of inputs whose output is the rationale.
    """

    objectives: Objectives = "multi-task"
    label_prefix: str = "[label] "
    rationale_prefix: str = "[rationale] "

    def make_rows(self, example: Example, image: str = "") -> list[dict[str, Any]]:
        """Return the rows of an example; none for a rejected one."""
        if example.status != "kept":
            return []
        if self.objectives == "single-task":
            return [_row(example, "both", "", f"{example.rationale} So the answer is {example.label}.", image)]
        return [
            _row(example, "label", self.label_prefix, example.label, image),
            _row(example, "rationale", self.rationale_prefix, example.rationale, image),
        ]


def _row(example: Example, objective: str, prefix: str, output: str, image: str) -> dict[str, Any]:
    return {
        "id": example.id,
        "task": example.task,
        "objective": objective,
        "input": prefix + example.input,
        "output": output,
        "split": example.split,
        "key": example.key,
        "image": image,
    }


DEFAULT_STUDENT_ROWS = StudentRows()


def write(source: SampleSource, out: Path, options: ExportOptions) -> ExportResult:
    """Write the student rows of all examples of ``source`` to a JSONL file or a folder.

    Raises:
        NothingKeptError: if it has none; nothing is written.
    """
    names, count = ImageNames(options), 0
    with open_student_rows(out) as write_row:
        for example in source.examples:
            count += write_row(example, "")
        for sample in source.samples():
            image = names.name(sample) if sample.examples else ""
            for example in sample.examples:
                count += write_row(example, image)
        if not count:
            fix = "Build with `rationales`, or give those of `pairwright generate rationales` with --rationales."
            raise NothingKeptError("no kept rationale", where="the samples", fix=fix)
    return ExportResult(count, student_files(out), details=names.details())


def student_files(out: Path) -> tuple[Path, ...]:
    """Return the files of student rows."""
    return (out,) if out.suffix else tuple(out / f"{split}.jsonl" for split in SPLITS)


@contextmanager
def open_student_rows(out: Path, rows: StudentRows = DEFAULT_STUDENT_ROWS) -> Iterator[Callable[[Example, str], int]]:
    """Provide a function that writes the rows of an example (and the name of its image) and returns their number.

    The files are written atomically at the end of the block.
    """
    with ExitStack() as stack:
        paths = student_files(out)
        files = [stack.enter_context(stack.enter_context(replace_atomically(path)).open("wb")) for path in paths]
        file_of = dict(zip(SPLITS, files if len(files) > 1 else files * len(SPLITS), strict=True))

        def write_rows(example: Example, image: str) -> int:
            made = rows.make_rows(example, image)
            for row in made:
                file_of[example.split].write(encode_json(row) + b"\n")
            return len(made)

        yield write_rows
