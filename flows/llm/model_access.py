"""From a config's section ``llm`` to a session: the layers between a maker's requests and the server.

A model on this machine (``local:NAME``) stands where else the client does: it is named by what it is and not by where it
lies, nothing is retried or paced, its tokens cost nothing, and JSON is asked for in words.

From the outside in: the user's parameters and a forced form of schemas (they change what is asked, so the cache sees
them), the cache, the budget, the form that the server takes, what the model refuses, and the client or the Batch API.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from threading import Event
from typing import Any

from pairwright.datasets.errors import ConfigError, UsageError
from pairwright.datasets.records import compact_json
from pairwright.flows.config.build import load_config
from pairwright.flows.config.sections import LLMSection
from pairwright.flows.llm.attention_calibration import AttentionCalibration
from pairwright.flows.llm.context import Context
from pairwright.flows.state.receipts import json_hash
from pairwright.generators.language.tokens import Tagger
from pairwright.generators.llm.batch.model import batch_client, cancel_batches, ledger_path
from pairwright.generators.llm.budget import Budget, SpendingTotals
from pairwright.generators.llm.client.factory import require_api_key
from pairwright.generators.llm.client.messages import Request as LLMRequest
from pairwright.generators.llm.client.messages import Usage
from pairwright.generators.llm.client.parameter_overrides import (
    ParameterOverrides,
    ResamplingModel,
    override_parameters,
)
from pairwright.generators.llm.client.request_adaptation import AdaptedModel, RefusedParts
from pairwright.generators.llm.client.response_formats import (
    FixedFormatModel,
    NegotiatedFormatModel,
    apply_response_format,
)
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.local.folder import LocalFolder, find_local_model, is_local
from pairwright.generators.llm.local.model import local_client, local_settings
from pairwright.generators.llm.prices import Price, Prices
from pairwright.generators.llm.runner import RequestTotals
from pairwright.generators.llm.session import ClientOpener, ModelWrapper, Session, Snapshot
from pairwright.generators.prompts.book import PromptBook
from pairwright.generators.protocols import LLMGenerator
from pairwright.generators.registry import LLMMaterials, Materials

CACHE_FILE = "llm-cache.sqlite"
MAX_BATCHED = 50_000  # rows under way in batch mode: a batch holds as many requests


@dataclass(frozen=True)
class ModelAccess:
    """How one run asks its model.

    Attributes:
        section: the model, the pace, the limits.
        cache: file of kept answers.
        retry_failed: whether rows that failed the last time are asked anew.
        seed: of the run; sent to the server, unless it is 0.
        bill: what the run has paid; limits hold for the whole of it.
        context: what rows are given to read besides; None: nothing.
        calibrated: how a local model's attention to it is calibrated; None: attention stays as it is.
    """

    section: LLMSection
    cache: Path
    retry_failed: bool = False
    seed: int = 0
    bill: SpendingTotals = field(default_factory=SpendingTotals, compare=False)
    context: Context | None = None
    calibrated: AttentionCalibration | None = None

    @cached_property
    def local(self) -> LocalFolder | None:
        """The model on this machine, when it is one.

        Raises:
            PairwrightError: there is none of that name, or packages are missing.
        """
        return find_local_model(self.section.model) if is_local(self.section.model) else None

    @property
    def model(self) -> str:
        """The model's name in requests, rows and results."""
        return self.local.name if self.local is not None else self.section.model

    @property
    def parameters(self) -> dict[str, Any]:
        """What is sent in place of the prompts' own parameters."""
        return {**({"seed": self.seed} if self.seed else {}), **self.section.parameters}

    def settings(self) -> LLMSettings:
        """Return the client's settings; key and, where the section is silent, address come from the environment.

        Raises:
            UsageError: when they cannot work.
        """
        if self.local is not None:
            cache_label = self.calibrated.cache_label if self.calibrated is not None else ""
            return local_settings(self.local, max_concurrency=self.section.max_concurrency, cache_label=cache_label)
        taken = {name: getattr(self.section, name) for name in LLMSettings.__dataclass_fields__ if name in _SETTINGS}
        return LLMSettings.from_env(**taken)

    def prices(self) -> Prices:
        """Return what tokens cost.

        Raises:
            PairwrightError: when the section's prices are none.
        """
        section = self.section
        if self.local is not None:
            return Prices({self.model: Price(0.0, 0.0)})
        file = Path(section.prices) if section.prices else None
        return Prices.of(file=file, given=section.price, batch=section.batch)

    def check(self) -> None:
        """Find what cannot work before anything else is done.

        Raises:
            PairwrightError: settings, prices or limits.
        """
        settings = self.settings()
        if self.local is None:
            require_api_key(settings)
        if self.section.max_cost is not None:
            self.prices().needed(self.model)

    def session(
        self, *, watch: Callable[[Snapshot], None], say: Callable[[str], None], stop: Event | None = None
    ) -> Session:
        """Return a session, to be entered; ``stop``, once set, ends its run as Ctrl-C does.

        Raises:
            PairwrightError: when settings, prices or limits cannot work, before anything is sent.
        """
        self.check()
        section, prices = self.section, self.prices()
        refusals = RefusedParts(say) if self.local is None else None
        inside: list[ModelWrapper] = []
        if refusals is not None:  # a local model takes all parameters, and the words of a schema by itself
            inside.append(partial(AdaptedModel, refusals=refusals))
            if section.structured == "auto":
                inside.append(partial(NegotiatedFormatModel, refusals=refusals))
        inside.append(
            lambda model: Budget(
                model,
                prices,
                self.bill,
                max_cost=section.max_cost,
                max_requests=section.max_requests,
                by_estimate=section.batch,
            )
        )
        return Session(
            self.settings(),
            cache=self.cache,
            outside=self._outside(),
            inside=inside,
            refusals=refusals,
            opened=self._opened(say),
            in_flight=MAX_BATCHED if section.batch else 0,
            cost=lambda: self.bill.cost,
            watch=watch,
            say=say,
            stop=stop,
        )

    def _opened(self, say: Callable[[str], None]) -> ClientOpener | None:
        if self.local is not None:
            return local_client(self.local, around=self.calibrated.around if self.calibrated is not None else None)
        return batch_client(say=say) if self.section.batch else None

    def cancel_batches(self, say: Callable[[str], None]) -> list[str]:
        """Cancel what runs at the server of this cache's batches; return their ids.

        Raises:
            PairwrightError: there are none, or the server does not answer.
        """
        if self.local is not None:
            raise UsageError(f"{self.section.model} is on this machine and has no batches. Leave --batch-cancel out.")
        return asyncio.run(cancel_batches(self.settings(), ledger_path(self.cache), say=say))

    def _outside(self) -> Sequence[ModelWrapper]:
        section = self.section
        outside: list[ModelWrapper] = [ResamplingModel]
        if section.structured != "auto":
            outside.append(partial(FixedFormatModel, form=section.structured))
        if self.parameters:
            outside.append(partial(ParameterOverrides, parameters=self.parameters))
        return outside

    def materials(self, materials: Materials, tagger: Tagger) -> LLMMaterials:
        """Return what a maker draws on.

        Raises:
            ConfigError: when the folder of prompts is none, or one of them is broken.
        """
        book = PromptBook(Path(self.section.prompts) if self.section.prompts else None)
        return LLMMaterials(materials.wordnet, materials.pool, materials.seed, self.model, prompts=book, tagger=tagger)

    def changed(self, request: LLMRequest) -> LLMRequest:
        """Return a request as it is asked: with the section's parameters and form."""
        request = override_parameters(request, self.parameters) if self.parameters else request
        section = self.section
        return request if section.structured == "auto" else apply_response_format(request, section.structured)

    def shape(self) -> str:
        """Return what shapes the answers of a whole stage: what `identity` has, with the user's prompts by content."""
        section = self.section
        prompts = Path(section.prompts)
        files = sorted(prompts.glob("*.yaml")) if section.prompts else []
        return json_hash([*self._server(), [[file.name, file.read_text(encoding="utf-8")] for file in files]])

    def _server(self) -> list[Any]:
        section = self.section
        context = [self.context.captions.fingerprint] if self.context is not None else []
        return [self.model, self.settings().cache_endpoint, section.structured, self.parameters, *context]

    def identity(self, maker: LLMGenerator, options: Mapping[str, Any], seed: int) -> str:
        """Return a hash over all that shapes a maker's requests, its rows excepted."""
        return json_hash([maker.name, maker.version, list(maker.prompts), compact_json(options), seed, self._server()])

    def told(self, spent: RequestTotals, before: SpendingTotals | None = None) -> dict[str, Any]:
        """Return what manifests and results tell of a stage: the model, its server, what was paid; no secrets.

        ``in_all`` is what the answers cost that its rows rest on, whenever they were paid for: by a run that was
        stopped, by another build on the same cache, or now. An answer that several rows share (equal captions) is in
        there once; ``shared`` tells for how many requests none was needed.

        Args:
            spent: on the stage's rows, cached answers included.
            before: the bill as it stood when what is told of began; None: the whole run is told of.
        """
        bill = self.bill.since(before or SpendingTotals())
        usage = Usage(
            spent.prompt_tokens + spent.kept_prompt_tokens,
            spent.completion_tokens + spent.kept_completion_tokens,
            spent.cached_tokens,
        )
        price = self.prices().find(self.model)
        in_all = {
            "answers": spent.answers,
            "shared": spent.shared,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cost": price.cost(usage) if price is not None else None,
        }
        server = self.settings().cache_endpoint
        return {"model": self.model, "server": server, **bill.described(), "in_all": in_all}


_SETTINGS = frozenset(LLMSection.model_fields)


def model_access_for_build(
    section: LLMSection | None, root: Path, bill: SpendingTotals, *, retry_failed: bool = False, seed: int = 0
) -> ModelAccess:
    """Return how the stages of a build ask: one cache and one bill for all of them.

    Raises:
        ConfigError: when no model is named.
    """
    if section is None:
        raise ConfigError("a generator asks a model, and none is named. Add an `llm:` section with `model`.")
    return ModelAccess(section, cache_path(section, root), retry_failed, seed, bill)


def cache_path(section: LLMSection, folder: Path) -> Path:
    """Return the file of kept answers: the one that the section names, or else one in ``folder``."""
    return Path(section.cache) if section.cache else folder / CACHE_FILE


def build_cache_path(folder: Path) -> Path:
    """Return the file of kept answers of a build directory, by its ``build.yaml``; of another folder, the one in it.

    Raises:
        ConfigError: when ``build.yaml`` cannot be read.
    """
    config = folder / "build.yaml"
    section = load_config(config).llm if config.is_file() else None
    return cache_path(section, folder) if section is not None else folder / CACHE_FILE
