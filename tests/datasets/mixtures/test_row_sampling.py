"""Selection and order of a mixture's rows."""

from hypothesis import given
from hypothesis import strategies as st

from pairwright.datasets.mixtures.conversations import Conversation
from pairwright.datasets.mixtures.row_sampling import RowHashes, assign_ranks, find_distinct_rows
from pairwright.datasets.records import Turn

SOURCES = st.dictionaries(st.sampled_from("abcd"), st.lists(st.integers(0, 30), max_size=40), min_size=1)


def conversation(number: int) -> Conversation:
    return Conversation(
        (Turn("human", f"What is {number}?"), Turn("assistant", "A number.")),
        (f"/data/{number}.jpg",),
        (f"{number}.jpg",),
    )


def numbers(rows: list[int], seed: int = 0, unusable: frozenset[int] = frozenset()) -> RowHashes:
    found = RowHashes()
    for number in rows:
        found.add(conversation(number), seed, usable=number not in unusable)
    return found


def mixed(sources: dict[str, list[int]], take: dict[str, int], seed: int = 0) -> list[tuple[str, int]]:
    """Return (source, row) of a mixture in order; no more is taken than is there."""
    found = {name: numbers(rows, seed) for name, rows in sources.items()}
    distinct = find_distinct_rows(found)
    place = assign_ranks(found, distinct, {name: min(take[name], len(distinct[name].places)) for name in sources})
    rows = [
        (int(rank), name, row)
        for name in sources
        for rank, row in zip(place[name], sources[name], strict=True)
        if rank >= 0
    ]
    assert sorted(rank for rank, _, _ in rows) == list(range(len(rows)))
    return [(name, row) for _, name, row in sorted(rows)]


@given(SOURCES)
def test_no_row_is_repeated_or_lost(sources: dict[str, list[int]]) -> None:
    taken = [row for _, row in mixed(sources, dict.fromkeys(sources, 10**6))]
    assert len(taken) == len(set(taken))
    assert set(taken) == {row for rows in sources.values() for row in rows}


@given(SOURCES)
def test_every_row_is_distinct_or_a_duplicate_of_the_first_source_that_holds_it(sources: dict[str, list[int]]) -> None:
    distinct = find_distinct_rows({name: numbers(rows) for name, rows in sources.items()})
    earlier: dict[int, str] = {}
    for name, rows in sources.items():
        expected: dict[str, int] = {}
        for row in rows:
            if row in earlier:
                expected[earlier[row]] = expected.get(earlier[row], 0) + 1
            earlier.setdefault(row, name)
        assert distinct[name].duplicates == expected
        assert len(distinct[name].places) + sum(expected.values()) == len(rows)


@given(st.lists(st.integers(0, 10**6), unique=True, max_size=60), st.data())
def test_sources_that_share_no_row_may_be_listed_in_any_order(rows: list[int], data: st.DataObject) -> None:
    sources = {name: rows[start::3] for start, name in enumerate("abc")}
    take = {name: data.draw(st.integers(0, 20)) for name in sources}
    shuffled = {name: sources[name] for name in data.draw(st.permutations(list(sources)))}
    assert mixed(sources, take) == mixed(shuffled, take)


@given(st.lists(st.integers(0, 1000), max_size=60), st.lists(st.integers(1001, 2000), max_size=60))
def test_another_source_does_not_change_the_rows_of_one(rows: list[int], others: list[int]) -> None:
    alone = mixed({"a": rows}, {"a": 7})
    together = mixed({"b": others, "a": rows}, {"a": 7, "b": 9})
    assert [each for each in together if each[0] == "a"] == alone


@given(st.lists(st.integers(0, 1000), max_size=60), st.integers(0, 30), st.integers(0, 30))
def test_asking_for_more_rows_adds_to_those_given_before(rows: list[int], few: int, more: int) -> None:
    assert set(mixed({"a": rows}, {"a": few})) <= set(mixed({"a": rows}, {"a": few + more}))


def test_another_seed_gives_another_choice_and_order() -> None:
    rows = list(range(200))
    one, other = mixed({"a": rows}, {"a": 100}, seed=1), mixed({"a": rows}, {"a": 100}, seed=2)
    assert set(one) != set(other)
    assert [row for row in one if row in other] != [row for row in other if row in one]


def test_a_source_of_which_few_rows_are_taken_is_spread_over_the_mixture() -> None:
    """Selection and order are independent, or the selected few would all come first."""
    sources = {"big": list(range(1000)), "sampled": list(range(1000, 11_000))}
    taken = mixed(sources, {"big": 1000, "sampled": 500})
    assert 200 < sum(name == "sampled" for name, _ in taken[:750]) < 300


def test_a_row_whose_image_is_missing_keeps_its_place_and_is_never_taken() -> None:
    found = {"a": numbers([1, 2, 3, 2], unusable=frozenset({2}))}
    distinct = find_distinct_rows(found)
    assert distinct["a"].duplicates == {}
    assert [int(rank) >= 0 for rank in assign_ranks(found, distinct, {"a": 2})["a"]] == [True, False, True, False]
