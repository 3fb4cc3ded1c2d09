"""Settings that shape the files of a build, which all versions and all parts (``--part``) have in common."""

from collections.abc import Mapping
from typing import Any

from pairwright.datasets.errors import UsageError
from pairwright.datasets.redaction import redact
from pairwright.flows.config.build import BuildConfig
from pairwright.flows.config.sections import PRECOMPUTED, IndexSection, InputSection

_LLM_LIMITS = ("max_concurrency", "requests_per_minute", "tokens_per_minute", "timeout", "max_retries", "patience")
_LLM_ACCESS = ("max_cost", "max_requests", "prices", "price", "cache", "batch", "base_url", "transport")
# Settings that do not change a file of a build.
_NO_EFFECT = frozenset(
    ("workers", "runner", "address", "slurm", "host", "publish", "publish_keep", "copies_gib", "incremental")
)
_INPUT_FREE = frozenset({"path", "on_error"})  # of the input: what may differ between versions


def refuse_changed_settings(config: BuildConfig, before: Mapping[str, Any]) -> None:
    """Refuse an increment with other settings than the full build.

    Raises:
        UsageError: naming the settings that differ, or one that increments do not support.
    """
    old, new = (_fixed_settings(each) for each in (before["config"], redact(config.model_dump(mode="json"))))
    differing = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    if outdated := [name for name in differing if _have_other_keys(old.get(name), new.get(name))]:
        raise UsageError(
            f"{', '.join(outdated)}: the last full build is by a version of pairwright that has other settings, so new "
            "pairs would be processed differently. Build with --full."
        )
    if differing:
        raise UsageError(
            f"{', '.join(differing)}: changed since the last full build, so new pairs would be processed differently. "
            "Build with --full, or restore the old settings."
        )
    if config.retrieve and config.index_section and config.index_section.encoder == PRECOMPUTED:
        raise UsageError("an incremental build cannot add precomputed vectors to an index. Build with --full.")


def shaping_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a config that shape the files of a build."""
    settings = {name: value for name, value in config.items() if name not in _NO_EFFECT}
    if settings.get("llm"):
        settings["llm"] = {
            name: each for name, each in settings["llm"].items() if name not in {*_LLM_LIMITS, *_LLM_ACCESS}
        }
    return settings


def _have_other_keys(old: Any, new: Any) -> bool:
    """Return whether two sections have other settings, not only other values: they are of two versions of pairwright."""
    return isinstance(old, dict) and isinstance(new, dict) and old.keys() != new.keys()


def _fixed_settings(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a config that all versions must have in common."""
    settings = shaping_settings(config)
    settings.pop("part_size", None)
    # A missing section and an empty one mean the same index.
    settings["index"] = (settings["index"] or IndexSection().model_dump(mode="json")) if settings["retrieve"] else None
    # A build of an earlier version lacks the fields that were added since, which have their defaults.
    section = InputSection(path=config["input"]["path"]).model_dump(mode="json") | config["input"]
    settings["input"] = {name: value for name, value in section.items() if name not in _INPUT_FREE}
    return settings
