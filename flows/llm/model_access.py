"""Access to a model: from the settings of a run to a session with its layers.

Layers from the outside in: the user's parameters and a fixed response format (they change the request, so they apply
before the cache), the cache, the budget, the response format that the server supports, what the model refuses, and the
client or the Batch API.

A local model (``local:NAME``) replaces the client. It is identified by its content and not by its path, nothing is
retried or paced, its tokens are free, and JSON is requested in the prompt.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from threading import Event
from typing import Any

from pairwright.datasets.count_phrases import count_phrase
from pairwright.datasets.errors import ConfigError, UsageError
from pairwright.datasets.records import compact_json
from pairwright.flows.config.llm_section import LLMSection
from pairwright.flows.llm.answer_client import ServiceModel
from pairwright.flows.llm.attention_calibration import AttentionCalibration
from pairwright.flows.llm.context import Context
from pairwright.flows.state.receipts import json_hash
from pairwright.generators.language.tokens import Tagger
from pairwright.generators.llm.batch.model import batch_client, cancel_batches, ledger_path
from pairwright.generators.llm.budget import Budget, SpendingTotals
from pairwright.generators.llm.cache.contents import count_at_other_endpoints
from pairwright.generators.llm.client.base_url import OPENAI
from pairwright.generators.llm.client.factory import require_api_key
from pairwright.generators.llm.client.messages import Request as LLMRequest
from pairwright.generators.llm.client.messages import Usage
from pairwright.generators.llm.client.parameter_overrides import check_overrides, override_parameters, raise_temperature
from pairwright.generators.llm.client.request_adaptation import AdaptedModel, RefusedParts
from pairwright.generators.llm.client.response_formats import (
    NegotiatedFormatModel,
    apply_response_format,
)
from pairwright.generators.llm.client.settings import LLMSettings
from pairwright.generators.llm.images import MessageImages
from pairwright.generators.llm.local.folder import LocalFolder, find_local_model, is_local
from pairwright.generators.llm.local.model import local_client, local_settings
from pairwright.generators.llm.prices import Price, Prices
from pairwright.generators.llm.runner import RequestTotals
from pairwright.generators.llm.session import ClientOpener, ModelWrapper, Session, Snapshot
from pairwright.generators.prompts.book import PromptBook
from pairwright.generators.protocols import AnyLLMGenerator
from pairwright.generators.registry import LLMMaterials, Materials

CACHE_FILE = "llm-cache.sqlite"
MAX_BATCHED = 50_000  # rows in flight in batch mode: a batch holds as many requests


@dataclass(frozen=True)
class ModelAccess:
    """The model of one run and how it is used.

    Attributes:
        section: model, pace and limits.
        cache: file of the response cache.
        retry_failed: retry the rows that failed in the previous run.
        seed: seed of the run, sent to the server unless it is 0.
        bill: what the run has paid so far; limits apply to all of it.
        context: context of the rows; None: none.
        calibrated: calibration of a local model's attention to the context; None: none.
        service: answers the requests in place of this process, with its cache and within its limits.
    """

    section: LLMSection
    cache: Path
    retry_failed: bool = False
    seed: int = 0
    bill: SpendingTotals = field(default_factory=SpendingTotals, compare=False)
    context: Context | None = None
    calibrated: AttentionCalibration | None = None
    service: ServiceModel | None = field(default=None, compare=False)

    @cached_property
    def local(self) -> LocalFolder | None:
        """The local model; None if the model is on a server.

        Raises:
            PairwrightError: there is no such model, or packages are missing.
        """
        return find_local_model(self.section.model) if is_local(self.section.model) else None

    @property
    def model(self) -> str:
        """The model's name in requests, rows and results."""
        return self.local.name if self.local is not None else self.section.model

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters sent in place of those of the prompts."""
        return {**({"seed": self.seed} if self.seed else {}), **self.section.parameters}

    def settings(self) -> LLMSettings:
        """Return the settings of the client; API key and default base URL come from the environment.

        Raises:
            UsageError: the settings cannot work.
        """
        if self.local is not None:
            cache_label = self.calibrated.cache_label if self.calibrated is not None else ""
            return local_settings(self.local, max_concurrency=self.section.max_concurrency, cache_label=cache_label)
        taken = {name: getattr(self.section, name) for name in LLMSettings.__dataclass_fields__ if name in _SETTINGS}
        return LLMSettings.from_env(**taken)

    def prices(self) -> Prices:
        """Return the prices of tokens.

        Raises:
            PairwrightError: the prices of the section are invalid.
        """
        section = self.section
        if self.local is not None:
            return Prices({self.model: Price(0.0, 0.0)})
        file = Path(section.prices) if section.prices else None
        return Prices.of(file=file, given=section.price, batch=section.batch)

    @cached_property
    def images(self) -> MessageImages:
        """The encoder of images, which all generators of a run share.

        Raises:
            PairwrightError: the prices of the section are invalid.
        """
        rule = self.prices().image_rule(self.model)
        section = self.section
        return MessageImages.for_model(
            rule, edge=section.image_edge, detail=section.image_detail, urls=section.image_urls
        )

    def check(self) -> None:
        """Check settings, parameters, API key, prices and limits, before any other work.

        Raises:
            PairwrightError: one of them cannot work.
        """
        settings = self.settings()
        check_overrides(self.parameters)
        if self.local is None:
            require_api_key(settings)
        if self.section.max_cost is not None:
            self.prices().needed(self.model)

    def session(
        self, *, watch: Callable[[Snapshot], None], say: Callable[[str], None], stop: Event | None = None
    ) -> Session:
        """Return a session, not yet entered; setting ``stop`` ends its run like Ctrl-C.

        Raises:
            PairwrightError: settings, prices or limits cannot work.
        """
        if self.service is not None:
            return self._session_of_service(self.service, stop)
        self.check()
        section, prices = self.section, self.prices()
        refusals = RefusedParts(say) if self.local is None else None
        inside: list[ModelWrapper] = []
        if refusals is not None:  # a local model accepts all parameters and gets schemas in the prompt
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
            prepare=self.as_sent,
            inside=inside,
            refusals=refusals,
            opened=self._opened(say),
            in_flight=MAX_BATCHED if section.batch else 0,
            cost=lambda: self.bill.cost,
            watch=watch,
            say=say,
            stop=stop,
        )

    def _session_of_service(self, service: ServiceModel, stop: Event | None) -> Session:
        prices = self.prices()
        return Session(
            self.settings(),
            cache=None,
            opened=lambda *_: service,
            inside=[lambda model: Budget(model, prices, self.bill)],  # without limits: those are the service's
            cost=lambda: self.bill.cost,
            watch=service.report,
            stop=stop,
        )

    def for_job(self, service: ServiceModel) -> "ModelAccess":
        """Return the access of one of several jobs: requests go to a service, and it counts its own spending."""
        return replace(self, service=service, bill=replace(self.bill))

    def without_address(self) -> "ModelAccess":
        """Return the access for jobs that a service answers: without the server's address, which may hold a password."""
        section = self.section.model_copy(
            update={"endpoint": self.settings().cache_endpoint, "base_url": OPENAI, "transport": "auto"}
        )
        return replace(self, section=section, bill=SpendingTotals())

    def _opened(self, say: Callable[[str], None]) -> ClientOpener | None:
        if self.local is not None:
            return local_client(self.local, around=self.calibrated.around if self.calibrated is not None else None)
        return batch_client(say=say) if self.section.batch else None

    def cancel_batches(self, say: Callable[[str], None]) -> list[str]:
        """Cancel the batches of this cache that are running at the server; return their ids.

        Raises:
            PairwrightError: there are no batches, or the server does not answer.
        """
        if self.local is not None:
            raise UsageError(f"{self.section.model} is a local model and has no batches. Remove --batch-cancel.")
        return asyncio.run(cancel_batches(self.settings(), ledger_path(self.cache), say=say))

    def prompts(self) -> PromptBook:
        """Return the prompts, those of the section's folder included.

        Raises:
            ConfigError: there is no such folder, or one of its prompts is invalid.
        """
        return PromptBook(Path(self.section.prompts) if self.section.prompts else None)

    def materials(self, materials: Materials, tagger: Tagger) -> LLMMaterials:
        """Return the resources of an LLM generator; errors as in `prompts`."""
        return LLMMaterials(
            materials.wordnet,
            materials.pool,
            materials.seed,
            model=self.model,
            prompts=self.prompts(),
            tagger=tagger,
            images=self.images,
        )

    def as_sent(self, request: LLMRequest) -> LLMRequest:
        """Return a request as it is sent: with the parameters and response format of the section, and resampled if retried.

        Raises:
            UsageError: the response format needs the place of a parameter.
        """
        request = override_parameters(request, self.parameters)
        section = self.section
        return raise_temperature(
            request if section.structured == "auto" else apply_response_format(request, section.structured)
        )

    def stage_identity(self) -> str:
        """Return a hash over everything that shapes the answers of a stage, the files of the user's prompts included."""
        folder = self.section.prompts
        files = sorted(Path(folder).glob("*.yaml")) if folder else []
        return json_hash([*self._server(), [[file.name, file.read_text(encoding="utf-8")] for file in files]])

    def _server(self) -> list[Any]:
        section = self.section
        context = [self.context.captions.fingerprint] if self.context is not None else []
        images = [self.images.form] if (section.image_edge, section.image_detail) != (0, "auto") else []
        return [self.model, self.settings().cache_endpoint, section.structured, self.parameters, *context, *images]

    def identity(self, generator: AnyLLMGenerator, options: Mapping[str, Any], seed: int) -> str:
        """Return a hash over everything that shapes the requests of a generator, except its rows."""
        own = [generator.name, generator.version, list(generator.prompts), compact_json(options), seed]
        return json_hash([*own, self._server()])

    def bill_facts(self, spent: RequestTotals, before: SpendingTotals) -> dict[str, Any]:
        """Return the bill of a stage for manifests and results: model, server, amounts; no secrets.

        ``in_all`` is the cost of the answers that the rows use, whenever they were paid: by a stopped run, by another
        build with the same cache, or now. An answer that several rows share (equal captions) counts once; ``shared`` is
        the number of requests that needed none of their own, ``alone`` that of the items of shared requests that were
        requested again by themselves.

        Args:
            spent: on the rows of the stage, cached answers included.
            before: the bill at the start of the stage.
        """
        bill = self.bill.since(before)
        usage = Usage(
            spent.prompt_tokens + spent.kept_prompt_tokens,
            spent.completion_tokens + spent.kept_completion_tokens,
            spent.cached_tokens,
        )
        price = self.prices().find(self.model)
        in_all = {
            "answers": spent.answers,
            "shared": spent.shared,
            "alone": spent.alone,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "cost": price.cost(usage) if price is not None else None,
        }
        server = self.settings().cache_endpoint
        return {"model": self.model, "server": server, **bill.described(), "in_all": in_all}

    def describe_unused_cache(self) -> str:
        """Return a message if the cache holds answers of this model from other servers alone; else empty.

        Such a cache comes from another machine, or its server has another address now: all answers would be billed again.
        """
        if self.local is not None or not has_cache(self.cache):
            return ""
        server = self.settings().cache_endpoint
        counts = count_at_other_endpoints(self.cache, server, self.model)
        if not counts:
            return ""
        other, count = next(iter(counts.items()))
        held = f"{self.cache} has {count_phrase(count, 'answer')} of {self.model} from {other}, and none from {server}"
        return f"{held}. If it is the same model there, `--endpoint {other}` (config: `llm.endpoint`) uses them."


def has_cache(path: Path) -> bool:
    """Return whether there is a cache; opening an empty file would write to it."""
    return path.exists() and (path.is_dir() or path.stat().st_size > 0)


_SETTINGS = frozenset(LLMSection.model_fields)


def model_access_for_build(
    section: LLMSection | None, root: Path, bill: SpendingTotals, *, seed: int = 0
) -> ModelAccess:
    """Return the access that the stages of a build share: one cache and one bill for all of them.

    Raises:
        ConfigError: there is no model.
    """
    if section is None:
        raise ConfigError("a generator uses a model, but there is no `llm` section. Add `llm:` with `model`.")
    return ModelAccess(section, cache_path(section, root), seed=seed, bill=bill)


def cache_path(section: LLMSection, folder: Path) -> Path:
    """Return the file of the response cache: that of the section, else one in ``folder``."""
    return Path(section.cache) if section.cache else folder / CACHE_FILE


def build_cache_path(folder: Path) -> Path:
    """Return the file of the response cache of a build directory (by its ``build.yaml``) or of another folder.

    Raises:
        ConfigError: ``build.yaml`` cannot be read.
    """
    config = folder / "build.yaml"
    if not config.is_file():
        return folder / CACHE_FILE
    from pairwright.flows.config.build import load_config  # all sections: slow to import

    section = load_config(config).llm
    return cache_path(section, folder) if section is not None else folder / CACHE_FILE
