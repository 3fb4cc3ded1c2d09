"""The truth oracle on hand-made scenes: what it calls true, false, and outside its grammar."""

from collections.abc import Callable
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pairwright.datasets.colorshape.captions import generate_captions
from pairwright.datasets.colorshape.oracle.statements import OracleVerdict, judge
from pairwright.datasets.colorshape.oracle.turns import judge_turn
from pairwright.datasets.colorshape.scenes import (
    COLOURS,
    SHAPES,
    Scene,
    SceneObject,
    Shape,
    make_scene,
    mirror_scene,
    size_word,
)
from pairwright.datasets.colorshape.toy_set import generate_toy_set
from tests.example_counts import examples

T, F, O = OracleVerdict.TRUE, OracleVerdict.FALSE, OracleVerdict.OUTSIDE  # noqa: E741 - one letter keeps the table a table


def thing(colour: str, shape: Shape, x: float, y: float, side: float) -> SceneObject:
    """An object by its centre."""
    half = side / 2
    return SceneObject(
        colour, shape, size_word(side), COLOURS.get(colour, (9, 99, 199)), (x - half, y - half, x + half, y + half)
    )


# One row: a large red circle, a small blue square, a small orange star; the square and the star are near.
ROW = Scene(
    (
        thing("red", "circle", 0.20, 0.50, 0.30),
        thing("blue", "square", 0.65, 0.50, 0.12),
        thing("orange", "star", 0.85, 0.50, 0.12),
    )
)
# Twins: two small red circles side by side at the top, a large red circle and a large green heart below them.
TWINS = Scene(
    (
        thing("red", "circle", 0.15, 0.15, 0.12),
        thing("red", "circle", 0.85, 0.15, 0.12),
        thing("red", "circle", 0.20, 0.75, 0.30),
        thing("green", "heart", 0.80, 0.75, 0.30),
    )
)

ABOUT_ROW = [
    # what is denied at the end
    ("a red circle with no heart", T),
    ("a red circle with no star in sight", F),
    ("a red circle without a heart in sight.", T),
    ("a red circle without a star", F),
    ("the circle is to the left of the square, without any hearts in the image", T),
    ("the circle is to the left of the square without any squares", F),
    ("there is a blue square, and there is no heart in sight", T),
    ("there is a blue square, and there is not a circle in sight", F),
    ("the circle is to the right of the square, and there are no hearts", F),
    ("a red circle, but no heart", T),
    ("a red circle without", O),
    ("a red circle without no heart", O),
    ("a red circle with any heart", O),
    ("a red circle not in sight", O),
    # what is there
    ("a red circle", T),
    ("A large red circle.", T),
    ("a big red circle", T),
    ("a red large circle", T),
    ("a large, red circle", T),
    ("  a   RED circle ", T),
    ("a small red circle", F),
    ("a tiny blue square", T),
    ("a medium red circle", F),
    ("a blue circle", F),
    ("a circle", T),
    ("a shape", T),
    ("an orange object", T),
    ("a heart", F),
    ("a pink hexagon", F),
    ("a grey circle", F),
    ("an orange star", T),
    ("red circle and blue square", T),
    ("red circle above blue square", F),
    # what is a matter of opinion is not judged, unless nothing hangs on it
    ("a crimson circle", O),
    ("a crimson square", F),
    ("a huge circle", O),
    ("a huge square", F),
    ("a rectangle", O),
    ("a red rectangle", F),
    ("an oval", O),
    ("a blue oval", F),
    # counts
    ("one circle", T),
    ("1 circle", T),
    ("a single circle", T),
    ("two circles", F),
    ("circles", F),
    ("three shapes", T),
    ("3 objects", T),
    ("exactly three objects", T),
    ("four shapes", F),
    ("two small shapes", T),
    ("small shapes", T),
    ("two small shapes and a large circle", T),
    ("two small shapes and a star", F),
    ("no triangle", T),
    ("no triangles", T),
    ("no circles", F),
    ("a circle and no triangles", T),
    ("a circle and no stars", F),
    # lists
    ("a red circle and a blue square", T),
    ("a blue square and a red circle", T),
    ("a blue circle and a red square", F),
    ("a red circle, a blue square and an orange star", T),
    ("a red circle, a blue square, and an orange star", T),
    ("a red circle, a blue square, an orange star", T),
    ("a red circle and a blue square and an orange star", T),
    ("a circle with a square", T),
    ("a circle as well as a star", T),
    ("a circle and a red circle", F),
    ("a circle and a shape", T),
    ("a circle, a shape and a shape", T),
    ("a circle, a shape, a shape and a shape", F),
    ("a circle and another circle", F),
    # frames
    ("a picture of a red circle", T),
    ("an image showing a red circle and a blue square", T),
    ("The image shows a red circle.", T),
    ("this is a picture of a blue circle", F),
    ("this is a red circle", T),
    ("you can see a red circle", T),
    ("a drawing of three shapes", T),
    ("In the image, there is a red circle.", T),
    ("in this picture there is a heart", F),
    ("There is a red circle in the image.", T),
    ("picture of a red circle", T),
    ("image of red circle and blue square", T),
    # there is
    ("there is a red circle", T),
    ("there's a red circle", T),
    ("There is a red circle and a blue square.", T),
    ("there are a circle and a square", T),
    ("there are two small shapes and a red circle", T),
    ("there are no triangles", T),
    ("there is no circle", F),
    ("there is not a triangle", T),
    ("There isn't a red circle.", F),
    ("there aren't any hearts", T),
    ("there are not any stars", F),
    ("there is no red square to the left of the star", T),
    ("there is no blue square to the left of the star", F),
    ("there is no circle to the left of the triangle", F),  # the triangle does not exist
    ("Yes, there is a red circle.", T),
    ("No, there are no triangles.", T),
    # relations
    ("a large red circle to the left of a small blue square", T),
    ("a circle left of a star", T),
    ("a circle on the left of a star", T),
    ("a circle to the right of a star", F),
    ("a star to the right of a square", T),
    ("the star is right of the circle", T),
    ("a circle above a square", F),
    ("a circle below a square", F),
    ("a square next to a star", T),
    ("a square beside a star", T),
    ("a circle next to a star", F),
    ("a circle far from a star", T),
    ("a square far from a star", F),
    ("a circle near a square", O),  # 0.24 lies between near and not near
    ("a square between a circle and a star", T),
    ("a circle between a square and a star", F),
    ("a square inside a circle", F),
    ("a circle to the left of a circle", F),
    ("a circle to the left of a square and a star", T),
    ("a circle to the left of a square to the left of a star", T),
    ("a square that is to the left of the star", T),
    ("a square to the right of the circle and to the left of the star", T),
    ("a star to the left of a square and a circle", F),
    ("a square and a star to the right of the circle", T),
    ("a circle to the left of two small shapes", T),
    ("two small shapes to the right of a circle", T),
    # sizes compared
    ("the circle is larger than the square", T),
    ("the circle is bigger than the star", T),
    ("the square is larger than the circle", F),
    ("the square is smaller than the circle", T),
    ("the square is larger than the star", F),
    ("a circle larger than a square", T),
    ("the square is the same size as the star", T),
    ("the square is as large as the circle", F),
    ("the circle is the same color as the star", F),
    # clauses
    ("the circle is red", T),
    ("the circle is blue", F),
    ("the circle is not blue", T),
    ("the circle isn't red", F),
    ("the red shape is a circle", T),
    ("the red shape is a square", F),
    ("the circle is large and red", T),
    ("the circle is red and to the left of the square", T),
    ("The circle is red and the square is blue.", T),
    ("The circle is red, and the square is green.", F),
    ("a circle is red while a star is orange", T),
    ("the small shape is blue", F),  # there are two
    ("the triangle is red", F),
    ("the square and the star are small", T),
    ("the square and the circle are small", F),
    ("every small shape is to the right of the circle", T),
    ("all the small shapes are blue", F),
    ("A red circle is to the left of a star. There is a square.", T),
    ("A red circle is to the left of a star. There is a heart.", F),
    ("the circle is located to the left of the star", T),
    # bad English and what the grammar does not know
    ("", O),
    (".", O),
    ("a circle..", O),
    ("two circle", O),
    ("a circles", O),
    ("an circle", O),
    ("a orange star", O),
    ("an red circle", O),
    ("a red red circle", O),
    ("a red blue circle", O),
    ("a large small circle", O),
    ("a a circle", O),
    ("circle a red", O),
    ("a red", O),
    ("there is two stars", O),
    ("there are a circle", O),
    ("there is circle", O),
    ("there is circles", O),
    ("there are no circle", O),
    ("the circles is red", O),
    ("the circle are red", O),
    ("circle is red", O),
    ("a circle and square is red", O),
    ("a dog", O),
    ("a circle chasing a square", O),
    ("a circle to the left a square", O),
    ("a circle to left of a square", O),
    ("a circle to the left of", O),
    ("to the left of a square", O),
    ("a circle and", O),
    ("and a circle", O),
    ("a circle, and", O),
    ("a circle and a square, a star", O),
    ("a red circle and a blue square or a star", O),
    ("a image of a circle", O),
    ("a picture of", O),
    ("a picture of a film of a circle", O),
    ("red circle and a blue square", O),
    ("a red circle and blue square", O),
    ("two small shapes and red circle", O),
    ("three shapes, shapes", O),
    ("is there a red circle", O),
    ("eleven circles", O),
    ("a circle; DROP TABLE", O),
    ("un círculo rojo", O),
    ("🙂", O),
    ("yes", O),
    ("exactly a circle", O),
]

ABOUT_TWINS = [
    ("two small red circles", T),
    ("two red circles", F),  # there are three
    ("three red circles", T),
    ("a red circle", T),
    ("a red circle and a red circle", T),
    ("a small red circle and another small red circle", T),
    ("a small circle, a small circle and a small circle", F),
    ("red circles and a green heart", T),
    ("green hearts", F),
    ("two small circles above a heart", T),
    ("two small circles next to a heart", F),
    ("the small circles are above the heart", T),
    ("the two small circles are red", T),
    ("the three circles are red", T),
    ("the two circles are red", F),
    ("the circles are small", F),
    ("two circles are small", O),  # exactly two circles, or two of the three?
    ("three circles are small", F),
    ("all circles are red", T),
    ("all the circles are to the left of the heart", F),
    ("a circle to the right of the heart", T),
    ("the circle is red", F),
    ("the large circle is red", T),
    ("the large circle is to the left of the green heart", T),
    ("the heart is next to the large circle", F),
    ("the heart is to the left of the large circle", F),
    ("a circle to the left of a circle", T),
    ("a large circle to the right of a circle", T),  # by 0.05, the margin itself
    ("a small circle above a small circle", F),
    ("there are two small circles and a heart", T),
    ("there is a heart between two small circles", F),
    ("two crimson circles", O),
    ("four crimson circles", F),
    ("a large circle and a small heart", F),
    # true of the heart alone, false of heart and circle together: two readings, no verdict
    ("a small circle to the left of a heart and a large circle", T),
    ("a large circle below a small circle and a heart", O),
    ("a heart and a small circle above a large circle", T),
]


@pytest.mark.parametrize(("sentence", "verdict"), ABOUT_ROW)
def test_a_row_of_three_shapes(sentence: str, verdict: OracleVerdict) -> None:
    """Each sentence about the row of three shapes gets the verdict of its line."""
    assert judge(sentence, ROW) is verdict


@pytest.mark.parametrize(("sentence", "verdict"), ABOUT_TWINS)
def test_twins(sentence: str, verdict: OracleVerdict) -> None:
    """Each sentence about the scene with alike circles gets the verdict of its line."""
    assert judge(sentence, TWINS) is verdict


@pytest.mark.parametrize("scenes", [range(300), pytest.param(range(300, 2000), marks=pytest.mark.slow)])
def test_every_caption_is_true_of_its_scene(scenes: range) -> None:
    for index in scenes:
        scene = make_scene(11, index)
        for caption in generate_captions(scene, 11, index):
            assert judge(caption, scene) is T, (index, caption)


@settings(deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 10**6))
def test_every_caption_is_true_of_its_scene_for_any_seed(seed: int, index: int) -> None:
    scene = make_scene(seed, index)
    assert {judge(caption, scene) for caption in generate_captions(scene, seed, index)} == {T}


def test_a_scene_in_the_mirror_swaps_left_and_right() -> None:
    """What is left in a scene is right in its mirror image; above, near and larger stay as they are."""
    relations = {
        "to the left of": "to the right of",
        "right of": "left of",
        "above": "above",
        "near": "near",
        "larger than": "larger than",
    }
    for index in range(150):
        scene = make_scene(12, index)
        a, b = scene.objects[:2]
        for relation, other in relations.items():
            said, reflected = (f"a {a.size} {a.shape} {word} a {b.size} {b.shape}" for word in (relation, other))
            assert judge(said, scene) is judge(reflected, mirror_scene(scene))


def _gap(a: SceneObject, b: SceneObject) -> float:
    x = max(a.box[0] - b.box[2], b.box[0] - a.box[2], 0)
    y = max(a.box[1] - b.box[3], b.box[1] - a.box[3], 0)
    return round(float((x**2 + y**2) ** 0.5), 6)


PLAIN: dict[str, Callable[[SceneObject, SceneObject], bool]] = {
    "left of": lambda a, b: round(b.centre[0] - a.centre[0], 6) >= 0.05,
    "right of": lambda a, b: round(a.centre[0] - b.centre[0], 6) >= 0.05,
    "above": lambda a, b: round(b.centre[1] - a.centre[1], 6) >= 0.05,
    "below": lambda a, b: round(a.centre[1] - b.centre[1], 6) >= 0.05,
    "next to": lambda a, b: _gap(a, b) <= 0.15,
    "larger than": lambda a, b: round(a.area / b.area, 6) >= 1.25,
    "smaller than": lambda a, b: round(b.area / a.area, 6) >= 1.25,
}


def test_relations_agree_with_trying_every_pair_of_objects() -> None:
    """A relation between two shapes holds iff two different objects of those shapes are in that relation."""
    seen = set()
    for index in range(60):
        scene = make_scene(13, index)
        for (one, other), (phrase, holds) in product(product(SHAPES, SHAPES), PLAIN.items()):
            pairs = [
                (a, b)
                for a in scene.objects
                for b in scene.objects
                if a is not b and (a.shape, b.shape) == (one, other)
            ]
            verdict = judge(f"a {one} {phrase} a {other}", scene)
            seen.add(verdict)
            if verdict is not O:
                assert (verdict is T) is any(holds(a, b) for a, b in pairs), (index, one, phrase, other)
            else:
                assert phrase in {"next to", "larger than", "smaller than"}
    assert seen == {T, F, O}


@settings(deadline=None)
@given(st.integers(0, 3000))
def test_a_count_is_true_for_one_number_only(index: int) -> None:
    scene = make_scene(14, index)
    for shape in SHAPES:
        plural = f"{shape}es" if shape == "cross" else f"{shape}s"
        said = [
            f"there are no {plural}",
            f"there is one {shape}",
            *(f"there are {n} {plural}" for n in ("two", "three", "4")),
        ]
        true = [number for number, text in enumerate(said) if judge(text, scene) is T]
        assert true == [sum(item.shape == shape for item in scene.objects)]


WORDS = [
    "a",
    "an",
    "the",
    "no",
    "two",
    "1",
    "is",
    "are",
    "there",
    "not",
    "and",
    ",",
    ".",
    "with",
    "of",
    "red",
    "orange",
    "crimson",
    "large",
    "small",
    "circle",
    "circles",
    "star",
    "stars",
    "shape",
    "left",
    "right",
    "to",
    "above",
    "near",
    "between",
    "larger",
    "than",
    "that",
    "yes",
    "picture",
    "image",
    "shows",
    "in",
    "next",
    "does",
    "how",
    "many",
    "what",
    "color",
    "where",
    "or",
]


@settings(max_examples=examples(400))
@given(st.lists(st.sampled_from(WORDS), max_size=14), st.lists(st.sampled_from(WORDS), max_size=10))
def test_random_words_do_not_crash_the_oracle(words: list[str], others: list[str]) -> None:
    assert judge(" ".join(words), TWINS) in OracleVerdict
    assert judge_turn(" ".join(others), " ".join(words), TWINS) in OracleVerdict


@settings(deadline=None)
@given(st.text(max_size=80))
def test_random_texts_do_not_crash_the_oracle(text: str) -> None:
    assert judge(text, ROW) in OracleVerdict
    assert judge_turn(text, text, ROW) in OracleVerdict


def test_a_very_long_sentence_is_outside() -> None:
    assert judge(" above ".join(["a circle"] * 200), ROW) is O
    assert judge(" and ".join(["a circle"] * 12), ROW) is F
    assert judge(" above ".join(["a circle"] * 10), ROW) is O


def test_a_colour_without_a_name_is_not_judged() -> None:
    scene = next(iter(generate_toy_set(continuous=True))).scene
    assert judge("a circle", scene) is T
    assert judge("a red circle", scene) is O
    assert judge("a red square", scene) is F
