"""Rule-based stand-in for a language model, for trying out pairwright: `pairwright dev llm-server --plausible`.

`PlausibleModel` answers pairwright's own prompts with rule-based edits of the caption in the prompt, in the requested
format. Most answers pass validation. They are no better than the rules: they demonstrate the commands, not a model. Other
requests get the test server's default answer.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from pairwright.datasets.records import Box
from pairwright.datasets.rng import make_rng
from pairwright.generators.edit_types import BENCHMARK_TYPES, POSITIVE_TYPES
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm.grouping import split_items
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.chat_request import ChatRequest, content_text
from pairwright.generators.plausible_model.captions import captions_of_image
from pairwright.generators.plausible_model.conversations import ConversationWriter
from pairwright.generators.plausible_model.edits import ModelEdit, RuleEdits, add_attributes
from pairwright.generators.plausible_model.prompt_recognition import PromptRecognizer, RecognizedPrompt
from pairwright.generators.plausible_model.rationales import (
    image_text_matching,
    math_problem,
    multiple_choice,
    natural_language_inference,
)

IMPOSSIBLE_EDIT = ModelEdit("", "", "")
_CORNERS = 4


class PlausibleModel:
    """Answers chat requests of the test server (`llm.testing.answers`); loads WordNet and the tagger.

    Raises:
        MissingResourceError: WordNet or the tagger is missing.
    """

    def __init__(self) -> None:
        wordnet, tagger = load_wordnet(), load_tagger()
        self._recognizer = PromptRecognizer()
        self._edits = RuleEdits(wordnet, tagger)
        self._conversations = ConversationWriter(tagger)
        self._answers: Mapping[str, Callable[[RecognizedPrompt], Any]] = {
            "negatives-at-once": self._negatives,
            "negatives-both-sides": self._negatives_of_pairs,
            "positives-at-once": self._positives,
            **dict.fromkeys(("swap-object", "swap-attribute"), self._swap),
            **{f"replace-{kind}-find": self._find for kind in ("object", "attribute", "relation")},
            **{f"{kind}-propose": self._propose for kind in BENCHMARK_TYPES if not kind.startswith("swap")},
            **{f"{kind}-compose": self._compose for kind in BENCHMARK_TYPES if not kind.startswith("swap")},
            "captions": _captions,
            **dict.fromkeys(("choose", "judge"), _choose),
            "judge-answers": lambda prompt: "{} {}\nThe first answer came first.".format(*_ratings(prompt)),
            "likelier": lambda prompt: dict(zip(("first", "second"), _ratings(prompt), strict=True)),
            "conversation": self._conversation,
            "detail": lambda prompt: self._conversations.detail(*_image(prompt)),
            "reasoning": self._reasoning,
            "rationale-itm": lambda prompt: image_text_matching(
                prompt.texts("known"), prompt.text("caption"), prompt.text("label"), self._edits
            ),
            "rationale-nli": lambda prompt: natural_language_inference(
                prompt.text("premise"), prompt.text("hypothesis"), prompt.text("label")
            ),
            "rationale-mcqa": lambda prompt: multiple_choice(prompt.text("question"), prompt.texts("choices"), prompt.text("label")),
            "rationale-math": lambda prompt: math_problem(prompt.text("problem"), prompt.text("label")),
        }  # fmt: skip

    def __call__(self, request: ChatRequest) -> ServerAnswer | None:
        """Return the answer to a request made from a prompt of pairwright; None for other requests."""
        *messages, (role, last) = [(str(m.get("role")), content_text(m.get("content"))) for m in request.messages()]
        items, url = split_items(last), _image_url(list(request.messages()))
        answers = [self._answer([*messages, (role, text)], url) for _, text in items or [(0, last)]]
        if any(answer is None for answer in answers):
            return None
        entries = [{"id": own, **answer} for (own, _), answer in zip(items, answers, strict=False) if answer]
        content = {"answers": entries} if items else answers[0]
        return ServerAnswer(content if isinstance(content, str) else orjson.dumps(content).decode())

    def _answer(self, messages: Sequence[tuple[str, str]], url: str) -> Any:
        """Return the answer to one item, with the URL of its image, if any; None for a prompt of others."""
        prompt = self._recognizer.read(messages)
        if prompt is not None and url:
            prompt = replace(prompt, values={**prompt.values, "image": url})
        answer = self._answers.get(prompt.name) if prompt is not None else None
        return answer(prompt) if prompt is not None and answer is not None else None

    def _negatives(self, prompt: RecognizedPrompt) -> dict[str, Any]:
        made: list[dict[str, Any]] = [{"type": kind, **_fields(edit)} for kind, edit in self._edits_of_types(prompt)]
        if "image" in prompt.values:
            made = [{**each, "image_shows": each["from"] or "nothing", "visible": False} for each in made]
        return {"negatives": made}

    def _edits_of_types(self, prompt: RecognizedPrompt) -> list[tuple[str, ModelEdit]]:
        """Return type and edit of each requested negative."""
        found = self._edits.negatives(prompt.text("caption"), prompt.texts("known"))
        wanted, count = prompt.texts("types") or BENCHMARK_TYPES, prompt.values.get("count") or 1
        return [(kind, edit) for kind in BENCHMARK_TYPES if kind in wanted for edit in found.get(kind, [])[:count]]

    def _negatives_of_pairs(self, prompt: RecognizedPrompt) -> dict[str, Any]:
        """Return negatives with true words: the rules reword what is replaced; other captions state what is added."""
        caption, known = prompt.text("caption"), prompt.texts("known")
        reworded = {edit.old: edit.new for found in self._edits.positives(caption).values() for edit in found}
        made = [
            {
                "type": kind,
                **_fields(edit),
                "true": reworded.get(edit.old, "") if edit.old else self._edits.true_words(edit, caption, known),
            }
            for kind, edit in self._edits_of_types(prompt)
        ]
        return {"negatives": made}

    def _positives(self, prompt: RecognizedPrompt) -> dict[str, Any]:
        found = self._edits.positives(prompt.text("caption"))
        kinds = [kind for kind in POSITIVE_TYPES if kind in (prompt.texts("types") or POSITIVE_TYPES)]
        return {"positives": [{"type": kind, **_fields(found[kind][0])} for kind in kinds if found.get(kind)]}

    def _swap(self, prompt: RecognizedPrompt) -> dict[str, Any]:
        return _rewritten(self._edits.negatives(prompt.text("caption")).get(prompt.name))

    def _find(self, prompt: RecognizedPrompt) -> dict[str, Any]:
        """Return the words that the rules can replace."""
        kind = prompt.name.removesuffix("-find")
        found = self._edits.negatives(prompt.text("caption"))
        described = found.get("add-attribute", []) if kind == "replace-object" else []
        concepts = [edit.old for edit in found.get(kind, [])] or [edit.described for edit in described]
        return {"concepts": list(dict.fromkeys(each for each in concepts if each))}

    def _propose(self, prompt: RecognizedPrompt) -> dict[str, Any]:
        known = " ".join(prompt.texts("known")).casefold()
        for edit in self._of_concept(prompt, prompt.name.removesuffix("-propose")):
            if edit.concept.casefold() not in known:
                return {"concept": edit.concept}
        return {"concept": ""}

    def _compose(self, prompt: RecognizedPrompt) -> dict[str, Any]:
        new = prompt.text("new_concept")
        found = self._of_concept(prompt, prompt.name.removesuffix("-compose"))
        return {"caption": next((edit.caption for edit in found if edit.concept == new), "")}

    def _of_concept(self, prompt: RecognizedPrompt, kind: str) -> list[ModelEdit]:
        """Return the edits of a type for the concept in the prompt, or all edits of the type without a concept."""
        caption, concept = prompt.text("caption"), prompt.text("concept")
        found = self._edits.negatives(caption).get(kind, [])
        found = [edit for edit in found if not concept or concept in {edit.old, edit.described}]
        return found or (list(add_attributes(caption, concept)) if kind == "add-attribute" else [])

    def _conversation(self, prompt: RecognizedPrompt) -> dict[str, Any]:
        turns = self._conversations.turns(*_image(prompt))
        return {"turns": [{"question": question, "answer": answer} for question, answer in turns]}

    def _reasoning(self, prompt: RecognizedPrompt) -> dict[str, Any]:
        question, answer = self._conversations.reasoning(*_image(prompt))
        return {"question": question, "answer": answer}


def _captions(prompt: RecognizedPrompt) -> dict[str, Any]:
    count = prompt.values.get("count")
    found = captions_of_image(prompt.text("image"), prompt.texts("forms"), count if isinstance(count, int) else 1)
    return {"captions": found}


def _choose(prompt: RecognizedPrompt) -> str:
    """Choose one of two texts, the same one in either order; without looking, it is right half of the time."""
    first, second = (prompt.text(name) for name in ("first", "second"))
    return "(1)" if make_rng(0, first).random() < make_rng(0, second).random() else "(2)"


def _ratings(prompt: RecognizedPrompt) -> list[int]:
    """Rate two texts from 1 to 10, in either order alike."""
    return [make_rng(0, prompt.text(name)).randint(1, 10) for name in ("first", "second")]


def _image_url(messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the URL of the last image of a chat; empty if there is none."""
    contents = [message["content"] for message in messages if isinstance(message.get("content"), list)]
    parts = [part for content in contents for part in content]
    urls = [
        part["image_url"].get("url")
        for part in parts
        if isinstance(part, dict) and isinstance(part.get("image_url"), dict)
    ]
    return str(urls[-1]) if urls else ""


def _fields(edit: ModelEdit) -> dict[str, str]:
    return {"from": edit.old, "to": edit.new, "caption": edit.caption}


def _rewritten(found: list[ModelEdit] | None) -> dict[str, Any]:
    return {"possible": bool(found), **_fields(found[0] if found else IMPOSSIBLE_EDIT)}


def _image(prompt: RecognizedPrompt) -> tuple[tuple[str, ...], list[Box]]:
    """Return the captions and boxes in a prompt."""
    listed = prompt.values.get("boxes")
    boxes = [
        Box(label, *map(float, corners))
        for label, corners in (listed if isinstance(listed, list) else [])
        if isinstance(label, str) and isinstance(corners, list) and len(corners) == _CORNERS
    ]
    return prompt.texts("captions") or ("",), boxes
