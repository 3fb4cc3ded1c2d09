"""Redaction of secrets, local paths and URLs."""

from pathlib import Path
from string import ascii_lowercase, digits
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.redaction import redact, redact_url

word = st.text(ascii_lowercase + digits, min_size=1, max_size=8)
user = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="SECRT/?#\\"), max_size=8)
query = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="SECRT"), max_size=8)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://h.org/a/x.jpg", "https://h.org/a/x.jpg"),
        ("https://h.org:8443/@user/x.jpg?sig=S&e=1#f", "https://h.org:8443/@user/x.jpg"),
        ("https://u:pw@h.org/x.jpg", "https://h.org/x.jpg"),
        ("https://u:p@w@h.org/x.jpg", "https://h.org/x.jpg"),
        ("https://h.org?sig=S", "https://h.org"),
        ("https://u@[::1]:80/x", "https://[::1]:80/x"),
        ("s3://bucket/a b/x.jpg", "s3://bucket/a b/x.jpg"),
        ("https://u:p/w@h.org/x.jpg", "https://(left out)"),
        ("https://u:p?w@h.org/x.jpg", "https://(left out)"),
        ("file:///home/alice/x.jpg", ".../x.jpg"),
        ("file://host/home/alice/x.jpg?a#b", ".../x.jpg"),
        ("no url", "no url"),
    ],
)
def test_a_url_keeps_only_its_location(url: str, expected: str) -> None:
    assert redact_url(url) == expected


@given(user=user, host=word, path=word, query=query)
def test_no_user_query_or_fragment_survives(user: str, host: str, path: str, query: str) -> None:
    url = f"https://SECRET{user}:SECRET@{host}/{path}?{query}SECRET#SECRET"
    assert redact_url(url) == f"https://{host}/{path}"


@pytest.mark.parametrize("name", ["api_key", "OPENAI_API_KEY", "token", "hf_token", "secret", "db_password", "secrets"])
def test_members_named_like_a_secret_are_redacted_and_empty_ones_stay(name: str) -> None:
    assert redact({name: "s"}) == {name: "(left out)"}
    assert redact([{"a": {name: ["s"]}}]) == [{"a": {name: "(left out)"}}]
    assert redact({name: ""}) == {name: ""}


@pytest.mark.parametrize(
    "value", [{"max_tokens": 5}, {"key": "image_id"}, [1, 2.5, True, None, "a dog / a cat"], "x/y"]
)
def test_harmless_values_are_unchanged(value: Any) -> None:
    assert redact(value) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("/home/alice/pool", ".../pool"),
        (Path("/home/alice/{00000..00009}.tar"), ".../{00000..00009}.tar"),
        ("C:\\Users\\alice\\pool", ".../pool"),
        ("file:/home/alice/pool.jsonl", ".../pool.jsonl"),
        ("pipe:curl https://u:pw@h.org/x.tar?sig=S | cat", "pipe:curl https://h.org/x.tar | cat"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
    ],
)
def test_local_paths_and_urls_are_redacted_anywhere_in_a_text(value: Any, expected: str) -> None:
    assert redact({"a": (value,)}) == {"a": [expected]}
