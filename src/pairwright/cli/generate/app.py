"""``pairwright generate``: texts for pairs, without a build."""

from collections.abc import Sequence

from pairwright.cli.generate.annotations import conversations, negatives, positives
from pairwright.cli.generate.captions import captions
from pairwright.cli.generate.groups import groups
from pairwright.cli.generate.mistakes import mistakes
from pairwright.cli.generate.orders import orders
from pairwright.cli.generate.rationales import MultipleImports, rationales
from pairwright.cli.generate.run import run
from pairwright.cli.generate.triples import triples
from pairwright.cli.options.declarations import App, DefaultCommandGroup


class GeneratorGroup(DefaultCommandGroup):
    """Takes ``generate --generator NAME INPUT`` for ``generate run --generator NAME INPUT``."""

    default = "run"

    def is_default(self, args: Sequence[str]) -> bool:
        """Return whether the arguments name a generator."""
        return any(each.partition("=")[0] == "--generator" for each in args)


app = App(
    "Generate texts for pairs, without a build.\n\n`pairwright generate --generator NAME INPUT --out OUT` runs an installed generator.",
    cls=GeneratorGroup,
)
app.command("captions")(captions)
app.command("negatives")(negatives)
app.command("positives")(positives)
app.command("conversations")(conversations)
app.command("rationales", cls=MultipleImports)(rationales)
app.command("triples")(triples)
app.command("mistakes")(mistakes)
app.command("groups")(groups)
app.command("orders")(orders)
app.command("run")(run)
