"""What a user sets, where it comes from, and what is never shown of it."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pairwright.datasets.errors import UsageError
from pairwright.generators.llm.client.base_url import parse_base_url, server_id
from pairwright.generators.llm.client.settings import LLMSettings


@pytest.mark.parametrize(
    ("url", "base", "origin"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1", "http://localhost:8000"),
        ("HTTP://LocalHost:8000/", "http://localhost:8000/v1", "http://localhost:8000"),
        ("https://host/v1/", "https://host/v1", "https://host:443"),
        ("http://host/team/llm/v1", "http://host/team/llm/v1", "http://host:80"),
        ("https://host/proxy", "https://host/proxy", "https://host:443"),
        ("https://host/chat/completions", "https://host", "https://host:443"),
        ("https://host/v1/chat/completions/", "https://host/v1", "https://host:443"),
        ("http://[::1]:8000", "http://[::1]:8000/v1", "http://[::1]:8000"),
        (
            "https://x.openai.azure.com/openai/v1/",
            "https://x.openai.azure.com/openai/v1",
            "https://x.openai.azure.com:443",
        ),
    ],
)
def test_base_urls_are_read_as_users_write_them(url: str, base: str, origin: str) -> None:
    address = parse_base_url(url)
    assert (address.base, address.origin, address.azure) == (base, origin, False)


def test_azure_is_known_by_its_host_or_a_version() -> None:
    assert parse_base_url("https://x.openai.azure.com").base == "https://x.openai.azure.com/openai"
    assert parse_base_url("https://x.openai.azure.com/").azure
    assert parse_base_url("http://gateway/azure", api_version="2024-10-21").base == "http://gateway/azure/openai"
    assert parse_base_url("http://gateway?api-version=2024-10-21").azure


@pytest.mark.parametrize(
    "url", ["", "localhost:8000", "ftp://host", "http://", "http://host:x/", "http://[::1", "http://a b"]
)
def test_an_invalid_url_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(UsageError, match="for example http"):
        parse_base_url(url)


def test_missing_options_come_from_the_environment() -> None:
    env = {"OPENAI_API_KEY": " key-1234\n", "OPENAI_BASE_URL": "http://host/v1"}
    settings = LLMSettings.from_env(env, model="m", api_key=None, base_url="")
    assert (settings.api_key, settings.address.base, settings.model) == ("key-1234", "http://host/v1", "m")
    assert LLMSettings.from_env(env, base_url="http://other").address.base == "http://other/v1"
    assert LLMSettings.from_env(env, api_key="mine").api_key == "mine"
    assert LLMSettings.from_env({}).address.base == "https://api.openai.com/v1"


def test_azures_own_names_are_read_for_azure_only() -> None:
    env = {
        "AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com",
        "AZURE_OPENAI_API_KEY": "azure-key",
        "OPENAI_API_KEY": "openai-key",
        "OPENAI_API_VERSION": "2024-10-21",
    }
    settings = LLMSettings.from_env(env)
    assert (settings.api_key, settings.api_version, settings.uses_sdk) == ("azure-key", "2024-10-21", True)
    settings = LLMSettings.from_env(env, base_url="http://localhost:8000")
    assert (settings.api_key, settings.api_version, settings.uses_sdk) == ("openai-key", "", False)
    assert LLMSettings.from_env({**env, "AZURE_OPENAI_AD_TOKEN": "token"}).ad_token == "token"  # noqa: S105 - nobody's


def test_organization_and_project_are_sent_to_openai_only() -> None:
    env = {"OPENAI_ORG_ID": "org", "OPENAI_PROJECT_ID": "proj"}
    assert LLMSettings.from_env(env).headers == {"OpenAI-Organization": "org", "OpenAI-Project": "proj"}
    assert LLMSettings.from_env(env, base_url="http://localhost:8000").headers == {}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"max_concurrency": 0}, "max_concurrency is 0"),
        ({"timeout": 0.0}, "timeout is 0"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"requests_per_minute": -1}, "requests_per_minute is -1"),
        ({"transport": "carrier pigeon"}, "Use one of: auto, direct, sdk"),
        ({"api_key": "sk-with\nbreak"}, "api_key has a character"),
        ({"headers": {"X-Key": "ключ"}}, "X-Key has a character"),
        ({"base_url": "https://x.openai.azure.com"}, "OPENAI_API_VERSION"),
        ({"api_version": "2024-10-21", "transport": "direct"}, "Use transport auto"),
    ],
)
def test_invalid_settings_are_refused_without_showing_secrets(options: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        LLMSettings(**options)  # type: ignore[arg-type]
    assert "sk-with" not in str(caught.value)


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40), st.text(max_size=50))
def test_a_key_is_redacted_everywhere(key: str, around: str) -> None:
    assume(key not in repr(LLMSettings()))  # names of settings
    settings = LLMSettings(api_key=key, headers={"X": key[::-1]})
    assert key not in settings.hide(f"{around}{key}{around}{key}").replace(around, "")
    assert key not in repr(settings)


def test_replacing_a_setting_keeps_what_is_hidden() -> None:
    settings = replace(LLMSettings(base_url="http://ann:word@host", api_key="key-1234"), timeout=5)
    assert settings.address.user == "ann:word"
    assert settings.api_key == "key-1234"
    assert "word" not in repr(settings)


def test_a_cache_knows_the_server_by_origin_or_by_the_users_name() -> None:
    assert LLMSettings(base_url="http://ann:word@host/v1?key=x").cache_endpoint == "http://host:80"
    assert LLMSettings(base_url="http://host", endpoint="our vllm").cache_endpoint == "our vllm"


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("http://HOST", "http://host:80"),
        ("http://host/v1/", "http://host:80"),
        ("https://host/v1/chat/completions", "https://host:443"),
        ("https://host/chat/completions", "https://host:443/chat/completions"),
        ("https://host/team-a/v1", "https://host:443/team-a/v1"),
        ("https://host/team-b/v1/", "https://host:443/team-b/v1"),
        ("https://name.openai.azure.com", "https://name.openai.azure.com:443"),
        ("https://name.openai.azure.com/team/openai", "https://name.openai.azure.com:443/team/openai"),
    ],
)
def test_deployments_behind_one_gateway_share_no_answers_and_spellings_of_one_url_do(url: str, server: str) -> None:
    settings = LLMSettings(base_url=url, api_version="2024-10-21" if "azure" in url else "")
    assert settings.cache_endpoint == server
    assert LLMSettings(base_url="http://other", endpoint=url).cache_endpoint == server == server_id(server)
