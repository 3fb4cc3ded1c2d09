"""A stand-in for a language model, for trying out pairwright without one: `pairwright dev llm-server --plausible`.

`PlausibleModel` answers pairwright's own prompts with what its rules make of the caption in the prompt, in the form that
the prompt asks for. Most answers pass the checks. They are no better than the rules: they show the way through the
commands, not what a model writes. Any other request gets the test server's usual answer.
"""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from pairwright.datasets.records import Box
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.llm.testing.answers import ServerAnswer
from pairwright.generators.llm.testing.chat_request import ChatRequest, content_text
from pairwright.generators.negatives import FOR_BENCHMARKS
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
    """Answers chat requests (`llm.server.answers.Answerer`); loads WordNet and the tagger when it is made.

    Raises:
        MissingResource: WordNet or the tagger is not there.
    """

    def __init__(self) -> None:
        wordnet, tagger = load_wordnet(), load_tagger()
        self._reader, self._edits, self._talks = (
            PromptRecognizer(),
            RuleEdits(wordnet, tagger),
            ConversationWriter(tagger),
        )
        self._answers: Mapping[str, Callable[[RecognizedPrompt], Any]] = {
            "negatives-at-once": self._negatives,
            **{f"positive-{kind}": self._positive for kind in ("replace-object", "replace-attribute", "replace-relation", "swap")},
            **dict.fromkeys(("swap-object", "swap-attribute"), self._swap),
            **{f"replace-{kind}-find": self._find for kind in ("object", "attribute", "relation")},
            **{f"{kind}-propose": self._propose for kind in FOR_BENCHMARKS if not kind.startswith("swap")},
            **{f"{kind}-compose": self._compose for kind in FOR_BENCHMARKS if not kind.startswith("swap")},
            "conversation": self._conversation,
            "detail": lambda asked: self._talks.detail(*_image(asked)),
            "reasoning": self._reasoning,
            "rationale-itm": lambda asked: image_text_matching(
                asked.texts("known"), asked.text("caption"), asked.text("label"), self._edits
            ),
            "rationale-nli": lambda asked: natural_language_inference(
                asked.text("premise"), asked.text("hypothesis"), asked.text("label")
            ),
            "rationale-mcqa": lambda asked: multiple_choice(asked.text("question"), asked.texts("choices"), asked.text("label")),
            "rationale-math": lambda asked: math_problem(asked.text("problem"), asked.text("label")),
        }  # fmt: skip

    def __call__(self, request: ChatRequest) -> ServerAnswer | None:
        """Return the answer to a request that a prompt of pairwright made; None to any other."""
        asked = self._reader.read([(str(m.get("role")), content_text(m.get("content"))) for m in request.messages()])
        answer = self._answers.get(asked.prompt.name) if asked is not None else None
        if asked is None or answer is None:
            return None
        said = answer(asked)
        return ServerAnswer(said if isinstance(said, str) else orjson.dumps(said).decode())

    def _negatives(self, asked: RecognizedPrompt) -> dict[str, Any]:
        found = self._edits.negatives(asked.text("caption"), asked.texts("known"))
        wanted = asked.texts("types") or FOR_BENCHMARKS
        entries = [
            {"type": kind, **_fields(found[kind][0])} for kind in FOR_BENCHMARKS if kind in wanted and found.get(kind)
        ]
        return {"negatives": entries}

    def _positive(self, asked: RecognizedPrompt) -> dict[str, Any]:
        kind = asked.prompt.name.removeprefix("positive-")
        found = self._edits.positives(asked.text("caption")).get("swap-object" if kind == "swap" else kind)
        return _rewritten(found)

    def _swap(self, asked: RecognizedPrompt) -> dict[str, Any]:
        return _rewritten(self._edits.negatives(asked.text("caption")).get(asked.prompt.name))

    def _find(self, asked: RecognizedPrompt) -> dict[str, Any]:
        """Return what there is to replace, as far as the rules know another word for it."""
        kind = asked.prompt.name.removesuffix("-find")
        found = self._edits.negatives(asked.text("caption"))
        described = found.get("add-attribute", []) if kind == "replace-object" else []
        concepts = [edit.old for edit in found.get(kind, [])] or [edit.described for edit in described]
        return {"concepts": list(dict.fromkeys(each for each in concepts if each))}

    def _propose(self, asked: RecognizedPrompt) -> dict[str, Any]:
        known = " ".join(asked.texts("known")).casefold()
        for edit in self._of_concept(asked, asked.prompt.name.removesuffix("-propose")):
            if edit.concept.casefold() not in known:
                return {"concept": edit.concept}
        return {"concept": ""}

    def _compose(self, asked: RecognizedPrompt) -> dict[str, Any]:
        new = asked.text("new_concept")
        found = self._of_concept(asked, asked.prompt.name.removesuffix("-compose"))
        return {"caption": next((edit.caption for edit in found if edit.concept == new), "")}

    def _of_concept(self, asked: RecognizedPrompt, kind: str) -> list[ModelEdit]:
        """Return the edits of a type that change or describe the concept that is asked about, if any is."""
        caption, concept = asked.text("caption"), asked.text("concept")
        found = self._edits.negatives(caption).get(kind, [])
        found = [edit for edit in found if not concept or concept in {edit.old, edit.described}]
        return found or (list(add_attributes(caption, concept)) if kind == "add-attribute" else [])

    def _conversation(self, asked: RecognizedPrompt) -> dict[str, Any]:
        turns = self._talks.turns(*_image(asked))
        return {"turns": [{"question": question, "answer": answer} for question, answer in turns]}

    def _reasoning(self, asked: RecognizedPrompt) -> dict[str, Any]:
        question, answer = self._talks.reasoning(*_image(asked))
        return {"question": question, "answer": answer}


def _fields(edit: ModelEdit) -> dict[str, str]:
    return {"from": edit.old, "to": edit.new, "caption": edit.caption}


def _rewritten(found: list[ModelEdit] | None) -> dict[str, Any]:
    return {"possible": bool(found), **_fields(found[0] if found else IMPOSSIBLE_EDIT)}


def _image(asked: RecognizedPrompt) -> tuple[tuple[str, ...], list[Box]]:
    """Return the captions and boxes that a prompt shows of an image."""
    shown = asked.values.get("boxes")
    boxes = [
        Box(label, *map(float, corners))
        for label, corners in (shown if isinstance(shown, list) else [])
        if isinstance(label, str) and isinstance(corners, list) and len(corners) == _CORNERS
    ]
    return asked.texts("captions") or ("",), boxes
