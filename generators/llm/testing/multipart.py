"""Reads ``multipart/form-data``, the form in which files are uploaded."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from pairwright.generators.llm.testing.api_errors import APIError

_PARAMETER = re.compile(r';\s*(\w+)\*?=(?:"((?:[^"\\]|\\.)*)"|([^;\s]+))')


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of a form; ``filename`` is empty where it is no file."""

    filename: str
    data: bytes


def read_form(content_type: str, body: bytes) -> Mapping[str, FormField]:
    """Return a form's fields by name; of several of one name the last.

    Raises:
        Problem: 400, when the body is no such form.
    """
    boundary = _parameters(content_type).get("boundary")
    if not content_type.lower().startswith("multipart/form-data") or not boundary:
        raise APIError(400, "the body must be multipart/form-data")
    fence = b"\r\n--" + boundary.encode("latin-1")
    fields: dict[str, FormField] = {}
    at = 0
    text = b"\r\n" + body
    while (at := text.find(fence, at)) >= 0:
        at += len(fence)
        if text.startswith(b"--", at):
            return fields
        end = text.find(fence, at)
        head, gap, data = text[at:end].partition(b"\r\n\r\n")
        if end < 0 or not gap:
            break
        name, filename = _names(head.decode("utf-8", "replace"))
        fields[name] = FormField(filename, data)
    raise APIError(400, "the form in the body does not end, or a part of it has no head")


def _names(head: str) -> tuple[str, str]:
    for line in head.split("\r\n"):
        field, _, value = line.partition(":")
        if field.strip().lower() == "content-disposition":
            found = _parameters(value)
            return found.get("name", ""), found.get("filename", "")
    return "", ""


def _parameters(value: str) -> dict[str, str]:
    return {name.lower(): re.sub(r"\\(.)", r"\1", quoted) or bare for name, quoted, bare in _PARAMETER.findall(value)}
