"""URL and host checks before a download (server-side request forgery), and URL normalisation.

URLs from the web are untrusted: a downloader that follows them blindly reads local files and sends requests to the local
network. So only ``http`` and ``https`` URLs with public addresses are fetched: no private, loopback, link-local,
multicast or reserved addresses, and no metadata services of clouds. IPv6 addresses that embed an IPv4 address (mapped,
6to4, Teredo, NAT64) are checked as that. *Every* address of a host is checked, since the downloader may use any.

`clean_url` also percent-encodes spaces and non-ASCII characters (existing encoding is kept), converts hosts to ASCII
(IDNA 2003, so ``ß`` becomes ``ss``), and removes the fragment. `check_hosts` resolves hosts in threads with a time limit,
because the resolver of the system has none.

Redirects and hosts that change their address later are checked when connecting (`http_opener`).
"""

import ipaddress
import queue
import re
import socket
import threading
import time
from collections.abc import Callable, Iterable
from urllib.parse import quote, urlsplit

from pairwright.datasets.rejects import RejectError

SCHEMES = ("http", "https")
DEFAULT_PORTS = {"http": 80, "https": 443}

# Azure's is a public address; the others are blocked by their ranges too.
CLOUD_METADATA_ADDRESSES = frozenset(
    {"168.63.129.16", "169.254.169.254", "100.100.100.200", "192.0.0.192", "fd00:ec2::254"}
)

_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_IPV4_COMPATIBLE = ipaddress.IPv6Network("::/96")
_HOST = re.compile(r"(?:[a-z0-9_-]{1,63}\.)*[a-z0-9_-]{1,63}\.?")
_LONE_PERCENT = re.compile("%(?![0-9A-Fa-f]{2})")
_IN_PATH = "/%:@!$&'()*+,;=~|[]^"

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def clean_url(written: str) -> str:
    """Return a URL in its ASCII form without spaces and fragment.

    Raises:
        RejectError: not_a_url, or blocked_address for a forbidden scheme.
    """
    text = written.strip()
    scheme, mark, _ = text.partition("://")
    if not mark:
        raise RejectError("not_a_url", "the image is not a URL")
    if scheme.lower() not in SCHEMES:
        raise RejectError("blocked_address", f"{scheme[:20]}: only http and https are allowed")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise RejectError("not_a_url", f"invalid URL ({error})") from None
    if parts.username is not None or parts.password is not None:
        raise RejectError("not_a_url", "the URL contains a user name or password")
    host = encode_host(parts.hostname or "")
    place = f"[{host}]" if ":" in host else host
    if port is not None and port != DEFAULT_PORTS[parts.scheme]:
        place += f":{port}"
    path = _percent_encode(parts.path or "/", _IN_PATH)
    query = "?" + _percent_encode(parts.query, _IN_PATH + "?") if parts.query else ""
    return f"{parts.scheme}://{place}{path}{query}"


def _percent_encode(text: str, safe: str) -> str:
    return quote(_LONE_PERCENT.sub("%25", text), safe=safe)


def encode_host(host: str) -> str:
    """Return a host in lower-case IDNA form; an IPv6 address without brackets.

    Raises:
        RejectError: not_a_url.
    """
    if ":" in host:
        try:
            return str(ipaddress.IPv6Address(host.partition("%")[0]))
        except ValueError:
            raise RejectError("not_a_url", f"{host!r} is not an IPv6 address") from None
    try:
        ascii_ = host.lower() if host.isascii() else host.encode("idna").decode().lower()
    except UnicodeError:
        ascii_ = ""
    if not _HOST.fullmatch(ascii_) or len(ascii_) > 254:
        raise RejectError("not_a_url", f"{host!r} is not a host name")
    return ascii_


def split_host_port(url: str) -> tuple[str, int]:
    """Return host and port of a URL from `clean_url`."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]


def find_address_problem(address: str, *, allow_loopback: bool = False) -> str:
    """Return why an IP address is blocked; empty if it is allowed.

    Args:
        address: IPv4 or IPv6 address.
        allow_loopback: allow 127.0.0.0/8 and ::1.
    """
    ip = _embedded_ipv4(ipaddress.ip_address(address.partition("%")[0]))
    if ip.is_loopback and allow_loopback:
        return ""
    if str(ip) in CLOUD_METADATA_ADDRESSES:
        return f"{address} is a cloud metadata service"
    kinds = {
        "loopback": ip.is_loopback,
        "unspecified": ip.is_unspecified,
        "link-local": ip.is_link_local,
        "multicast": ip.is_multicast,
        "private": ip.is_private,
        "reserved": ip.is_reserved or not ip.is_global or (ip.version == 6 and ip.is_site_local),
    }
    found = next((kind for kind, holds in kinds.items() if holds), "")
    return found and f"{address} is {found}"


def _embedded_ipv4(ip: Address) -> Address:
    """Return the IPv4 address embedded in an IPv6 address, else the address itself."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    embedded = ip.ipv4_mapped or ip.sixtofour
    if embedded is None and ip.teredo is not None:
        embedded = ip.teredo[1]
    if embedded is None and (ip in _NAT64 or (ip in _IPV4_COMPATIBLE and int(ip) > 1)):
        embedded = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return embedded or ip


def find_host_problem(host: str, *, allow_loopback: bool = False) -> str:
    """Return why a literal address or localhost is blocked, without resolving; empty for other hosts.

    Numbers are parsed as by the resolver of the system (``127.1``, ``0x7f000001``, ``2130706433``).
    """
    if host.rstrip(".").rpartition(".")[2] == "localhost":
        return "" if allow_loopback else f"{host} is loopback"
    if ":" in host:
        return find_address_problem(host, allow_loopback=allow_loopback)
    try:
        numbers = socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return ""
    return find_address_problem(numbers, allow_loopback=allow_loopback)


MAX_THREADS = 64

AddressLookup = Callable[[str], Iterable[str]]


def resolve_addresses(host: str) -> list[str]:
    """Return the addresses of a host, sorted; may take half a minute.

    Raises:
        OSError: if it does not resolve.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a label that IDNA does not allow
        raise OSError(str(error)) from None
    return sorted({str(info[4][0]) for info in found})


def check_hosts(
    hosts: Iterable[str], *, allow_loopback: bool, seconds: float, lookup: AddressLookup = resolve_addresses
) -> dict[str, RejectError | None]:
    """Resolve and check hosts in parallel.

    Args:
        hosts: names or addresses; duplicates are checked once.
        allow_loopback: allow loopback addresses.
        seconds: time limit per host.
        lookup: returns the addresses of a host.

    Returns:
        By host: None if allowed, else a `RejectError` of unknown_host or blocked_address.
    """
    waiting = list(dict.fromkeys(hosts))[::-1]
    answers: queue.SimpleQueue[tuple[str, RejectError | None]] = queue.SimpleQueue()
    checked: dict[str, RejectError | None] = {}
    running: dict[str, float] = {}  # deadlines by host, ascending

    def check(host: str) -> None:
        answers.put((host, _check_host(host, lookup, allow_loopback=allow_loopback)))

    while waiting or running:
        while waiting and len(running) < MAX_THREADS:
            host = waiting.pop()
            running[host] = time.monotonic() + seconds
            threading.Thread(target=check, args=(host,), daemon=True).start()
        earliest = next(iter(running))
        try:
            host, problem = answers.get(timeout=max(0.0, running[earliest] - time.monotonic()))
        except queue.Empty:
            host, problem = earliest, RejectError("unknown_host", f"{earliest}: no answer in {seconds:g} s")
        if running.pop(host, None) is not None:  # else its deadline has passed
            checked[host] = problem
    return checked


def _check_host(host: str, lookup: AddressLookup, *, allow_loopback: bool) -> RejectError | None:
    try:
        addresses = list(lookup(host))
    except OSError as error:
        return RejectError("unknown_host", f"{host}: {error.strerror or error}")
    if not addresses:
        return RejectError("unknown_host", f"{host}: has no address")
    problems = (find_address_problem(address, allow_loopback=allow_loopback) for address in addresses)
    problem = next(filter(None, problems), "")
    return RejectError("blocked_address", f"{host}: {problem}") if problem else None
