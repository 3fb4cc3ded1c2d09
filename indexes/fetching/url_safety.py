"""Which URLs may be fetched, and how they are written.

A list of URLs from the web is somebody else's text, and a downloader that follows it blindly reads local files
and asks the machines of the network that it runs in. So only ``http`` and ``https`` are fetched, and only from
public addresses: neither private, loopback, link-local, multicast nor reserved ones, nor the addresses at which
clouds tell secrets to their machines; IPv6 addresses that carry an IPv4 one (mapped, 6to4, Teredo, NAT64) count as
that. *Every* address of a host is judged, since the downloader may take any.

`clean_url` also brings a URL into the form that can be sent: spaces and non-ASCII percent-encoded (what is encoded
already stays as it is), hosts in their ASCII form (IDNA 2003, so ``ß`` is ``ss``), no fragment.

Limits: here only the URL is judged, and the addresses it is given. Redirects and names that change their address are
judged where connections are made (`fetch_opener.py`).

----
Addresses of many hosts, asked at once: a thread a host, each host once, none waited for longer than a limit.

The system's resolver knows no time limit: a name server that does not answer holds its caller for half a minute. So each
question has a thread of its own that nobody has to wait for; at most `MAX_THREADS` are waited for at a time.
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

# Azure's is a public address; the others would be refused anyway, by their ranges.
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
    """Return a URL as it can be sent: ASCII, without spaces, fragment or user name.

    Raises:
        Refused: not_a_url, or blocked_address for a scheme that is never fetched.
    """
    text = written.strip()
    scheme, mark, _ = text.partition("://")
    if not mark:
        raise RejectError("not_a_url", "the image is no URL")
    if scheme.lower() not in SCHEMES:
        raise RejectError("blocked_address", f"{scheme[:20]}: only http and https are fetched")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise RejectError("not_a_url", f"no URL that can be read ({error})") from None
    if parts.username is not None or parts.password is not None:
        raise RejectError("not_a_url", "the URL holds a user name, which is not sent")
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
    """Return a host as it is asked for: lower case, IDNA; an IPv6 address without brackets.

    Raises:
        Refused: not_a_url.
    """
    if ":" in host:
        try:
            return str(ipaddress.IPv6Address(host.partition("%")[0]))
        except ValueError:
            raise RejectError("not_a_url", f"{host!r} is no IPv6 address") from None
    try:
        ascii_ = host.lower() if host.isascii() else host.encode("idna").decode().lower()
    except UnicodeError:
        ascii_ = ""
    if not _HOST.fullmatch(ascii_) or len(ascii_) > 254:
        raise RejectError("not_a_url", f"{host!r} is no host name")
    return ascii_


def split_host_port(url: str) -> tuple[str, int]:
    """Return host and port of a URL that `clean_url` gave."""
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]


def find_address_problem(address: str, *, allow_loopback: bool = False) -> str:
    """Say why an IP address is not asked, in a few words; empty when it may be.

    Args:
        address: IPv4 or IPv6, as the system writes it.
        allow_loopback: take 127.0.0.0/8 and ::1.
    """
    ip = _embedded_ipv4(ipaddress.ip_address(address.partition("%")[0]))
    if ip.is_loopback and allow_loopback:
        return ""
    if str(ip) in CLOUD_METADATA_ADDRESSES:
        return f"{address} is a cloud's metadata service"
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
    """Return the IPv4 address that an IPv6 one stands for, else the address itself."""
    if isinstance(ip, ipaddress.IPv4Address):
        return ip
    carried = ip.ipv4_mapped or ip.sixtofour
    if carried is None and ip.teredo is not None:
        carried = ip.teredo[1]
    if carried is None and (ip in _NAT64 or (ip in _IPV4_COMPATIBLE and int(ip) > 1)):
        carried = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return carried or ip


def find_host_problem(host: str, *, allow_loopback: bool = False) -> str:
    """Say why a host is refused by its own letters, without asking for its addresses; empty when they tell nothing.

    Numbers are read as the system's resolver reads them (``127.1``, ``0x7f000001``, ``2130706433``).
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
    """Return the addresses of a host as the system resolves it, sorted; it may take long.

    Raises:
        OSError: when it does not resolve.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # a label that IDNA does not take
        raise OSError(str(error)) from None
    return sorted({str(info[4][0]) for info in found})


def check_hosts(
    hosts: Iterable[str], *, allow_loopback: bool, seconds: float, lookup: AddressLookup = resolve_addresses
) -> dict[str, RejectError | None]:
    """Say for each host whether it may be asked: None, or why not.

    Args:
        hosts: names or addresses, each judged once.
        allow_loopback: take loopback addresses.
        seconds: a host without an answer after that is given up.
        lookup: gives a host's addresses.

    Returns:
        Host to None, or to a `Refused` of unknown_host or blocked_address.
    """
    waiting = list(dict.fromkeys(hosts))[::-1]
    answers: queue.SimpleQueue[tuple[str, RejectError | None]] = queue.SimpleQueue()
    judged: dict[str, RejectError | None] = {}
    running: dict[str, float] = {}  # host to when it is given up; in the order of these times

    def ask(host: str) -> None:
        answers.put((host, _check_host(host, lookup, allow_loopback=allow_loopback)))

    while waiting or running:
        while waiting and len(running) < MAX_THREADS:
            host = waiting.pop()
            running[host] = time.monotonic() + seconds
            threading.Thread(target=ask, args=(host,), daemon=True).start()
        earliest = next(iter(running))
        try:
            host, judgement = answers.get(timeout=max(0.0, running[earliest] - time.monotonic()))
        except queue.Empty:
            host, judgement = earliest, RejectError("unknown_host", f"{earliest}: no answer in {seconds:g} s")
        if running.pop(host, None) is not None:  # else it was given up before
            judged[host] = judgement
    return judged


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
