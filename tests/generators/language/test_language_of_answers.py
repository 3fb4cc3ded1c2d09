"""Detection of answers in another language than their question."""

import json
from itertools import islice
from pathlib import Path

import pytest

from pairwright.generators.language.identification import answers_in_other_language

ASKED = "What is the dog doing on the beach?"


@pytest.mark.parametrize(
    "answer",
    [
        "El perro está corriendo por la playa con una pelota en la boca.",
        "Der Hund rennt am Strand entlang und trägt einen roten Ball im Maul.",
        "Le chien court le long de la plage avec une balle rouge dans la gueule.",
        "O cachorro está correndo na praia com uma bola vermelha.",
        "Собака бежит по пляжу.",
        "狗在海滩上奔跑。",
        "犬は浜辺を走っています。",
        "الكلب يركض على الشاطئ",
    ],
)
def test_an_answer_in_another_language_is_detected(answer: str) -> None:
    assert answers_in_other_language(answer, ASKED)


def test_a_question_in_another_language_than_its_answer_is_detected() -> None:
    assert answers_in_other_language(
        "The dog is running along the beach.", "¿Qué está haciendo el perro en esta playa?"
    )


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (ASKED, "It is running."),
        (ASKED, "Donuts, cupcakes, croissants, bagels and doughnuts."),
        (ASKED, 'The sign says "Zutritt für Hunde am Strand verboten, bitte nicht füttern".'),
        (ASKED, "It was photographed by Anna Schmidt in Garmisch Partenkirchen, Bavaria."),
        (ASKED, "Yes"),
        ("¿Qué está haciendo el perro?", "El perro está corriendo por la playa con una pelota."),
        ("狗在做什么?", "狗在海滩上奔跑。"),
        (ASKED, "..."),
    ],
)
def test_an_answer_in_the_language_of_its_question_is_kept(question: str, answer: str) -> None:
    assert not answers_in_other_language(answer, question)


def test_names_of_dishes_are_not_a_language() -> None:
    answer = "Bibimbap, kimchi, japchae, tteokbokki, bulgogi and mandu are served."
    assert not answers_in_other_language(answer, "What is on the table in front of her?")


def test_words_of_the_captions_are_not_a_language() -> None:
    captions = ["A sign to the Fußgängerzone und Straßenbahn beside a street."]
    assert not answers_in_other_language(
        "To the Fußgängerzone und Straßenbahn.", "Where does the sign point?", captions
    )
    assert answers_in_other_language("Zur Fußgängerzone und zur Straßenbahn geht es dort.", "Where to?", captions)


def test_two_languages_of_one_script_are_distinguished() -> None:
    assert answers_in_other_language("Der Hund rennt am Strand entlang.", "¿Qué está haciendo el perro en esta playa?")


def test_no_real_caption_is_taken_for_another_language(real_data: Path) -> None:
    with (real_data / "coco_captions" / "captions.jsonl").open() as rows:
        captions = [caption for row in islice(rows, 2_000) for caption in json.loads(row)["captions"]]
    assert sum(answers_in_other_language(caption, ASKED) for caption in captions) <= len(captions) // 1_000
