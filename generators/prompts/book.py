"""Prompts as files: what to say to a model is data, one YAML file a prompt, ours under ``generators/prompts``.

    book = PromptBook()                      # PromptBook(folder): a user's files replace ours by name
    prompt = book.get("positive-swap")
    request = prompt.request({"caption": pair.caption}, model="small")

The keys of a file:

    version          a number for people; raise it when the prompt changes
    about            one line
    values           name -> what it is: what the caller gives, and the template may ask for
    system           the task and its rules; plain text
    user             the template of the last message, see `prompting.templates`
    answer           text or json
    demonstrations   a list of {values, answer}: earlier turns of the chat; a mapping as answer is written as JSON
    lists            name -> texts that the caller draws from, such as wordings of a question
    temperature, top_p, max_tokens, stop
    schema           of the answer; most callers bring their own, which then counts
    typical          an answer of the usual kind and length, by which plans reckon; else the first demonstration's

A prompt's `id` is its name and a hash over everything that shapes what is sent: the system text, the demonstrations as
they are rendered, the template, the lists, the parameters, the schema. Comments, the order of keys, folded or quoted
writing, ``version``, ``about``, ``typical`` and descriptions of values do not change it.
"""

from functools import cache
from pathlib import Path

from pairwright.datasets.errors import ConfigError, UsageError
from pairwright.generators.prompts.parser import load_prompt, suggestion
from pairwright.generators.prompts.prompt import Prompt

__all__ = ["BUILT_IN", "Prompt", "PromptBook", "load_prompt"]

BUILT_IN = Path(__file__).parents[1] / "prompts"


class PromptBook:
    """The prompts there are: ours, and those of a user's folder, each of which replaces ours of the same name."""

    def __init__(self, folder: Path | None = None) -> None:
        """Read the user's files, all of them: what is broken is told before anything is sent.

        Raises:
            UsageError: when there is no such folder.
            ConfigError: for a broken file, with file and line.
        """
        self._read: dict[str, Prompt] = {}
        self._files = _prompt_files(BUILT_IN)
        if folder is None:
            return
        if not folder.is_dir():
            raise UsageError(f"{folder}: there is no such folder of prompts. Make it, or leave --prompts out.")
        for name, path in _prompt_files(folder).items():
            prompt = load_prompt(path)
            if name in self._files:
                _check_replacement(prompt, _load_built_in(self._files[name]))
            self._read[name] = prompt

    def get(self, name: str) -> Prompt:
        """Return a prompt.

        Raises:
            UsageError: when there is none of that name.
        """
        if name not in self._read:
            if name not in self._files:
                known = self._files.keys() | self._read.keys()
                raise UsageError(
                    f"there is no prompt '{name}'.{suggestion(name, known)} `pairwright prompts list` shows them all."
                )
            self._read[name] = _load_built_in(self._files[name])
        return self._read[name]

    def misnamed(self) -> dict[str, str]:
        """Return the user's prompts that replace none of ours and have nearly the name of one; each with that question."""
        hints = {name: suggestion(name, self._files).strip() for name in self._read if name not in self._files}
        return {name: hint for name, hint in hints.items() if hint}

    def listing(self) -> list[Prompt]:
        """Return all prompts by name."""
        return [self.get(name) for name in sorted(self._files.keys() | self._read.keys())]


@cache
def _load_built_in(path: Path) -> Prompt:
    """Read a prompt that comes along; every stage of a build has a book of its own."""
    return load_prompt(path)


def _prompt_files(folder: Path) -> dict[str, Path]:
    for path in sorted(folder.glob("*.yml")):
        raise ConfigError(f"{path}: prompt files end in .yaml. Rename it.")
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def _check_replacement(prompt: Prompt, ours: Prompt) -> None:
    """Refuse a file that the callers of ours could not use.

    Raises:
        ConfigError: with file and line.
    """

    def refuse(key: str, what: str) -> None:
        raise ConfigError(f"{prompt.source}:{prompt.lines.get((key,), 1)}: {what}")

    for name in sorted(prompt.needs - ours.values.keys()):
        refuse(
            "user",
            f"'{name}' is not given to this prompt.{suggestion(name, ours.values)} It is given: {', '.join(ours.values)}.",
        )
    if prompt.answer != ours.answer:
        refuse("answer", f"the answer has to be {ours.answer}, as in the prompt that it replaces.")
    for name in sorted(ours.lists.keys() - prompt.lists.keys()):
        refuse("lists", f"the list '{name}' is drawn from. Add it under 'lists'.")
