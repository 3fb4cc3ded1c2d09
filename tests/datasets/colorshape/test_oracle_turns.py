"""The truth oracle on turns: questions with answers about hand-made scenes."""

import pytest

from pairwright.datasets.colorshape.oracle.statements import OracleVerdict
from pairwright.datasets.colorshape.oracle.turns import judge_turn
from pairwright.datasets.colorshape.scenes import COLOURS, Scene, SceneObject, Shape, size_word

T, F, O = OracleVerdict.TRUE, OracleVerdict.FALSE, OracleVerdict.OUTSIDE  # noqa: E741 - one letter keeps the table a table


def thing(colour: str, shape: Shape, x: float, y: float, side: float) -> SceneObject:
    """An object by its centre."""
    half = side / 2
    return SceneObject(colour, shape, size_word(side), COLOURS[colour], (x - half, y - half, x + half, y + half))


# A large red circle on the left, two small blue squares on the right, one above the other.
SCENE = Scene(
    (
        thing("red", "circle", 0.25, 0.50, 0.30),
        thing("blue", "square", 0.75, 0.25, 0.12),
        thing("blue", "square", 0.75, 0.75, 0.12),
        thing("green", "star", 0.25, 0.10, 0.12),
    )
)

TURNS = [
    # is there ...
    ("Is there a red circle?", "Yes, there is a red circle.", T),
    ("Is there a red circle in the image?", "Yes, there is a red circle in the image.", T),
    ("Is there a red circle?", "No, there is no red circle.", F),
    ("Is there a red circle?", "Yes.", T),
    ("Is there a red circle?", "No.", F),
    ("Is there a red circle?", "There is a red circle.", T),
    ("Is there a red circle?", "Yes, there is a blue square.", O),
    ("Is there a red circle?", "Yes, there is a blue circle.", F),
    ("Is there a red circle?", "No, there is a red circle.", F),
    ("Is there a heart?", "No, there is no heart.", T),
    ("Is there a heart?", "Yes, there is a heart.", F),
    ("Is there a heart in this picture?", "No, there are no hearts in the picture.", T),
    ("Are there any hearts?", "No, there are no hearts.", T),
    ("Are there any squares?", "Yes, there are two squares.", T),
    ("Are there any squares?", "Yes, there are squares.", T),
    ("Are there any squares?", "Yes, there is a square.", T),
    ("Are there any squares?", "No, there are no squares.", F),
    ("Are there three squares?", "No, there are two squares.", T),
    ("Can you see a star?", "Yes, there is a star.", T),
    ("Can you see any hearts in the image?", "No, there are no hearts.", T),
    ("Do you see a star in the picture?", "Yes, I can see a star.", T),
    ("Does the image show a star?", "Yes, the image shows a star.", T),
    ("Does this picture contain a heart?", "No, there is no heart.", T),
    ("Is a red circle visible?", "Yes, there is a red circle.", T),
    ("Are any hearts visible in the image?", "No, there are no hearts.", T),
    ("Can you tell me if there is a star?", "Yes, there is a star.", T),
    ("In the image, is there a star?", "Yes, there is a star.", T),
    # is it so
    ("Is the circle red?", "Yes, the circle is red.", T),
    ("Is the circle blue?", "No, the circle is red.", T),
    ("Is the circle blue?", "No, the circle is not blue.", T),
    ("Is the circle blue?", "Yes, the circle is blue.", F),
    ("Is the circle to the left of the star?", "No.", T),
    ("Is the star above the circle?", "Yes, the star is above the circle.", T),
    ("Is the circle below the star?", "Yes, the circle is below the star.", T),
    ("Is the circle above the star?", "No, the circle is below the star.", T),
    ("Is the circle larger than the star?", "Yes, the circle is larger than the star.", T),
    ("Is the star bigger than the circle?", "No, the star is smaller than the circle.", T),
    ("Are the squares blue?", "Yes, the squares are blue.", T),
    ("Is it true that the circle is red?", "Yes.", T),
    ("Is the red shape a circle?", "Yes, the red shape is a circle.", T),
    # how many
    ("How many squares are there?", "There are two squares.", T),
    ("How many squares are there in the image?", "There are two squares in the image.", T),
    ("How many squares are there?", "There are three squares.", F),
    ("How many squares are there?", "There are two blue shapes.", O),
    ("How many squares are there?", "There is one circle.", O),
    ("How many squares are there?", "There are squares.", O),
    ("How many circles are there?", "There is one circle.", T),
    ("How many hearts are there?", "There are no hearts.", T),
    ("How many circles are there?", "There are no circles.", F),
    ("How many blue squares can you see?", "You can see two blue squares.", T),
    ("How many squares does the image show?", "The image shows two squares.", T),
    ("How many shapes are visible in the picture?", "There are four shapes.", T),
    ("What is the number of squares?", "There are two squares.", T),
    ("Count the squares.", "There are two squares.", T),
    ("How many squares are there?", "Two.", T),
    ("How many squares are there?", "3", F),
    # what colour, shape, size
    ("What color is the circle?", "The circle is red.", T),
    ("What colour is the circle in the picture?", "The circle is red.", T),
    ("Which color is the circle?", "The circle is blue.", F),
    ("What is the color of the circle?", "The circle is red.", T),
    ("What color does the circle have?", "The circle is red.", T),
    ("Can you tell me what color the circle is?", "The circle is red.", T),
    ("What's the colour of the circle?", "It is red.", T),
    ("What color is the circle?", "Red.", T),
    ("What color is the circle?", "Blue", F),
    ("What color is the circle?", "The large shape is red.", T),  # the same thing
    ("What color is the circle?", "The star is green.", O),
    ("What color is the circle?", "The circle is large.", O),
    ("What color is the circle?", "The circle is not blue.", O),
    ("What color is the heart?", "The heart is red.", F),
    ("What shape is the red object?", "The red object is a circle.", T),
    ("What shape is the red object?", "The red object is a star.", F),
    ("What is the shape of the green object?", "It is a star.", T),
    ("What shape is the green object?", "A star.", T),
    ("What kind of shape is the green object?", "The green object is a star.", T),
    ("What is the red object?", "The red object is a circle.", T),
    ("What size is the star?", "The star is small.", T),
    ("How big is the circle?", "The circle is large.", T),
    # where, which is larger, what is there
    ("Where is the circle relative to the star?", "The circle is below the star.", T),
    ("Where is the star in relation to the circle?", "The star is above the circle.", T),
    ("Where is the star with respect to the circle?", "The star is to the left of the circle.", F),
    ("Where is the star relative to the circle?", "The circle is below the star.", O),
    ("Where is the star relative to the circle?", "It is above the circle.", T),
    ("Where is the star relative to the circle?", "Above the circle.", T),
    ("Where is the star located relative to the circle?", "The star is above the circle.", T),
    ("Where is the star?", "The star is above the circle.", T),
    ("Where is the star relative to the circle?", "The star is larger than the circle.", O),
    ("Which is larger, the circle or the star?", "The circle is larger than the star.", T),
    ("Which is smaller, the circle or the star?", "The star is smaller than the circle.", T),
    ("Which shape is bigger: the circle or the star?", "The star is bigger than the circle.", F),
    ("Which is larger, the circle or the star?", "The circle is above the star.", O),
    ("What is above the circle?", "A star is above the circle.", T),
    ("Which object is below the star?", "The circle is below the star.", T),
    # open requests
    ("Describe the image briefly.", "A red circle and two blue squares.", T),
    ("<image>\nWrite a short caption for this picture.", "a green star above a red circle", T),
    ("What do you see in the image?", "There is a heart.", F),
    ("What is shown in the picture?", "The picture shows two blue squares and a circle.", T),
    ("Give a one-sentence summary.", "Something lovely.", O),
    # not understood
    ("Who painted this?", "A red circle.", O),
    ("", "A red circle.", O),
    ("Is there a red circle?", "", O),
    ("Is there a dog?", "No, there is no dog.", O),
]


@pytest.mark.parametrize(("question", "answer", "verdict"), TURNS)
def test_turns(question: str, answer: str, verdict: OracleVerdict) -> None:
    """Each turn about the scene gets the verdict of its line."""
    assert judge_turn(question, answer, SCENE) is verdict
