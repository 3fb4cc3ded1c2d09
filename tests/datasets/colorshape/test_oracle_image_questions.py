"""The oracle's verdicts on turns that speak of the picture, of several things, or come with a format."""

import pytest

from pairwright.datasets.colorshape.oracle.statements import OracleVerdict
from pairwright.datasets.colorshape.oracle.turns import judge_turn
from pairwright.datasets.colorshape.scenes import Scene, SceneObject

SCENE = Scene(
    (
        SceneObject("red", "circle", "small", (214, 30, 36), (0.1, 0.1, 0.22, 0.22)),
        SceneObject("blue", "star", "large", (32, 84, 208), (0.35, 0.4, 0.65, 0.7)),
        SceneObject("green", "heart", "small", (34, 150, 62), (0.8, 0.8, 0.92, 0.92)),
        SceneObject("blue", "square", "small", (32, 84, 208), (0.05, 0.6, 0.17, 0.72)),
        SceneObject("blue", "square", "large", (32, 84, 208), (0.7, 0.55, 0.98, 0.78)),
    )
)
T, F, O = OracleVerdict.TRUE, OracleVerdict.FALSE, OracleVerdict.OUTSIDE  # noqa: E741 - short names in tables in the table
SHORT = "\nAnswer the question using a single word or phrase."
COLOUR = "What color is the circle?\nA. Blue\nB. Red\nC. Green\nD. Black"
LETTER = "\nAnswer with the option's letter from the given choices directly."


@pytest.mark.parametrize(
    ("question", "answer", "verdict"),
    [
        ("Is the circle in the left or the right half of the image?", "The circle is in the left half of the image.", T),
        ("Is the circle in the left or the right half of the image?", "The circle is in the right half of the image.", F),
        ("Is the circle in the left or the right half of the image?", "The circle is in the upper half of the image.", O),
        ("In which half of the image is the circle, the upper or the lower one?" + SHORT, "Upper", T),
        ("In which half of the image is the star, the left or the right one?" + SHORT, "Both", T),
        ("In which half of the image is the heart, the left or the right one?" + SHORT, "Both", F),
        ("Which half of the picture are the two squares in, the upper or the lower one?", "The two squares are in the lower half of the image.", T),
        ("Which half of the picture are the three squares in, the upper or the lower one?", "The three squares are in the lower half of the image.", O),
        ("Does the star take up more than a quarter of the width of the image?", "Yes, the star takes up more than a quarter of the width of the image.", T),
        ("Does the star take up more than half of the width of the image?", "Yes", F),
        ("In the picture, does the star extend over more than half of the height?", "No, the star takes up less than half of the height of the image.", T),
        ("Does the star take up more than half of the width of the image?", "No, the star takes up less than a third of the width of the image.", O),
        ("Are there more squares than stars in the image?", "Yes, there are more squares than stars.", T),
        ("Are there more squares than stars in the image?", "No, there are fewer squares than stars.", F),
        ("Can you see more stars than squares in the picture?", "No", T),
        ("Which is furthest to the left in the image: the circle, the star or the heart?", "The circle is furthest to the left.", T),
        ("Which is furthest to the right in the image: the circle, the star or the heart?", "The star is furthest to the right.", F),
        ("Which of these is the largest in the picture: the circle, the star or the heart?", "In the image, the star is the largest.", T),
        ("Which of these is the largest in the picture: the circle, the star or the heart?", "The heart", F),
        ("Are the two squares side by side or one above the other in the image?", "In the image, the two squares are side by side.", T),
        ("Are the two squares side by side or one above the other in the image?", "One above the other", F),
        ("Which square is larger in the image, the left or the right one?", "In the image, the right square is larger.", T),
        ("Of the two squares, which one is smaller in the picture, the left or the right one?" + SHORT, "The right one", F),
        ("Which is larger in the image, the circle or the star?" + SHORT, "The star", T),
        ("Which one is smaller in the picture, the circle or the star?" + SHORT, "The star", F),
        ("Is the largest of the squares in the left or the right half of the image?", "The largest of the squares is in the right half of the image.", T),
        ("In which half of the picture is the largest of the squares, the left or the right one?" + SHORT, "Left", F),
        ("Does the image show a cross or a circle?", "The image shows a circle.", T),
        ("Which can be seen in the image, a cross or a circle?", "The image shows a cross.", F),
        ("Which of the two does the picture show, squares or crosses?" + SHORT, "Squares", T),
        ("Does the image show a star or a circle?", "The image shows a star.", F),
        ("How many crosses are there in the image?" + SHORT, "0", T),
        ("How many stars are there in the image?" + SHORT, "0", F),
        ("How many squares are there in the image?" + SHORT, "2", T),
        ("What color is the circle?" + SHORT, "Red", T),
        ("Is the star nearer to the top or the bottom edge of the image?", "The star is nearer to the bottom edge of the image.", T),
        ("Which edge of the picture is the star nearer to, the top or the bottom one?", "The star is nearer to the top edge of the image.", F),
        ("How many of the two squares are entirely in the lower half of the image?", "Two of the two squares are entirely in the lower half of the image.", T),
        ("Of the two squares, how many are entirely in the upper half of the picture?", "Neither of the two squares is entirely in the upper half of the image.", T),
        ("Of the two squares, how many are entirely in the upper half of the picture?" + SHORT, "1", F),
        ("How many of the three squares are entirely in the lower half of the image?", "Two of the three squares are entirely in the lower half of the image.", O),
        ("Which takes up more of the width of the image, the circle or the star?", "The star takes up more of the width of the image.", T),
        ("Which of the two extends over more of the height of the picture, the circle or the star?" + SHORT, "The circle", F),
        ("Do any of the squares reach the left edge of the image?", "No, none of the squares reaches the left edge of the image.", T),
        ("Does one of the squares extend to the left edge of the picture?", "Yes", F),
        (COLOUR + LETTER, "B", T),
        (COLOUR + LETTER, "A", F),
        (COLOUR + LETTER, "E", O),
        ("Which of these can be seen in the image?\nA. Cross\nB. Star\nC. Triangle\nD. Heart" + LETTER, "B", O),
        ("Which of these can be seen in the image?\nA. Cross\nB. Star\nC. Triangle" + LETTER, "B", T),
    ],
)  # fmt: skip
def test_the_verdict(question: str, answer: str, verdict: OracleVerdict) -> None:
    assert judge_turn(question, answer, SCENE) is verdict
