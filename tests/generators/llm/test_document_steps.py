"""A talk that reads documents: they stand in every request, and stay where they were when it is asked once more."""

from pydantic import BaseModel

from pairwright.generators.llm.client.messages import Message, Reply, Request, Usage
from pairwright.generators.llm.client.steps import LLMStep, run_step
from pairwright.generators.llm.document_steps import with_documents_in_step
from pairwright.generators.llm.documents import Document
from pairwright.generators.llm.output.answers import Answer, request_answers

DOCUMENTS = (Document("a", "A cat on a mat."), Document("b", "A red dog."))


class Word(BaseModel):
    """An answer."""

    word: str


def talk() -> LLMStep[Answer[Word]]:
    demonstration = (Message("user", "What is it?"), Message("assistant", '{"word": "cat"}'))
    messages = (Message("system", "Answer."), *demonstration, Message("user", "Which colour?"))
    [answer] = yield from request_answers([Request(messages, "m")], Word)
    return answer


def test_documents_stand_at_the_question_also_when_it_is_asked_once_more() -> None:
    sent: list[Request] = []

    def answer(request: Request) -> Reply:
        sent.append(request)
        return Reply("red" if len(sent) == 1 else '{"word": "red"}', "stop", "", Usage(1, 1), "m")

    answered = run_step(with_documents_in_step(talk(), DOCUMENTS), answer)
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


def test_without_documents_requests_are_as_they_were() -> None:
    sent: list[Request] = []

    def answer(request: Request) -> Reply:
        sent.append(request)
        return Reply('{"word": "red"}', "stop", "", Usage(1, 1), "m")

    run_step(with_documents_in_step(talk(), ()), answer)
    assert [request.documents for request in sent] == [()]
    assert sent[0].messages[-1].text == "Which colour?"
