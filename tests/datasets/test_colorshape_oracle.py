"""The truth oracle on hand-made scenes: what it calls true, false, and outside its grammar."""

import pytest

from pairwright.datasets.colorshape.oracle import Verdict, judge
from pairwright.datasets.colorshape.scenes import COLOURS, Scene, SceneObject, Shape, size_of

T, F, O = Verdict.TRUE, Verdict.FALSE, Verdict.OUTSIDE  # noqa: E741 - one letter keeps the table a table


def thing(colour: str, shape: Shape, x: float, y: float, side: float) -> SceneObject:
    """An object by its centre."""
    half = side / 2
    return SceneObject(
        colour, shape, size_of(side), COLOURS.get(colour, (9, 99, 199)), (x - half, y - half, x + half, y + half)
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
def test_a_row_of_three_shapes(sentence: str, verdict: Verdict) -> None:
    """Each sentence about the row of three shapes gets the verdict of its line."""
    assert judge(sentence, ROW) is verdict


@pytest.mark.parametrize(("sentence", "verdict"), ABOUT_TWINS)
def test_twins(sentence: str, verdict: Verdict) -> None:
    """Each sentence about the scene with alike circles gets the verdict of its line."""
    assert judge(sentence, TWINS) is verdict
