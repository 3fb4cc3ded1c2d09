"""Fetching: URL checks, request settings, repair of download folders, and complete runs."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from pairwright.datasets.errors import MissingResourceError, StorageError, UsageError
from pairwright.datasets.images.loading import check_image_at
from pairwright.datasets.readers.pairs import ReadBatch, ReadOptions, read_pairs
from pairwright.datasets.record_tables import PAIRS, REJECTS
from pairwright.datasets.records import Box, Pair, pair_key
from pairwright.datasets.rejects import REASONS, RejectError, make_reject
from pairwright.datasets.tar_index import TarMember, iter_tar_members
from pairwright.indexes.fetching import img2dataset_runner
from pairwright.indexes.fetching.download_folder import DownloadFolder, open_download_folder
from pairwright.indexes.fetching.failure_reasons import DownloadError, classify_failure
from pairwright.indexes.fetching.fetch import FetchReport, fetch_images
from pairwright.indexes.fetching.http_opener import FetchOpener, RequestSettings
from pairwright.indexes.fetching.image_normalisation import normalise_image_bytes
from pairwright.indexes.fetching.img2dataset_runner import run_img2dataset
from pairwright.indexes.fetching.options import FetchOptions, make_img2dataset_arguments
from pairwright.indexes.fetching.url_safety import check_hosts, clean_url, find_address_problem, find_host_problem
from tests.servers.images import ImageServer, image_server, picture

needs_img2dataset = pytest.mark.skipif(find_spec("img2dataset") is None, reason="img2dataset is not installed")
needs_proc = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system has no /proc to look at")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ignore a proxy of the environment, which cannot reach the test server."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def server() -> Iterator[ImageServer]:
    """A server with valid images and failures."""
    with image_server() as running:
        yield running


def pairs(urls: list[str], caption: str = "a thing") -> list[Pair]:
    return [Pair(key=pair_key("test", url, caption), caption=caption, image=url, source="test") for url in urls]


def fetch(given_: list[Pair], out: Path, **options: Any) -> FetchReport:
    chosen = {"allow_loopback": True, "processes": 1, "timeout": 5.0, "retries": 0} | options
    return fetch_images([ReadBatch(given_, [])], out, FetchOptions(**chosen))


def processes_of(marker: Path) -> list[int]:
    """Return the live processes whose environment names a path: the downloader's, all the way down."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if str(marker).encode() in path.read_bytes() and int(path.parent.name) != os.getpid():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def eventually(condition: Callable[[], object], seconds: float = 120.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        threading.Event().wait(0.02)
    return True


# URLs


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("http://a.example/b.jpg", "http://a.example/b.jpg"),
        ("  HTTPS://A.Example:443/b.jpg\n", "https://a.example/b.jpg"),
        ("http://a.example/two words é.jpg", "http://a.example/two%20words%20%C3%A9.jpg"),
        ("http://a.example/two%20words.jpg?q=a%26b&r=100%", "http://a.example/two%20words.jpg?q=a%26b&r=100%25"),
        ("http://bücher.example/ü?ü=1#top", "http://xn--bcher-kva.example/%C3%BC?%C3%BC=1"),
        ("http://a.example", "http://a.example/"),
        ("http://[2606:4700::1111]:8080/x", "http://[2606:4700::1111]:8080/x"),
    ],
)
def test_a_url_is_written_as_it_can_be_sent(written: str, sent: str) -> None:
    assert clean_url(written) == sent


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="?#", exclude_categories=["Cc"]), max_size=20))
def test_cleaning_twice_changes_nothing_and_encoded_paths_are_not_encoded_again(path: str) -> None:
    encoded = "http://a.example/x" + quote(path, safe="")
    assert clean_url(encoded) == encoded
    once = clean_url("http://a.example/x" + path + "x")
    assert clean_url(once) == once
    assert once.isascii()
    assert " " not in once


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("file:///etc/passwd", "blocked_address"),
        ("ftp://a.example/b.jpg", "blocked_address"),
        ("s3://bucket/b.jpg", "blocked_address"),
        ("data:image/png;base64,AAAA", "not_a_url"),
        ("/a/local.jpg", "not_a_url"),
        ("", "not_a_url"),
        ("http://", "not_a_url"),
        ("http://a.example:99999/", "not_a_url"),
        ("http://good.example@127.0.0.1/", "not_a_url"),
        ("http://good.example\\@127.0.0.1/", "not_a_url"),
        ("http://a..example/", "not_a_url"),
        ("http://a b.example/", "not_a_url"),
    ],
)
def test_an_invalid_url_is_refused(url: str, reason: str) -> None:
    with pytest.raises(RejectError) as caught:
        clean_url(url)
    assert caught.value.reason == reason


# Addresses


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.9.1", "::1", "0.0.0.0", "::", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1"),  # noqa: S104 - nothing is bound
        *("169.254.169.254", "169.254.1.1", "168.63.129.16", "100.100.100.200", "224.0.0.1", "240.0.0.1"),
        *("255.255.255.255", "192.0.2.1", "198.18.0.1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254"),
        *("ff02::1", "fec0::1", "2001:db8::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "2002:7f00:1::"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "::7f00:1", "2001:0:4136:e378:8000:63bf:f5ff:fffe"),
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert find_address_problem(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_a_public_address_is_asked(address: str) -> None:
    assert not find_address_problem(address)


def test_loopback_is_asked_by_wish_only_and_nothing_else_with_it() -> None:
    assert not find_address_problem("127.0.0.1", allow_loopback=True)
    assert not find_address_problem("::1", allow_loopback=True)
    assert not find_host_problem("localhost", allow_loopback=True)
    for other in ("10.0.0.1", "0.0.0.0", "169.254.169.254", "fe80::1"):  # noqa: S104 - nothing is bound
        assert find_address_problem(other, allow_loopback=True)


@pytest.mark.parametrize("host", ["127.1", "0x7f000001", "2130706433", "017700000001", "localhost", "a.localhost."])
def test_odd_ways_to_write_loopback_are_seen(host: str) -> None:
    assert find_host_problem(host)
    assert not find_host_problem("a.example")


def test_a_host_is_refused_when_one_of_its_addresses_is_private() -> None:
    names = {"good.example": ["8.8.8.8", "1.1.1.1"], "half.example": ["8.8.8.8", "10.0.0.1"], "none.example": []}
    judged = check_hosts([*names, *names], allow_loopback=False, seconds=5, lookup=names.__getitem__)
    assert {host: flaw and flaw.reason for host, flaw in judged.items()} == {
        "good.example": None,
        "half.example": "blocked_address",
        "none.example": "unknown_host",
    }


def test_each_host_is_looked_up_once_and_a_dead_name_server_holds_nobody_up() -> None:
    asked: list[str] = []
    never = threading.Event()

    def lookup(host: str) -> list[str]:
        asked.append(host)
        if host.startswith("stuck"):
            never.wait()
        if host.startswith("gone"):
            raise OSError(-2, "Name or service not known")
        return ["8.8.8.8"]

    stuck = [f"stuck{n}.example" for n in range(100)]
    hosts = [*stuck, "good.example", "gone.example", "good.example"]
    begun = time.monotonic()
    judged = check_hosts(hosts, allow_loopback=False, seconds=0.2, lookup=lookup)
    never.set()
    assert time.monotonic() - begun < 20
    assert sorted(asked) == sorted(set(hosts))
    assert judged["good.example"] is None
    assert {judged[host].reason for host in [*stuck, "gone.example"]} == {"unknown_host"}  # type: ignore[union-attr]


# Asking


def opener(**settings: Any) -> FetchOpener:
    chosen: dict[str, Any] = {"user_agent": "tests/1", "timeout": 5.0, "allow_loopback": True, **settings}
    return FetchOpener(RequestSettings(**chosen))


def get(asking: FetchOpener, url: str) -> bytes:
    with asking.open(url) as answer:
        data: bytes = answer.read()
    return data


def test_the_opener_says_who_asks_and_gives_the_bytes_as_they_are(server: ImageServer) -> None:
    assert get(opener(), f"{server.url}/good/1.jpg") == picture("1.jpg")
    assert server.requests[0][1]["User-Agent"] == "tests/1"


@pytest.mark.parametrize("scheme", ["file:///etc/passwd", "data:,x", "ftp://127.0.0.1/x"])
def test_the_opener_speaks_http_only(scheme: str) -> None:
    with pytest.raises(OSError, match="unknown url type"):
        opener().open(scheme)


@pytest.mark.parametrize("to", ["http://10.0.0.1/x", "http://169.254.169.254/latest/", "http://[::ffff:10.0.0.1]/"])
def test_a_redirect_to_a_private_address_is_refused(server: ImageServer, to: str) -> None:
    with pytest.raises(OSError, match="blocked_address"):
        opener().open(f"{server.url}/to?{to}")


def test_a_redirect_to_a_file_is_refused(server: ImageServer) -> None:
    with pytest.raises(OSError, match="not allowed") as caught:
        opener().open(f"{server.url}/to?file:///etc/passwd")
    assert classify_failure(str(caught.value))[0] == "blocked_address"


def test_a_redirect_to_another_picture_is_followed(server: ImageServer) -> None:
    assert get(opener(), f"{server.url}/to?/good/2.jpg") == picture("2.jpg")


def test_a_name_that_leads_to_this_machine_is_refused_when_it_connects(
    server: ImageServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So it is with a name that had a public address when it was judged before."""
    address = (2, 1, 6, "", ("127.0.0.1", server.server_port))
    monkeypatch.setattr("socket.getaddrinfo", lambda *_args, **_named: [address])
    with pytest.raises(OSError, match="blocked_address"):
        opener(allow_loopback=False).open("http://rebound.example/good/1.jpg")
    assert not server.requests


def test_an_answer_that_drips_is_ended(server: ImageServer) -> None:
    begun = time.monotonic()
    with pytest.raises(DownloadError, match="timed_out"):
        get(opener(timeout=0.2), f"{server.url}/drip/1.jpg")
    assert time.monotonic() - begun < 20  # of thirty


def test_silence_is_ended_and_is_a_timeout(server: ImageServer) -> None:
    with pytest.raises(OSError, match="timed out") as caught:
        opener(timeout=0.2).open(f"{server.url}/slow/1.jpg")
    assert classify_failure(str(caught.value))[::2] == ("timed_out", True)


def test_bytes_that_break_off_are_refused_and_may_be_tried_again(server: ImageServer) -> None:
    with pytest.raises(DownloadError) as caught:
        get(opener(), f"{server.url}/cut/1.jpg")
    assert classify_failure(str(caught.value))[::2] == ("download_failed", True)


def test_an_endless_answer_is_refused(server: ImageServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pairwright.indexes.fetching.http_opener.MAX_DOWNLOAD_BYTES", 100)
    with pytest.raises(DownloadError, match="image_too_large"):
        get(opener(), f"{server.url}/good/1.jpg")


def test_a_proxy_is_asked_instead_of_the_host(server: ImageServer) -> None:
    """The host's name is not even resolved; the proxy itself may be on loopback."""
    through = opener(allow_loopback=False, proxies={"http": server.url, "https": server.url})
    assert get(through, "http://pictures.invalid/good/1.jpg") == picture("1.jpg")
    with pytest.raises(OSError, match="403"):
        through.open("https://pictures.invalid/good/1.jpg")
    assert [path for path, _ in server.requests] == [
        "http://pictures.invalid/good/1.jpg",
        "CONNECT pictures.invalid:443",
    ]
    with pytest.raises(OSError, match="blocked_address"):
        through.open("http://169.254.169.254/latest/")


@pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl to make a certificate")
def test_https_is_guarded_and_its_certificates_are_checked(
    server: ImageServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ssl

    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost"]
    written = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", *make.split(), *names, *written], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    url = f"https://localhost:{server.server_port}/good/1.jpg"
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED") as caught:
        opener().open(url)
    assert classify_failure(str(caught.value))[0] == "bad_certificate"
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert get(opener(), url) == picture("1.jpg")
    with pytest.raises(OSError, match="blocked_address"):
        opener(allow_loopback=False).open(url)


# Bytes


def encoded(image: Image.Image, format_: str, **options: Any) -> bytes:
    data = io.BytesIO()
    image.save(data, format_, **options)
    return data.getvalue()


@pytest.mark.parametrize("format_", ["JPEG", "PNG", "WEBP", "GIF", "BMP"])
def test_a_plain_picture_passes_untouched(format_: str) -> None:
    data = encoded(Image.new("RGB", (20, 10), "red"), format_)
    assert normalise_image_bytes(data) == data


@pytest.mark.parametrize("format_", ["JPEG", "PNG", "WEBP"])
def test_half_a_picture_is_refused(format_: str) -> None:
    data = encoded(Image.effect_noise((200, 200), 50).convert("RGB"), format_)
    with pytest.raises(DownloadError, match="bad_image"):
        normalise_image_bytes(data[: len(data) // 2])


@pytest.mark.parametrize("data", [b"", b"<html>gone</html>", b"\n <?xml version='1.0'?><svg/>"])
def test_a_page_instead_of_a_picture_is_refused(data: bytes) -> None:
    with pytest.raises(DownloadError, match="bad_image"):
        normalise_image_bytes(data)


def test_bytes_of_another_format_are_left_to_the_decoder() -> None:
    assert normalise_image_bytes(b"\0\0\0\x20ftypavif") == b"\0\0\0\x20ftypavif"


def test_a_picture_taken_sideways_is_turned_upright() -> None:
    image = Image.new("RGB", (40, 20), "red")
    image.paste("blue", (0, 0, 20, 20))
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera lay on its left side: turn by 90 degrees clockwise
    turned = Image.open(io.BytesIO(normalise_image_bytes(encoded(image, "JPEG", exif=exif, quality=95))))
    assert turned.size == (20, 40)
    top, bottom = turned.convert("RGB").getpixel((10, 5)), turned.convert("RGB").getpixel((10, 35))
    assert top[2] > 200 > top[0]  # type: ignore[index]
    assert bottom[0] > 200 > bottom[2]  # type: ignore[index]
    assert turned.getexif().get(0x0112, 1) == 1


def test_sixteen_bit_channels_become_eight_bit_with_equal_brightness() -> None:
    import numpy as np

    values = np.linspace(0, 65535, 64 * 64).reshape(64, 64).astype(np.uint16)
    image = Image.open(io.BytesIO(normalise_image_bytes(encoded(Image.fromarray(values), "PNG"))))
    assert image.mode == "L"
    assert np.array_equal(np.asarray(image), values >> 8)


# Reasons


@pytest.mark.parametrize(
    ("message", "reason", "passing"),
    [
        ("HTTP Error 404: Not Found", "not_found", False),
        ("HTTP Error 403: Forbidden", "refused_by_server", False),
        ("HTTP Error 503: Service Unavailable", "server_busy", True),
        ("HTTP Error 429: Too Many Requests", "server_busy", True),
        ("HTTP Error 400: Bad Request", "download_failed", False),
        ("<urlopen error [Errno -2] Name or service not known>", "unknown_host", True),
        ("<urlopen error [Errno 111] Connection refused>", "download_failed", True),
        ("<urlopen error timed out>", "timed_out", True),
        ("The read operation timed out", "timed_out", True),
        ("Remote end closed connection without response", "download_failed", True),
        ("Use of image disallowed by X-Robots-Tag directive", "opted_out", False),
        ("Image decoding error", "bad_image", False),
        ("<urlopen error [blocked_address] a.example: 10.0.0.1 is private>", "blocked_address", False),
        ("something new", "download_failed", False),
        ("", "download_failed", False),
    ],
)
def test_a_message_becomes_a_countable_reason(message: str, reason: str, *, passing: bool) -> None:
    assert classify_failure(message)[::2] == (reason, passing)
    assert reason in REASONS


# The folder


def shard(path: Path, urls: list[str], *, pictures: bytes | None = None) -> None:
    """Write a tar as img2dataset does: a picture and a .json of each URL."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for number, url in enumerate(urls):
            for name, data in (("jpg", pictures or picture(url)), ("json", json.dumps({"url": url}).encode())):
                member = tarfile.TarInfo(f"{number:09d}.{name}")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))


def killed_pass(root: Path, urls: list[str]) -> Path:
    """Return the tar of a pass that asked for ``urls`` and got them all, before it was settled."""
    with open_download_folder(root, {}) as folder:
        one = folder.begin(urls)
    shard(one.shards / "00000.tar", urls)
    return one.shards / "00000.tar"


URLS = [f"http://a.example/{n}.jpg" for n in range(4)]


@given(share=st.floats(0, 1))
def test_a_torn_tar_keeps_its_whole_pictures_and_loses_the_rest(
    share: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("torn")
    tar = killed_pass(root, URLS)
    members = [found for found in iter_tar_members(tar) if isinstance(found, TarMember)]
    end = round(share * tar.stat().st_size)
    os.truncate(tar, end)
    whole = sum(member.offset + member.size <= end for member in members[1::2])
    folder = DownloadFolder(root)
    assert folder.settle() == 1
    outcomes = folder.outcomes()
    assert sorted(outcomes["url"]) == URLS[:whole]
    for place in outcomes["image"]:
        assert check_image_at(str(root / place)) == (40, 30, "jpeg")
    if whole:
        assert all(isinstance(found, TarMember) for found in iter_tar_members(tar))
        with tarfile.open(tar) as opened:
            assert len(opened.getnames()) == 2 * whole
    else:
        assert not tar.exists() or not list(iter_tar_members(tar))
    assert folder.settle() == 0


def test_a_tar_that_changes_afterwards_is_looked_at_again(tmp_path: Path) -> None:
    tar = killed_pass(tmp_path, URLS)
    folder = DownloadFolder(tmp_path)
    folder.settle()
    assert folder.outcomes().height == 4
    os.truncate(tar, 3000)
    assert folder.settle() == 1
    assert folder.outcomes().height == 1


def test_a_stored_picture_that_is_broken_is_no_success(tmp_path: Path) -> None:
    with open_download_folder(tmp_path, {}) as folder:
        one = folder.begin(URLS)
        shard(one.shards / "00000.tar", URLS[:2], pictures=picture("x")[:300])
        assert one.settle(ended=True)["state"].to_list() == ["failed", "failed", "lost", "lost"]
        assert folder.outcomes().sort("url")["reason"].to_list() == ["bad_image"] * 2 + ["download_failed"] * 2


def test_a_url_that_was_fetched_twice_has_one_copy(tmp_path: Path) -> None:
    for _ in range(2):
        killed_pass(tmp_path, URLS)
    folder = DownloadFolder(tmp_path)
    folder.settle()
    outcomes = folder.outcomes()
    assert outcomes.height == len(URLS)
    assert outcomes["tries"].to_list() == [2] * 4
    assert all(place.startswith("pass-00000/") for place in outcomes["image"])


def test_a_folder_with_other_files_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "sizes.json").write_text("{}")
    with pytest.raises(StorageError, match="holds files"), open_download_folder(tmp_path, {}):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["sizes.json"]


def test_a_folder_holds_pictures_of_one_kind(tmp_path: Path) -> None:
    with open_download_folder(tmp_path, FetchOptions().settings()):
        pass
    with pytest.raises(UsageError, match="image_size was 512, now 64"):  # noqa: SIM117 - the inner one raises
        with open_download_folder(tmp_path, FetchOptions(image_size=64).settings()):
            pass
    with open_download_folder(tmp_path, FetchOptions(shard_size=7, timeout=1, retries=5).settings()):
        pass  # what changes no bytes may change


def test_two_fetches_do_not_work_in_one_folder(tmp_path: Path) -> None:
    with (
        open_download_folder(tmp_path, {}),
        pytest.raises(StorageError, match="another fetch"),
        open_download_folder(tmp_path, {}),
    ):
        pass


# Refusals before anything is started


def test_invalid_urls_are_rejected_without_starting_img2dataset(tmp_path: Path) -> None:
    urls = ["file:///etc/passwd", "data:,x", "http://10.0.0.1/x.jpg", "http://127.0.0.1/x.jpg", "local.jpg", ""]
    result = fetch(pairs(urls), tmp_path / "out", allow_loopback=False)
    assert (result.fetched, result.passes, result.pairs) == (0, 0, 6)
    assert result.rejected == {"not_a_url": 3, "blocked_address": 3}
    rejects = REJECTS.read_frame(tmp_path / "out" / "rejected.parquet")
    assert rejects["place"].to_list() == [pair.key for pair in pairs(urls)]
    assert PAIRS.read_frame(tmp_path / "out" / "fetched.parquet").is_empty()


def test_rows_that_the_reader_refused_are_counted_and_passed_on(tmp_path: Path) -> None:
    flaw = make_reject("pool.csv:3", "empty_caption", "the caption is empty")
    result = fetch_images([ReadBatch(pairs(["x.jpg"]), [flaw])], tmp_path, FetchOptions())
    assert result.rejected == {"empty_caption": 1, "not_a_url": 1}
    assert REJECTS.read(tmp_path / "rejected.parquet")[0] == flaw


def test_the_boxes_of_a_pair_are_not_counted_among_rejected_pairs(tmp_path: Path) -> None:
    flaw = make_reject("pool.csv:3, boxes", "bad_box", "the box leaves the image", part="boxes")
    result = fetch_images([ReadBatch(pairs(["x.jpg"]), [flaw])], tmp_path, FetchOptions())
    assert (result.pairs, result.rejected, result.broken_boxes) == (1, {"not_a_url": 1}, {"bad_box": 1})
    assert REJECTS.read(tmp_path / "rejected.parquet")[0] == flaw


def test_boxes_are_not_shifted_off_their_objects(tmp_path: Path) -> None:
    boxed = Pair(key="0" * 32, caption="c", image="http://a.example/x.jpg", boxes=(Box("dog", 0.1, 0.1, 0.5, 0.5),))
    with pytest.raises(UsageError, match="boxes"):
        fetch([boxed], tmp_path, resize_mode="center_crop")


def test_an_old_img2dataset_is_refused_and_a_missing_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda _name: "1.25.4")
    with pytest.raises(MissingResourceError, match=r"1\.25\.4 is too old.*pip install"):
        img2dataset_runner.check_img2dataset()

    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    with pytest.raises(MissingResourceError, match="pip install"):
        img2dataset_runner.check_img2dataset()


@pytest.mark.parametrize(
    "options",
    [
        {"quality": 101},
        {"image_format": "png", "quality": 10},
        {"proxy": "socks5://127.0.0.1:1"},
        {"user_agent": "a\r\nHost: b"},
    ],
)
def test_invalid_options_are_usage_errors(options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        FetchOptions(**options)


def test_locations_of_images_do_not_depend_on_the_number_of_processes() -> None:
    arguments_by_call = [
        make_img2dataset_arguments(FetchOptions(processes=n), Path("urls"), Path("shards"), 2500) for n in (1, 2, 3, 16)
    ]
    assert {one["number_sample_per_shard"] for one in arguments_by_call} == {1000}
    assert [one["processes_count"] for one in arguments_by_call] == [1, 2, 3, 3]


@pytest.mark.parametrize(
    ("written", "used"),
    [
        ("http://proxy", "http://proxy:80"),
        ("http://me:secret@proxy:3128", "http://me:secret@proxy:3128"),
        ("https://proxy", "https://proxy:443"),
        ("proxy:8080", "http://proxy:8080"),
    ],
)
def test_the_proxy_of_the_environment_is_the_default(written: str, used: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", written)
    assert FetchOptions().proxies == {"https": used}
    assert FetchOptions(proxy="http://other:1").proxies == dict.fromkeys(("http", "https"), "http://other:1")


def test_a_full_disk_and_a_missing_module_are_reported(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x\nshard 3 failed with error [Errno 28] No space left on device\ntotal - success: 0.1")
    with pytest.raises(StorageError, match="disk is full"):
        img2dataset_runner.check_log(log, failed=False)
    log.write_text("Traceback\nModuleNotFoundError: No module named 'imghdr'\n")
    with pytest.raises(MissingResourceError, match="standard-imghdr"):
        img2dataset_runner.check_log(log, failed=True)


# Whole runs


@needs_img2dataset
def test_every_pair_is_fetched_or_rejected_once_and_transient_failures_are_retried(
    server: ImageServer, tmp_path: Path
) -> None:
    good = ["/good/1.jpg", "/good/2.png", "/good/3.webp", "/big/4.jpg", "/to?/good/5.jpg", "/flaky/6.jpg"]
    good += ["/odd name é.jpg", "/robots/otherbot: noai/7.jpg"]
    bad = {
        "/status/404": "not_found",
        "/status/403": "refused_by_server",
        "/status/500": "server_busy",
        "/slow/1.jpg": "timed_out",
        "/page.jpg": "bad_image",
        "/half/1.jpg": "bad_image",
        "/cut/1.jpg": "download_failed",
        "/robots/noai/1.jpg": "opted_out",
        "/robots/noml, noindex/2.jpg": "opted_out",
        "/robots/pairwright: noai/3.jpg": "opted_out",
        "/to?http://169.254.169.254/x.jpg": "blocked_address",
        "/to?http://10.0.0.1/x.jpg": "blocked_address",
    }
    given_ = pairs([server.url + path for path in [*bad, *good]]) + pairs([f"{server.url}/good/1.jpg"], "another")
    result = fetch(given_, tmp_path, timeout=2, retries=1, image_size=64)
    rejected = REJECTS.read(tmp_path / "rejected.parquet")
    assert {one.excerpt.removeprefix(server.url): one.reason for one in rejected} == bad
    fetched = PAIRS.read(tmp_path / "fetched.parquet")
    assert [pair.key for pair in fetched] == [pair.key for pair in given_[len(bad) :]]
    assert result.pairs == len(given_) == result.fetched + sum(result.rejected.values())
    assert result.passes == 2
    for path, times in {"/status/404": 1, "/status/500": 2, "/flaky/6.jpg": 2, "/good/1.jpg": 1}.items():
        assert server.asked(path) == times
    assert server.asked(quote("/odd name é.jpg")) == 1
    # The table reads on: keys stay, places lead to pictures, sizes are theirs.
    read = [pair for batch in read_pairs(ReadOptions(str(tmp_path / "fetched.parquet"))) for pair in batch.pairs]
    assert [pair.key for pair in read] == [pair.key for pair in fetched]
    for pair in read:
        assert check_image_at(pair.image) == (pair.width, pair.height, "jpeg")
        assert json.loads(pair.meta)["url"].startswith(server.url)
    assert (fetched[3].width, fetched[3].height) == (85, 64)
    assert {dict(headers)["User-Agent"].partition("/")[0] for _, headers in server.requests} == {"pairwright"}
    # Again: nothing is left to ask, and the tables are the same to the byte.
    before = {name: (tmp_path / name).read_bytes() for name in ("fetched.parquet", "rejected.parquet")}
    asked = len(server.requests)
    again = fetch(given_, tmp_path, timeout=2, retries=1, image_size=64)
    assert (again.asked, again.passes, again.reused, again.fetched) == (0, 0, 8, 9)
    assert len(server.requests) == asked
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


@needs_img2dataset
@needs_proc
@pytest.mark.parametrize(
    "signals",
    [
        pytest.param((signal.SIGKILL,), id="killed"),
        pytest.param((signal.SIGKILL, signal.SIGINT), id="killed and stopped", marks=pytest.mark.slow),
    ],
)
def test_a_killed_fetch_leaves_no_process_and_resumes(
    server: ImageServer, tmp_path: Path, signals: tuple[signal.Signals, ...]
) -> None:
    good = [f"/good/{n}.jpg" for n in range(4)]
    slow = [f"/slow/{n}.jpg" for n in range(2)]
    given_ = pairs([server.url + path for path in [*good, *slow]])
    PAIRS.write(given_, tmp_path / "pairs.parquet")
    out = tmp_path / "out"
    command = [sys.executable, "-m", "pairwright", "fetch", str(tmp_path / "pairs.parquet"), "--out", str(out)]
    settings = ["--allow-loopback", "--shard-size", "2", "--processes", "1", "--timeout", "60"]
    for requests, how in zip((6, 8), signals, strict=False):
        running = subprocess.Popen([*command, *settings], stderr=subprocess.PIPE)
        assert eventually(partial(server.has_been_asked, requests)), "the last shard was never begun"
        assert processes_of(out)
        running.send_signal(how)
        _, said = running.communicate(timeout=120)
        assert b"Traceback" not in said
        assert eventually(lambda: not processes_of(out)), "processes are left"
    (out / "sizes.json").write_text("{}")  # of another tool; img2dataset would stumble over it
    server.stopped.set()  # from now on what is slow is answered with nothing
    result = fetch(given_, out)
    assert (result.reused, result.fetched, result.asked) == (4, 4, 2)
    assert all(server.asked(path) == 1 for path in good)


@needs_img2dataset
@needs_proc
def test_a_downloader_that_hangs_is_ended(server: ImageServer, tmp_path: Path) -> None:
    with open_download_folder(tmp_path, {}) as folder:
        one = folder.begin([f"{server.url}/slow/1.jpg"])
    settings = RequestSettings("tests/1", 60.0, allow_loopback=True, progress=str(one.folder / "progress"))
    arguments = {"url_list": str(one.urls), "output_folder": str(one.shards), "input_format": "parquet"}
    log = one.folder / "log"
    assert not run_img2dataset(arguments, settings, log, lambda _done: None, patience=0.5)
    assert eventually(lambda: not processes_of(tmp_path))  # killed processes take a moment
    assert one.settle(ended=True)["state"].to_list() == ["lost"]


@needs_img2dataset
def test_a_failing_downloader_is_reported_with_its_error(tmp_path: Path) -> None:
    arguments = {"url_list": str(tmp_path / "none.parquet"), "input_format": "parquet", "output_format": "stone"}
    settings = RequestSettings("tests/1", 1.0, progress=str(tmp_path / "progress"))
    with pytest.raises(StorageError, match=r"img2dataset failed: .*Full output"):
        run_img2dataset({**arguments, "output_folder": str(tmp_path)}, settings, tmp_path / "log", lambda _done: None)
