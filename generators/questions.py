"""The wordings of template conversations: our own lists of instructions, questions and answers.

Each kind of question has several wordings of the same meaning; one is drawn a turn. Answers have one wording a kind:
a full sentence that says again what was asked, so that it can be checked on its own. Fields: `noun` and `nouns` are a
label in singular and plural, `a_noun` carries its article, `thing` and `other` are labels, `answer_relation` is
"to the left of" and the like.
"""

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
)
ARE_THERE_ANY = (
    "Are there any {nouns} in the image?",
    "Can you see any {nouns} in the image?",
    "Are any {nouns} visible in the picture?",
    "Does the image show any {nouns}?",
)
YES_ONE = "Yes, there is {a_noun}."
YES_ANY = "Yes, there are {nouns}."
YES_MASS = "Yes, there is {nouns}."
YES_MANY = "Yes, there are {count} {nouns}."
NO_ONE = "No, there is no {noun}."
NO_MANY = "No, there are no {nouns}."

HOW_MANY = (
    "How many {nouns} are there in the image?",
    "How many {nouns} can you see in the image?",
    "How many {nouns} are in the picture?",
    "How many {nouns} does the image show?",
)
COUNT_ONE = "There is one {noun}."
COUNT_MANY = "There are {count} {nouns}."

WHAT_COLOUR = (
    "What color is the {noun}?",
    "What is the color of the {noun}?",
    "What color is the {noun} in the image?",
    "Which color does the {noun} have?",
)
COLOUR = "The {noun} is {colour}."

WHERE = (
    "Where is the {thing} relative to the {other}?",
    "Where is the {thing} in relation to the {other}?",
    "Where is the {thing} in the image relative to the {other}?",
    "Where in the picture is the {thing} relative to the {other}?",
)
PLACE = "The {thing} is {answer_relation} the {other}."

IS_IT_THERE = (
    "Is the {thing} {asked_relation} the {other}?",
    "In the image, is the {thing} {asked_relation} the {other}?",
)
YES_PLACE = "Yes, the {thing} is {answer_relation} the {other}."
NO_PLACE = "No, the {thing} is {answer_relation} the {other}."

WHICH_LARGER = (
    "Which is larger in the image, the {thing} or the {other}?",
    "Which one is larger in the picture, the {thing} or the {other}?",
)
WHICH_SMALLER = (
    "Which is smaller in the image, the {thing} or the {other}?",
    "Which one is smaller in the picture, the {thing} or the {other}?",
)
# Boxes tell sizes in the picture, not in the world: a clock near the camera is no larger than a house.
LARGER = "In the image, the {larger} is larger than the {smaller}."
SMALLER = "In the image, the {smaller} is smaller than the {larger}."
