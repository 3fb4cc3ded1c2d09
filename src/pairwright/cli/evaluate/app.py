"""``pairwright evaluate``: the accuracy of models by task, and of scores and embeddings computed elsewhere."""

from collections.abc import Sequence

from pairwright.cli.evaluate import answers, choices, models, multi_document, precomputed
from pairwright.cli.options.declarations import App, DefaultCommandGroup

_SCORES = (".jsonl", ".csv", ".tsv", ".parquet")


class DefaultScoresGroup(DefaultCommandGroup):
    """Takes ``evaluate scores.jsonl`` for ``evaluate scores scores.jsonl``."""

    default = "scores"

    def is_default(self, args: Sequence[str]) -> bool:
        """Return whether a file of scores replaces the task."""
        return args[0].endswith(_SCORES)


app = App("Evaluate models, or scores and embeddings computed elsewhere.", cls=DefaultScoresGroup)
app.command("scores")(precomputed.scores)
app.command("embeddings")(precomputed.embeddings)
app.command("negatives")(models.negatives)
app.command("retrieval")(models.retrieval)
app.command("zero-shot")(models.zero_shot)
app.command("conditions")(models.conditions)
app.command("rationales")(models.rationales)
app.command("answers")(answers.answers)
app.command("choices")(choices.choices)
app.command("multi-document")(multi_document.multi_document)
