"""Templates of the instructions, questions and answers of template conversations.

Each kind of question has several wordings of the same meaning, of which one is drawn for each turn. Answers have one
wording: a full sentence that repeats the question, so that it can be checked by itself. Fields: `noun` and `nouns` are a
label in singular and plural, `a_noun` has its article, `thing` and `other` follow "the" ("dog", "two dogs"), `verb` is
"is" or "are", `answer_relation` is "to the left of" and the like.
"""

from typing import Literal

PromptPlace = Literal["below", "behind", "above"]  # position of the response-format prompt relative to the question
PromptTurns = Literal["each", "first"]
MAX_TURNS = 24  # of a conversation, by default

BRIEF = (
    "Describe the image briefly.",
    "Give a short description of the image.",
    "Give a one-sentence summary of the image.",
    "What does the image show, in a few words?",
    "Write a brief caption for the image.",
    "Tell me about the image in one short sentence.",
    "Describe what you see in one sentence.",
    "What can be seen in the image? Keep it short.",
    "Summarize the content of the picture.",
    "Provide a concise description of the picture.",
    "Summarize the picture in one sentence.",
    "What is shown in the picture, in brief?",
)

IS_THERE_ONE = (
    "Is there {a_noun} in the image?",
    "Can you see {a_noun} in the image?",
    "Is {a_noun} visible in the picture?",
    "Does the image show {a_noun}?",
    "Does the picture contain {a_noun}?",
)
ARE_THERE_ANY = (
    "Are there any {nouns} in the image?",
    "Can you see any {nouns} in the image?",
    "Are any {nouns} visible in the picture?",
    "Does the image show any {nouns}?",
    "Does the picture contain any {nouns}?",
)
IS_THERE_SOME = (
    "Is there any {noun} in the image?",
    "Can you see any {noun} in the image?",
    "Is any {noun} visible in the picture?",
    "Does the image show any {noun}?",
)
YES_ONE = "Yes, there is {a_noun}."
YES_ANY = "Yes, there are {nouns}."
YES_MASS = "Yes, there is {noun}."
NO_ONE = "No, there is no {noun}."
NO_MANY = "No, there are no {nouns}."

ONE_OR_OTHER = (
    "Does the image show {one} or {two}?",
    "Which can be seen in the image, {one} or {two}?",
    "Which of the two does the picture show, {one} or {two}?",
)
SHOWS = "The image shows {shown}."

HOW_MANY = (
    "How many {nouns} are there in the image?",
    "How many {nouns} can you see in the image?",
    "How many {nouns} are in the picture?",
    "How many {nouns} does the image show?",
    "What is the number of {nouns} in the image?",
)
COUNT_ONE = "There is one {noun}."
COUNT_MANY = "There are {count} {nouns}."
COUNT_NONE = "There are no {nouns}."

MORE_THAN = (
    "Are there more {nouns} than {others} in the image?",
    "Does the image show more {nouns} than {others}?",
    "Can you see more {nouns} than {others} in the picture?",
)
YES_MORE = "Yes, there are more {nouns} than {others}."
NO_FEWER = "No, there are fewer {nouns} than {others}."

WHAT_COLOUR = (
    "What color is the {noun}?",
    "What is the color of the {noun}?",
    "What color is the {noun} in the image?",
    "Which color does the {noun} have?",
)
COLOUR = "The {noun} is {colour}."

MADE_OF = (
    "What is the {noun} made of?",
    "What material is the {noun} made of?",
    "Which material is the {noun} made of?",
)
IS_MADE_OF = "The {noun} is made of {material}."

DOING = ("What {verb} the {noun} doing?", "What {verb} the {noun} doing in the image?")
ACTING = ("What {verb} the {noun} {action}?", "What {verb} the {noun} {action} in the image?")
DOES = "The {noun} {verb} {action}{rest}."
WHERE_IS = ("Where is the {noun}?", "Where is the {noun} in the image?", "Where in the image is the {noun}?")
IS_WHERE = "The {noun} is {place}."
SETTING = (
    "Where was the picture taken?",
    "Where does the scene take place?",
    "What kind of place does the image show?",
    "Which place is shown in the picture?",
)
TAKES_PLACE = "The scene takes place {place}."

WHERE = (
    "Where is the {thing} relative to the {other}?",
    "Where is the {thing} in relation to the {other}?",
    "Where is the {thing} in the image relative to the {other}?",
    "Where in the picture is the {thing} relative to the {other}?",
)
PLACE = "The {thing} is {answer_relation} the {other}."

IS_IT_THERE = (
    "{Verb} the {thing} {asked_relation} the {other}?",
    "In the image, {verb} the {thing} {asked_relation} the {other}?",
    "{Verb} the {thing} {asked_relation} the {other} in the image?",
)
YES_PLACE = "Yes, the {thing} {verb} {answer_relation} the {other}."
NO_PLACE = "No, the {thing} {verb} {answer_relation} the {other}."

IS_ONE_THERE = (
    "Is there {a_noun} {relation} the {other}?",
    "Can you see {a_noun} {relation} the {other}?",
    "Is there {a_noun} {relation} the {other} in the image?",
)
ONE_IS_THERE = "Yes, there is {a_noun} {relation} the {other}."
NONE_IS_THERE = "No, there is no {noun} {relation} the {other}."

LEFT_OR_RIGHT = (
    "{Verb} the {thing} in the left or the right half of the image?",
    "In which half of the image {verb} the {thing}, the left or the right one?",
    "Which half of the picture {verb} the {thing} in, the left or the right one?",
)
UPPER_OR_LOWER = (
    "{Verb} the {thing} in the upper or the lower half of the image?",
    "In which half of the image {verb} the {thing}, the upper or the lower one?",
    "Which half of the picture {verb} the {thing} in, the upper or the lower one?",
)
IN_HALF = "The {thing} {verb} in the {half} half of the image."
ACROSS_HALVES = "The {thing} extends over both the {first} and the {second} half of the image."
IN_BOTH_HALVES = "The {thing} are spread over both the {first} and the {second} half of the image."

WHERE_IS_LARGEST = (
    "Is the largest of the {nouns} in the {first} or the {second} half of the image?",
    "In which half of the picture is the largest of the {nouns}, the {first} or the {second} one?",
)
LARGEST_IS_IN = "The largest of the {nouns} is in the {half} half of the image."

DOES_IT_TAKE_UP = (
    "Does the {thing} take up more than {part} of the {extent} of the image?",
    "In the picture, does the {thing} extend over more than {part} of the {extent}?",
)
TAKES_UP = "Yes, the {thing} takes up more than {part} of the {extent} of the image."
TAKES_UP_LESS = "No, the {thing} takes up less than {part} of the {extent} of the image."

IS_IT_AT_EDGE = (
    "Does the {thing} reach the {edge} edge of the image?",
    "Does the {thing} extend to the {edge} edge of the picture?",
)
AT_EDGE = "Yes, the {thing} reaches the {edge} edge of the image."
NOT_AT_EDGE = "No, the {thing} does not reach the {edge} edge of the image."

IS_ANY_AT_EDGE = (
    "Do any of the {nouns} reach the {edge} edge of the image?",
    "Does one of the {nouns} extend to the {edge} edge of the picture?",
)
ONE_AT_EDGE = "Yes, at least one of the {nouns} reaches the {edge} edge of the image."
NONE_AT_EDGE = "No, none of the {nouns} reaches the {edge} edge of the image."

NEARER_EDGE = (
    "Is the {thing} nearer to the {first} or the {second} edge of the image?",
    "Which edge of the picture is the {thing} nearer to, the {first} or the {second} one?",
)
IS_NEARER = "The {thing} is nearer to the {side} edge of the image."

HOW_MANY_IN_HALF = (
    "How many of the {size} {nouns} are entirely in the {half} half of the image?",
    "Of the {size} {nouns}, how many are entirely in the {half} half of the picture?",
)
ARE_IN_HALF = "{count} of the {size} {nouns} {verb} entirely in the {half} half of the image."

WHICH_EXTENDS = (
    "Which takes up more of the {extent} of the image, the {thing} or the {other}?",
    "Which of the two extends over more of the {extent} of the picture, the {thing} or the {other}?",
)
EXTENDS_MORE = "The {first} takes up more of the {extent} of the image."

FURTHEST = (
    "Which is furthest to the {side} in the image: the {one}, the {two} or the {three}?",
    "Which of these is furthest to the {side} in the picture: the {one}, the {two} or the {three}?",
)
IS_FURTHEST = "The {first} is furthest to the {side}."
LARGEST = (
    "Which is the largest in the image: the {one}, the {two} or the {three}?",
    "Which of these is the largest in the picture: the {one}, the {two} or the {three}?",
)
IS_LARGEST = "In the image, the {first} is the largest."

ARRANGED = (
    "Are the two {nouns} side by side or one above the other in the image?",
    "How are the two {nouns} arranged in the picture, side by side or one above the other?",
)
IS_ARRANGED = "In the image, the two {nouns} are {arranged}."
WHICH_TWIN = (
    "Which {noun} is {size} in the image, the {first} or the {last} one?",
    "Of the two {nouns}, which one is {size} in the picture, the {first} or the {last} one?",
)
THIS_TWIN = "In the image, the {side} {noun} is {size}."

WHICH_LARGER = (
    "Which is larger in the image, the {thing} or the {other}?",
    "Which one is larger in the picture, the {thing} or the {other}?",
)
WHICH_SMALLER = (
    "Which is smaller in the image, the {thing} or the {other}?",
    "Which one is smaller in the picture, the {thing} or the {other}?",
)
# Boxes give sizes in the image, not in the world: a clock near the camera is not larger than a house.
LARGER = "In the image, the {larger} is larger than the {smaller}."
SMALLER = "In the image, the {smaller} is smaller than the {larger}."

WHICH_PRESENT = (
    "Which of these can be seen in the image?",
    "Which of these does the image show?",
    "Which of these is in the picture?",
)

# Response-format prompts of LLaVA-1.5.
SHORT_FORMAT = "Answer the question using a single word or phrase."
CHOICE_FORMAT = "Answer with the option's letter from the given choices directly."
