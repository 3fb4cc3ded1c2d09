"""Documents in a prompt: the question around them, their places known."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.messages import Message, Reply, Request, Usage
from pairwright.generators.llm.client.steps import LLMStep, run_step
from pairwright.generators.llm.documents import Document, with_documents, with_documents_in_step
from pairwright.generators.llm.output.answers import Answer, request_answers

ASKED = (Message("system", "Answer."), Message("user", "What is blue?"))


def test_the_question_stands_before_and_behind_the_documents() -> None:
    prompt = with_documents(ASKED, [Document("a", "A blue cat."), Document("b", "A dog.")])
    text = prompt.messages[-1].text
    assert text.startswith("What is blue?\n\n")
    assert text.endswith("\n\nWhat is blue?")
    assert text.index("A blue cat.") < text.index("A dog.")
    assert prompt.messages[0] == ASKED[0]


@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=1, max_size=5))
def test_a_place_holds_its_document_and_no_text_can_end_its_own_string(texts: list[str]) -> None:
    prompt = with_documents(ASKED, [Document(str(at), text) for at, text in enumerate(texts)])
    said = prompt.messages[-1].text
    for place, text in zip(prompt.places, texts, strict=True):
        held = said[place.start : place.end]
        assert said[place.start - 1] == said[place.end] == '"'
        assert re.fullmatch(r'(?:[^"\\]|\\.)*', held)
        if text.isascii() and text.isprintable() and not set('"\\') & set(text):
            assert held == text


def test_without_documents_the_chat_is_as_it_was() -> None:
    assert with_documents(ASKED, []).messages == ASKED


def test_documents_want_a_last_message_of_the_user_and_a_text() -> None:
    with pytest.raises(UsageError, match="user message"):
        with_documents(ASKED[:1], [Document("a", "x")])
    with pytest.raises(UsageError, match="document a is empty"):
        with_documents(ASKED, [Document("a", "  ")])


DOCUMENTS = (Document("a", "A cat on a mat."), Document("b", "A red dog."))


class Word(BaseModel):
    """An answer."""

    word: str


def step() -> LLMStep[Answer[Word]]:
    demonstration = (Message("user", "What is it?"), Message("assistant", '{"word": "cat"}'))
    messages = (Message("system", "Answer."), *demonstration, Message("user", "Which colour?"))
    [answer] = yield from request_answers([Request(messages, "m")], Word)
    return answer


def test_documents_stay_at_the_question_in_a_repair_request() -> None:
    sent: list[Request] = []

    def answer(request: Request) -> Reply:
        sent.append(request)
        return Reply("red" if len(sent) == 1 else '{"word": "red"}', "stop", "", Usage(1, 1), "m")

    answered = run_step(with_documents_in_step(step(), DOCUMENTS), answer)
    assert answered.value == Word(word="red")
    assert len(sent) == 2
    for request in sent:
        assert [message.text for message in request.messages[:3]] == ["Answer.", "What is it?", '{"word": "cat"}']
        question = request.messages[3].text
        assert question.startswith("Which colour?")
        assert question.endswith("Which colour?")
        read = [request.messages[place.message].text[place.start : place.end] for place in request.documents]
        assert read == ["A cat on a mat.", "A red dog."]
    assert sent[1].messages[4].text == "red"
    assert "Document" not in sent[1].messages[5].text


def test_without_documents_requests_stay_as_they_are() -> None:
    sent: list[Request] = []

    def answer(request: Request) -> Reply:
        sent.append(request)
        return Reply('{"word": "red"}', "stop", "", Usage(1, 1), "m")

    run_step(with_documents_in_step(step(), ()), answer)
    assert [request.documents for request in sent] == [()]
    assert sent[0].messages[-1].text == "Which colour?"
