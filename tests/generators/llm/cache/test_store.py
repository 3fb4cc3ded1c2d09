"""Response cache: nothing is billed twice, nothing lost, no secret stored."""

import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.errors import StorageError
from pairwright.generators.llm.cache import contents, database, json_lines, store
from pairwright.generators.llm.cache.store import SYNC_INTERVAL_S, Cache, CachedModel
from pairwright.generators.llm.client.messages import Message, Reply, Request, Usage
from pairwright.generators.llm.client.request_errors import RequestError
from tests.example_counts import examples
from tests.generators.llm.cache.cache_fixtures import HERE, KEY, YES, keep, numbered

OTHER = "0" * 31 + "2"
PLENTY = 120.0  # seconds: far more than anything here takes


def request(text: str = "hello", **changed: object) -> Request:
    return replace(Request((Message("user", text),), "small"), **changed)  # type: ignore[arg-type]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "answers" / "llm-cache.sqlite"


@pytest.fixture
def cache(path: Path) -> Iterator[Cache]:
    with Cache.open(path) as cache:
        yield cache


class Scripted:
    """A model that counts requests and answers by a function."""

    def __init__(self, answer: Callable[[Request], Reply] = lambda _: YES) -> None:
        self.answer, self.asked = answer, 0
        self.go: asyncio.Event | None = None

    async def ask(self, request: Request) -> Reply:
        """Answer, when it is time to go."""
        self.asked += 1
        if self.go is not None:
            await self.go.wait()
        return self.answer(request)


def test_an_answer_is_found_as_soon_as_it_is_put(cache: Cache) -> None:
    assert cache.get(KEY) is None
    kept = keep(cache)
    assert cache.get(KEY) == replace(YES, key=KEY, cached=True)
    assert kept == replace(YES, key=KEY)


def test_an_answer_outlives_the_process(path: Path) -> None:
    with Cache.open(path) as cache:
        keep(cache)
    with Cache.open(path) as cache:
        found = cache.get(KEY)
        assert found is not None
        assert found.raw == YES.raw
        assert found.usage == YES.usage


def test_an_answer_reaches_other_processes_by_itself(path: Path, cache: Cache) -> None:
    keep(cache)
    with Cache.open(path) as other:
        ends = time.monotonic() + PLENTY
        while other.get(KEY) is None:
            assert time.monotonic() < ends, "never committed"


def test_the_first_answer_to_a_request_stays(path: Path) -> None:
    with Cache.open(path) as cache, Cache.open(path) as other:
        keep(cache)
        cache.flush()
        keep(other, reply=replace(YES, text="no"))
        other.flush()
        assert other.get(KEY) == cache.get(KEY) == replace(YES, key=KEY, cached=True)


def test_answers_are_read_in_bulk_whether_on_the_disk_or_not(cache: Cache) -> None:
    for number in range(1200):
        cache.put(numbered(number), replace(YES, text=str(number)), asked="small", endpoint=HERE)
        if number == 700:
            cache.flush()
    found = cache.get_many(numbered(number) for number in range(0, 2400, 2))
    assert {key: reply.text for key, reply in found.items()} == {numbered(n): str(n) for n in range(0, 1200, 2)}
    assert all(reply.cached and reply.key == key for key, reply in found.items())


TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
REPLIES = st.builds(
    Reply,
    text=TEXTS,
    finish_reason=TEXTS,
    refusal=TEXTS,
    usage=st.builds(Usage, *[st.integers(0, 2**53)] * 3),
    model=TEXTS,
    raw=st.binary(),
)


@given(REPLIES)
@settings(max_examples=examples(40))
def test_every_answer_comes_back_as_it_was(tmp_path_factory: pytest.TempPathFactory, reply: Reply) -> None:
    path = tmp_path_factory.mktemp("cache") / "c.sqlite"
    with Cache.open(path) as cache:
        keep(cache, KEY, reply)
        cache.flush()
        found = cache.get(KEY)
    assert found == replace(reply, key=KEY, cached=True)
    assert found is not None
    assert found.raw == reply.raw


def test_answers_of_many_megabytes_are_kept(cache: Cache) -> None:
    long = replace(YES, text="é" * 3_000_000, raw=b"x" * 8_000_000)
    keep(cache, KEY, long)
    cache.flush()
    found = cache.get(KEY)
    assert found is not None
    assert (found.text, found.raw) == (long.text, long.raw)


def test_half_characters_are_replaced_alike_for_now_and_later(path: Path) -> None:
    with Cache.open(path) as cache:
        kept = keep(cache, KEY, replace(YES, text="a \ud83d b", model="m\udc00"))
        assert kept.text == "a \ufffd b"
    with Cache.open(path) as cache:
        found = cache.get(KEY)
        assert found is not None
        assert found.text == kept.text


def test_out_of_range_numbers_and_surrogates_are_stored_safely(cache: Cache) -> None:
    odd = replace(YES, usage=Usage(2**64, 1), finish_reason="st\udc00p", refusal="\ud83d")
    kept = keep(cache, KEY, odd)
    cache.flush()
    assert cache.get(KEY) == replace(kept, cached=True)
    assert kept.usage == Usage(2**53, 1)


WRITING = """
    import sys, time
    from pathlib import Path
    from tests.generators.llm.cache.cache_fixtures import keep, numbered
    from pairwright.generators.llm.cache.store import Cache

    with Cache.open(Path(sys.argv[1])) as cache:
        first, last, pause = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
        for number in range(first, last):
            keep(cache, numbered(number))
            print(number, flush=True)
            time.sleep(pause)
"""


def process(path: Path, *arguments: object, code: str = WRITING) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), str(path), *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


KILLED = """
    import os, signal, sys
    from pathlib import Path
    from tests.generators.llm.cache.cache_fixtures import keep, numbered
    from pairwright.generators.llm.cache.store import Cache

    cache = Cache.open(Path(sys.argv[1]))
    for number in range(500):
        keep(cache, numbered(number))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def killed(path: Path) -> None:
    with process(path, code=KILLED) as writing:
        _, errors = writing.communicate(timeout=PLENTY)
    assert (writing.returncode, errors) == (-signal.SIGKILL, "")


def test_a_killed_process_loses_no_answer_that_was_put(path: Path) -> None:
    killed(path)
    with Cache.open(path) as cache:
        assert len(cache.get_many(numbered(number) for number in range(500))) == 500
        assert cache.get(numbered(499)) == replace(YES, key=numbered(499), cached=True)


def test_what_a_killed_process_left_is_exported_and_counted(path: Path, tmp_path: Path) -> None:
    killed(path)
    assert json_lines.export_cache(path, tmp_path / "answers.jsonl") == 500
    killed(path.with_name("other.sqlite"))
    assert contents.summarize_cache(path.with_name("other.sqlite"))["answers"] == 500


def test_a_process_killed_from_outside_loses_no_answer_that_it_has_put(path: Path) -> None:
    put: list[int] = []
    with process(path, 0, 1_000_000, 0.0) as writing:
        assert writing.stdout is not None
        for line in writing.stdout:
            put.append(int(line))
            if len(put) == 2000:
                break
        writing.kill()
    with Cache.open(path) as cache:
        assert len(cache.get_many(map(numbered, put))) == len(put)


def test_commits_are_synced_to_disk_in_the_background(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = threading.Event()
    sync = os.fsync

    def record(handle: int) -> None:
        sync(handle)
        synced.set()

    monkeypatch.setattr(os, "fsync", record)
    with Cache.open(path) as cache:
        assert not synced.wait(2 * SYNC_INTERVAL_S)
        keep(cache)
        assert synced.wait(PLENTY)


def test_a_file_of_an_earlier_version_is_used(path: Path) -> None:
    """The schema as earlier versions wrote it, without the table of refused request parts."""
    path.parent.mkdir()
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.executescript("""
            PRAGMA journal_mode = WAL;
            CREATE TABLE answers (
                key BLOB NOT NULL PRIMARY KEY, endpoint TEXT NOT NULL, asked TEXT NOT NULL, model TEXT NOT NULL,
                answered INTEGER NOT NULL, finish_reason TEXT NOT NULL, refusal TEXT NOT NULL,
                prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL,
                text TEXT NOT NULL, raw BLOB NOT NULL
            );
            PRAGMA application_id = 1886874723;
            PRAGMA user_version = 1;
        """)
        row = (bytes.fromhex(KEY), HERE, "small", "small-2", 1, "stop", "", 10, 1, 0, "yes", YES.raw)
        connection.execute(f"INSERT INTO answers VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
    with Cache.open(path) as cache:
        assert cache.get(KEY) == replace(YES, key=KEY, cached=True)
        keep(cache, OTHER)
        cache.refuse(HERE, "small", "temperature")
    assert contents.summarize_cache(path)["answers"] == 2


def test_processes_that_write_at_once_lose_nothing(path: Path) -> None:
    with contextlib.ExitStack() as stack:
        writers = [stack.enter_context(process(path, part * 100, part * 100 + 250, 0)) for part in range(4)]
        for writer in writers:
            _, errors = writer.communicate(timeout=PLENTY * 3)
            assert writer.returncode == 0, errors
    with Cache.open(path) as cache:
        assert len(cache.get_many(numbered(number) for number in range(550))) == 550
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert connection.execute("SELECT count(*) FROM answers").fetchone() == (550,)


def test_a_cache_that_another_process_makes_meanwhile_is_a_cache(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.parent.mkdir()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
    read = database._pragma

    def interrupted(connection: sqlite3.Connection, name: str) -> int:
        found = read(connection, name)
        if name == "application_id":
            monkeypatch.setattr(database, "_pragma", read)
            Cache.open(path).close()
        return found

    monkeypatch.setattr(database, "_pragma", interrupted)
    with Cache.open(path) as cache:
        keep(cache)
        assert cache.get(KEY) is not None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    unbound = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with contextlib.closing(unbound) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def test_an_answer_waits_until_another_process_has_written(path: Path, cache: Cache) -> None:
    locking = locked(path)
    locking.__enter__()
    timer = threading.Timer(0.2, locking.__exit__, (None, None, None))
    timer.start()
    started = time.monotonic()
    keep(cache)
    assert time.monotonic() - started > 0.1
    timer.join()
    with Cache.open(path) as other:
        assert other.get(KEY) is not None


def test_a_file_that_stays_locked_is_an_error_and_the_answers_are_written_when_it_is_free(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    cache = Cache.open(path)
    with locked(path):
        for key in (KEY, OTHER):
            with pytest.raises(StorageError, match="another process"):
                keep(cache, key)
        assert set(cache.get_many([KEY, OTHER])) == {KEY, OTHER}
    cache.close()
    with Cache.open(path) as again:
        assert set(again.get_many([KEY, OTHER])) == {KEY, OTHER}


def test_answers_that_cannot_be_written_at_the_end_are_counted(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)
    cache = Cache.open(path)
    with locked(path):
        with pytest.raises(StorageError, match="another process"):
            keep(cache)
        with pytest.raises(StorageError, match="Lost: 1 answer"):
            cache.close()


FILLING = """
    import resource, sys
    from dataclasses import replace
    from pathlib import Path
    from pairwright.datasets.errors import StorageError
    from pairwright.generators.llm.cache.store import Cache
    from tests.generators.llm.cache.cache_fixtures import YES, keep, numbered

    resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))
    cache = Cache.open(Path(sys.argv[1]))
    try:
        for number in range(4000):
            keep(cache, numbered(number), replace(YES, text="x" * 1000))
            if number % 100 == 0:
                cache.flush()
    except StorageError as error:
        print(error)
"""


def test_a_disk_with_no_room_is_an_error_and_what_was_written_stays(path: Path) -> None:
    with process(path, code=FILLING) as filling:
        said, errors = filling.communicate(timeout=PLENTY)
    assert "Traceback" not in errors
    assert str(path) in said
    assert "run again" in said
    with Cache.open(path) as cache:
        assert len(cache.get_many(numbered(number) for number in range(4000))) >= 100


def damaged(path: Path) -> None:
    with Cache.open(path) as cache:
        for number in range(2000):
            keep(cache, numbered(number))
    size = path.stat().st_size
    with path.open("r+b") as file:
        for place in range(4096, size, 4096):
            file.seek(place)
            file.write(b"\xff" * 64)


def foreign(path: Path) -> None:
    path.parent.mkdir()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE birds (name TEXT)")


def newer(path: Path) -> None:
    Cache.open(path).close()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 99")


def text(path: Path) -> None:
    path.parent.mkdir()
    path.write_text("not a database, but a long enough text to be looked at as one" * 100)


def in_a_file(path: Path) -> None:
    path.parent.write_text("a file where the folder should be")


def a_folder(path: Path) -> None:
    path.mkdir(parents=True)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (damaged, "damaged"),
        (foreign, "not a cache of answers"),
        (newer, "newer pairwright"),
        (text, "not a cache"),
        (in_a_file, "Use a (writable path|file)"),
        (a_folder, "cannot be written"),
    ],
)
def test_an_unusable_file_is_named_with_what_to_do(path: Path, make: Callable[[Path], None], said: str) -> None:
    make(path)
    with pytest.raises(StorageError, match=said) as caught, Cache.open(path) as cache:
        cache.get(KEY)
    assert str(path) in str(caught.value)


def test_a_file_that_may_only_be_read_is_an_error(path: Path) -> None:
    """In /proc, since permissions do not bind root."""
    with pytest.raises(StorageError, match="writable"):
        Cache.open(Path("/proc/self/llm-cache.sqlite"))


def test_a_cache_that_must_exist_is_not_made(path: Path) -> None:
    with pytest.raises(StorageError, match="there is no cache"):
        Cache.open(path, create=False)
    assert not path.parent.exists()


def test_a_repeated_request_is_not_sent_again(path: Path) -> None:
    model = Scripted()

    async def run() -> list[Reply]:
        with Cache.open(path) as cache:
            asking = CachedModel(model, cache, HERE)
            return [await asking.ask(request(row=str(row))) for row in range(3)]

    replies = asyncio.run(run())
    again = asyncio.run(run())
    assert model.asked == 1
    assert [reply.cached for reply in (*replies, *again)] == [False, True, True, True, True, True]
    assert {reply.key for reply in replies} == {request().key(HERE)}


def test_one_row_more_sends_one_request_more(cache: Cache) -> None:
    model = Scripted()
    asking = CachedModel(model, cache, HERE)

    async def run(rows: int) -> None:
        await asyncio.gather(*(asking.ask(request(f"caption {row}")) for row in range(rows)))

    asyncio.run(run(50))
    asyncio.run(run(51))
    assert model.asked == 51


def test_responses_of_one_iteration_share_a_transaction_and_are_committed_before_they_are_returned(
    path: Path, cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []

    def insert(connection: sqlite3.Connection, rows: Sequence[database.AnswerRow]) -> int:
        written.append(len(rows))
        return database.insert_rows(connection, rows)

    monkeypatch.setattr(store, "insert_rows", insert)

    async def ask(asking: CachedModel, number: int) -> None:
        reply = await asking.ask(request(str(number)))
        with contextlib.closing(sqlite3.connect(path)) as other:
            assert other.execute(f"{database.SELECT} WHERE key = ?", (bytes.fromhex(reply.key),)).fetchone()

    async def run() -> None:
        model = Scripted()
        model.go = asyncio.Event()
        asking = CachedModel(model, cache, HERE)
        tasks = [asyncio.create_task(ask(asking, number)) for number in range(20)]
        await asyncio.sleep(0)
        model.go.set()
        await asyncio.gather(*tasks)
        await ask(asking, 20)

    asyncio.run(run())
    assert written == [20, 1]


def test_responses_that_cannot_be_written_are_an_error_of_each_request(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "BUSY_SECONDS", 0.01)

    async def run(asking: CachedModel) -> list[Reply | BaseException]:
        tasks = [asyncio.create_task(asking.ask(request(str(number)))) for number in range(3)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    with Cache.open(path) as cache:
        with locked(path):
            ends = asyncio.run(run(CachedModel(Scripted(), cache, HERE)))
        assert [type(end) for end in ends] == [asyncio.CancelledError, StorageError, StorageError]
        assert len(cache.get_many(request(str(number)).key(HERE) for number in range(3))) == 3


def test_equal_requests_at_once_are_sent_once(cache: Cache) -> None:
    async def run() -> list[Reply]:
        model = Scripted()
        model.go = asyncio.Event()
        asking = CachedModel(model, cache, HERE)
        tasks = [asyncio.create_task(asking.ask(request(row=str(row)))) for row in range(20)]
        await asyncio.sleep(0)
        model.go.set()
        replies = await asyncio.gather(*tasks)
        assert model.asked == 1
        return replies

    replies = asyncio.run(run())
    assert [reply.cached for reply in replies] == [False] + [True] * 19
    assert {reply.text for reply in replies} == {"yes"}


def test_an_error_is_shared_by_waiting_requests_and_not_stored(cache: Cache) -> None:
    def fail(_: Request) -> Reply:
        raise RequestError("server_error")

    async def run() -> None:
        model = Scripted(fail)
        model.go = asyncio.Event()
        asking = CachedModel(model, cache, HERE)
        tasks = [asyncio.create_task(asking.ask(request())) for _ in range(3)]
        await asyncio.sleep(0)
        model.go.set()
        ends = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(end) for end in ends] == [RequestError] * 3
        assert model.asked == 1
        model.answer = lambda _: YES
        assert (await asking.ask(request())).text == "yes"

    asyncio.run(run())


def test_when_the_sender_is_cancelled_a_waiting_request_is_sent(cache: Cache) -> None:
    async def run() -> None:
        model = Scripted()
        model.go = asyncio.Event()
        asking = CachedModel(model, cache, HERE)
        first, second, third = (asyncio.create_task(asking.ask(request())) for _ in range(3))
        await asyncio.sleep(0)
        first.cancel()
        third.cancel()
        model.go.set()
        assert (await second).text == "yes"
        assert first.cancelled()
        assert third.cancelled()
        assert model.asked == 2

    asyncio.run(run())


@pytest.mark.parametrize(
    "reply",
    [
        replace(YES, text="", refusal="I cannot."),
        replace(YES, text="It is a d", finish_reason="length"),
        replace(YES, text="", finish_reason="content_filter"),
        replace(YES, text=""),
    ],
)
def test_every_billed_response_is_kept(cache: Cache, reply: Reply) -> None:
    model = Scripted(lambda _: reply)
    asking = CachedModel(model, cache, HERE)
    first, second = asyncio.run(asking.ask(request())), asyncio.run(asking.ask(request()))
    assert model.asked == 1
    assert replace(first, cached=True) == second


def test_no_prompt_and_no_secret_reaches_the_file(path: Path) -> None:
    secret = "sk-0123456789abcdef0123"  # noqa: S105 - made up
    echo = replace(YES, text=f"you sent {secret}", raw=f'{{"authorization": "Bearer {secret}"}}'.encode())
    with Cache.open(path) as cache:
        asking = CachedModel(
            Scripted(lambda _: echo),
            cache,
            "https://anna:passw0rd-of-anna@host/v1?key=q1w2e3",
            secrets=["", "EMPTY", secret],
        )
        reply = asyncio.run(asking.ask(request("a very private caption")))
        cache.flush()
        stored = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert reply.text == "you sent ***"
    for word in (secret, "private caption", "passw0rd", "anna", "q1w2e3"):
        assert word.encode() not in stored
    assert b"https://host:443" in stored


def test_short_placeholders_for_a_key_do_not_change_answers(cache: Cache) -> None:
    asking = CachedModel(Scripted(lambda _: replace(YES, text="an EMPTY street")), cache, HERE, secrets=["EMPTY"])
    assert asyncio.run(asking.ask(request())).text == "an EMPTY street"


def test_url_and_name_of_an_endpoint_have_separate_answers(cache: Cache) -> None:
    model = Scripted()
    for endpoint, asked in [
        ("http://localhost:8000", 1),
        ("http://LOCALHOST:8000/v1/", 1),
        ("http://me:secret@localhost:8000/v1", 1),
        ("https://localhost:8000", 2),
        ("http://localhost:8001", 3),
        ("cluster", 4),
        ("cluster", 4),
        ("http://localhost:8000/team-a/v1", 5),
        ("http://localhost:8000/team-b/v1", 6),
        ("http://localhost:8000/team-b/v1/", 6),
    ]:
        asyncio.run(CachedModel(model, cache, endpoint).ask(request()))
        assert model.asked == asked, endpoint
