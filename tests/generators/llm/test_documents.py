"""Documents in a prompt: the question around them, their places known, their tokens found by offsets."""

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.messages import Message
from pairwright.generators.llm.documents import Document, DocumentSpans, with_documents

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
    with pytest.raises(UsageError, match="user's message"):
        with_documents(ASKED[:1], [Document("a", "x")])
    with pytest.raises(UsageError, match="document a is empty"):
        with_documents(ASKED, [Document("a", "  ")])


@given(st.lists(st.integers(1, 5), min_size=1, max_size=40), st.data())
def test_spans_are_disjoint_and_hold_every_letter_of_their_document(widths: list[int], data: st.DataObject) -> None:
    edges = [sum(widths[:at]) for at in range(len(widths) + 1)]
    offsets = list(itertools.pairwise(edges))
    cuts = data.draw(st.lists(st.sampled_from(edges), min_size=2, max_size=6, unique=True).map(sorted))
    letters = list(zip(cuts[::2], cuts[1::2], strict=False))
    spans = DocumentSpans.of(letters, offsets)
    assert spans.length == len(widths)
    for (start, end), (first, behind) in zip(letters, spans.spans, strict=True):
        assert (offsets[first][0], offsets[behind - 1][1]) == (start, end)
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans.spans))


def test_a_token_over_an_edge_belongs_to_the_document_and_one_over_two_to_the_first() -> None:
    spans = DocumentSpans.of([(1, 3), (4, 6)], [(0, 0), (0, 2), (2, 5), (5, 6), (6, 9)])
    assert spans.spans == ((1, 3), (3, 4))
    assert spans.moved(2).spans == ((3, 5), (5, 6))
    assert spans.moved(2).length == 7


def test_a_document_without_a_token_is_told() -> None:
    with pytest.raises(UsageError, match="document 1 of 1 has no token"):
        DocumentSpans.of([(1, 3)], [(0, 1)])
