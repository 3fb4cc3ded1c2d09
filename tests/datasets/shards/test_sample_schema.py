"""Schema checks of sample JSON."""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from pairwright.datasets.shards.sample_schema import MemberSchema, compile_schema_check, find_schema_mismatch

SMALL: MemberSchema = {
    "name": "string",
    "n": "int32",
    "x": ["float64"],
    "edit": [{"from": "string", "to_span": ["int32"]}],
}
RIGHT = {"name": "a", "n": 1, "x": [0.5], "edit": [{"from": "b", "to_span": [1, 2]}]}

leaves: st.SearchStrategy[Any] = st.sampled_from(
    ["a", 1, 0.5, None, True, [], {}, [1], ["a"], [0.5, 1], [{"from": "b", "to_span": [1]}]]
)


@given(st.dictionaries(st.sampled_from([*RIGHT, "other"]), leaves), leaves)
@example({}, [{"from": "b", "to_span": [1], "more": 1}])
@example({}, [{"from": "b"}])
def test_the_fast_check_agrees_with_the_search_for_a_mismatch(changes: dict[str, Any], edit: Any) -> None:
    for value in (RIGHT, {**RIGHT, **changes}, {**RIGHT, "edit": edit}, changes, edit):
        assert compile_schema_check(SMALL)(value) == (find_schema_mismatch(value, SMALL) == "")
    assert compile_schema_check(SMALL)(RIGHT)
