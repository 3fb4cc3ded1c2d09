"""Prompt files and the book that looks them up: one YAML file for each prompt, built-in ones in ``generators/prompts``.

    book = PromptBook()                      # PromptBook(folder): files of the folder replace built-in ones by name
    prompt = book.get("positive-swap")
    request = prompt.request({"caption": pair.caption}, model="small")

The keys of a file:

    version          a version number for readers
    about            one line
    values           name -> description of the values that the caller passes and the template may use
    system           the task and its rules; plain text
    user             the template of the last message, see `prompts.templates`
    answer           text or json
    demonstrations   a list of {values, answer}: earlier turns of the chat; a mapping as answer is written as JSON
    lists            name -> texts that the caller draws from, such as wordings of a question
    temperature, top_p, max_tokens, stop
    schema           JSON schema of the answer; most callers pass their own, which takes precedence
    with_image       {system, demonstrations} of requests with the image; default: those of the file, and a sentence
                     that says so
    typical          a typical answer, used for cost estimates; default: the answer of the first demonstration

A prompt's `id` is its name and a hash over everything that affects requests: the system text, the rendered
demonstrations, the template, the lists, the parameters, the schema. Comments, the order of keys, YAML style,
``version``, ``about``, ``typical`` and descriptions of values do not change it.
"""

from functools import cache
from pathlib import Path

from pairwright.datasets.errors import ConfigError, UsageError
from pairwright.generators.prompts.parser import load_prompt
from pairwright.generators.prompts.prompt import Prompt
from pairwright.generators.prompts.yaml_file import suggestion

__all__ = ["BUILT_IN", "Prompt", "PromptBook", "load_prompt"]

BUILT_IN = Path(__file__).parents[1] / "prompts"


class PromptBook:
    """The built-in prompts, and those of a user's folder, which replace built-in ones of the same name."""

    def __init__(self, folder: Path | None = None) -> None:
        """Read all files of the user's folder, so that errors are found before anything is sent.

        Raises:
            UsageError: the folder does not exist.
            ConfigError: a file is invalid; the message names file and line.
        """
        self._read: dict[str, Prompt] = {}
        self._files = _prompt_files(BUILT_IN)
        if folder is None:
            return
        if not folder.is_dir():
            raise UsageError(f"{folder}: no such folder of prompts. Create it, or omit --prompts.")
        for name, path in _prompt_files(folder).items():
            prompt = load_prompt(path)
            if name in self._files:
                _check_replacement(prompt, _load_built_in(self._files[name]))
            self._read[name] = prompt

    def get(self, name: str) -> Prompt:
        """Return a prompt.

        Raises:
            UsageError: there is no prompt of that name.
        """
        if name not in self._read:
            if name not in self._files:
                known = self._files.keys() | self._read.keys()
                raise UsageError(
                    f"there is no prompt '{name}'.{suggestion(name, known)} `pairwright prompts list` lists them."
                )
            self._read[name] = _load_built_in(self._files[name])
        return self._read[name]

    def misnamed(self) -> dict[str, str]:
        """Return the user's prompts whose name is close to that of a built-in prompt, each with a "Did you mean" hint."""
        hints = {name: suggestion(name, self._files).strip() for name in self._read if name not in self._files}
        return {name: hint for name, hint in hints.items() if hint}

    def listing(self) -> list[Prompt]:
        """Return all prompts by name."""
        return [self.get(name) for name in sorted(self._files.keys() | self._read.keys())]


@cache
def _load_built_in(path: Path) -> Prompt:
    """Read a built-in prompt; cached, since every stage of a build has its own book."""
    return load_prompt(path)


def _prompt_files(folder: Path) -> dict[str, Path]:
    for path in sorted(folder.glob("*.yml")):
        raise ConfigError(f"{path}: prompt files end in .yaml. Rename it.")
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def _check_replacement(prompt: Prompt, built_in: Prompt) -> None:
    """Check that a prompt works for the callers of the built-in prompt that it replaces.

    Raises:
        ConfigError: it does not; the message names file and line.
    """

    def refuse(key: str, what: str) -> None:
        raise ConfigError(f"{prompt.source}:{prompt.lines.get((key,), 1)}: {what}")

    for name in sorted(prompt.needs - built_in.values.keys()):
        refuse(
            "user",
            f"'{name}' is not a value of this prompt.{suggestion(name, built_in.values)} "
            f"The values are: {', '.join(built_in.values)}.",
        )
    if prompt.answer != built_in.answer:
        refuse("answer", f"the answer must be {built_in.answer}, as in the built-in prompt.")
    for name in sorted(built_in.lists.keys() - prompt.lists.keys()):
        refuse("lists", f"the list '{name}' is missing. Add it under 'lists'.")
