"""Label sets by name, and by the labels that a source has."""

import pytest

from pairwright.generators.lexicon.label_sets import COCO, GROUP_OF, labels_of, set_of


def test_names_of_sets_stand_for_their_labels() -> None:
    assert labels_of(("coco",)) == COCO
    assert labels_of((" Coco ", "Dragon", "dog", "")) == (*COCO, "dragon")
    assert GROUP_OF["zebra"] == GROUP_OF["cow"] == "animal"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [(COCO, "coco"), (COCO[:20], "coco"), (COCO[:19], ""), ((*COCO, "dragon"), ""), ((), "")],
)
def test_a_set_is_told_by_many_labels_and_none_besides(labels: tuple[str, ...], expected: str) -> None:
    assert set_of(labels) == expected
