"""Tiny models evaluated on ColorShape: each metric against its definition, and refused requests."""

import io
import json
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="evaluations open models")

from PIL import Image  # noqa: E402 - behind the guard of torch

from pairwright.datasets.colorshape.toy_set import generate_toy_set, write_toy_set  # noqa: E402
from pairwright.datasets.errors import InputError, PairwrightError, UsageError  # noqa: E402
from pairwright.datasets.images.loading import decode_image, open_image  # noqa: E402
from pairwright.datasets.shards.reading import read_shard  # noqa: E402
from pairwright.filters.evaluation.crops import open_cropped  # noqa: E402
from pairwright.filters.evaluation.readers import read_captioned_images, read_hard_negatives  # noqa: E402
from pairwright.filters.evaluation.results import Metric, ModelResult  # noqa: E402
from pairwright.training.evaluation.embedding import image_sizes  # noqa: E402
from pairwright.training.evaluation.evaluated_models import identify_model, open_models  # noqa: E402
from pairwright.training.evaluation.rationales import rationale_accuracy, read_student_tasks  # noqa: E402
from pairwright.training.evaluation.tasks import EvaluationRequest, evaluate_models  # noqa: E402
from pairwright.training.loading.tokenization import load_tokenizer  # noqa: E402
from pairwright.training.models.clip import Clip  # noqa: E402
from pairwright.training.models.extended_clip import FocalLensClip, ReactClip  # noqa: E402
from pairwright.training.models.focallens_mllm import FocalLensMllm  # noqa: E402
from tests.training import tiny_models  # noqa: E402
from tests.training.training_cases import clip, shards, student  # noqa: E402


class Given(NamedTuple):
    """Shards, the toy set, and models to be measured on them."""

    data: str
    folder: Path
    toy: Path
    clip: str
    lens: str
    react: str


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Given:
    folder = tmp_path_factory.mktemp("measured")
    shards(folder / "shards", count=24)
    write_toy_set(folder / "toy", 0, 2)
    plain = clip(folder, count=24)
    torch.manual_seed(1)
    lens = FocalLensClip(Clip.load(plain))
    torch.nn.init.normal_(lens.condition.weight, std=1.0)
    lens.save(folder / "lens")
    gated = ReactClip(Clip.load(plain), 2)
    for gate in (parameter for name, parameter in gated.named_parameters() if "gate_" in name):
        torch.nn.init.constant_(gate, 1.5)
    gated.save(folder / "react")
    return Given(str(folder / "shards"), folder, folder / "toy", plain, str(folder / "lens"), str(folder / "react"))


def measured(task: str, model: str, data: object, **named: Any) -> ModelResult:
    (found,) = evaluate_models(EvaluationRequest(task, (model,), (str(data),), **named), lambda _: None)
    return found


def figures(found: ModelResult) -> dict[tuple[str, str], Metric]:
    return {(one.part, one.measure): one for one in found.found.metrics}


def seen(data: bytes, size: int = 32) -> Any:
    """Return one square image as CLIP takes it."""
    image = Image.open(io.BytesIO(data)).convert("RGB").resize((size, size), Image.Resampling.BICUBIC)
    raw = np.asarray(image, dtype=np.float32) / 255
    mean, std = (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)
    return torch.tensor(((raw - np.array(mean)) / np.array(std)).transpose(2, 0, 1), dtype=torch.float32)[None]


def embed_text(model: Clip, folder: str, text: str) -> Any:
    ids = load_tokenizer(folder)(text)["input_ids"]
    with torch.no_grad():
        return model.encode_texts(torch.tensor([ids]))[0].double().numpy()


def shown(model: Clip, data: bytes) -> Any:
    with torch.no_grad():
        return model.encode_images(seen(data))[0].double().numpy()


def test_hard_negatives_are_ranked_by_the_cosine_of_image_and_text(given: Given) -> None:
    model, counts = Clip.load(given.clip), {"accuracy": 0, "augmented": 0, "brittleness": 0}
    rows = 0
    for path in sorted(Path(given.data).glob("*.tar")):
        for sample in read_shard(path):
            texts = {one.kind: one.text for one in sample.annotations}
            if "hard_negative" not in texts:
                continue
            assert sample.image is not None
            image = shown(model, sample.image)
            c, n, p = (
                float(image @ embed_text(model, given.clip, text))
                for text in (sample.pair.caption, texts["hard_negative"], texts["hard_positive"])
            )
            rows += 1
            counts["accuracy"] += c > n
            counts["augmented"] += c > n and p > n
            counts["brittleness"] += c > n > p or p > n > c
    found = measured("negatives", given.clip, given.data)
    for name, hits in counts.items():
        assert figures(found)["all", name].value == pytest.approx(hits / rows)
        assert figures(found)["all", name].n == rows
    assert found.found.counts["samples have no hard negative and are skipped"] == 24 - rows
    assert found.as_json()["evaluation"]["rows"] == rows


def sugarcrepe(given: Given, folder: Path) -> Path:
    """Write images as files and rows that name them, as SugarCrepe does."""
    rows = {}
    for number, sample in enumerate(read_shard(Path(given.data) / "00000.tar")):
        assert sample.image is not None
        (folder / f"{number}.jpg").write_bytes(sample.image)
        caption = sample.pair.caption
        rows[str(number)] = {"filename": f"{number}.jpg", "caption": caption, "negative_caption": f"no {caption}"}
    (folder / "add_att.json").write_text(json.dumps(rows))
    (folder / "swap_obj.json").write_text(json.dumps(rows))
    return folder


def test_sugarcrepes_files_are_one_set_by_type_with_images_of_a_folder(given: Given, tmp_path: Path) -> None:
    sugarcrepe(given, tmp_path)
    data = (str(tmp_path / "add_att.json"), str(tmp_path / "swap_obj.json"))
    request = EvaluationRequest("negatives", (given.clip,), data, images=str(tmp_path), batch=7)
    (found,) = evaluate_models(request, lambda _: None)
    by = figures(found)
    assert {part for part, _ in by} == {"add-attribute", "swap-object", "all"}
    assert by["add-attribute", "accuracy"].value == by["swap-object", "accuracy"].value
    assert by["all", "accuracy"].n == 2 * by["swap-object", "accuracy"].n
    assert ("all", "augmented") not in by
    (other,) = evaluate_models(
        EvaluationRequest("negatives", (given.clip,), data, images=str(tmp_path)), lambda _: None
    )
    assert other.found.metrics == found.found.metrics


def test_two_images_and_two_captions_give_the_scores_of_winoground(given: Given, tmp_path: Path) -> None:
    model = Clip.load(given.clip)
    samples = list(read_shard(Path(given.data) / "00000.tar"))
    groups, right = [], {"text": 0, "image": 0, "group": 0}
    for number, (one, two) in enumerate(zip(samples[::2], samples[1::2], strict=False)):
        assert one.image is not None
        assert two.image is not None
        (tmp_path / f"ex_{number}_img_0.jpg").write_bytes(one.image)
        (tmp_path / f"ex_{number}_img_1.jpg").write_bytes(two.image)
        images = {f"image_{at}": f"/elsewhere/ex_{number}_img_{at}" for at in (0, 1)}
        captions = [one.pair.caption, two.pair.caption]
        groups.append({"id": number, **images, "caption_0": captions[0], "caption_1": captions[1]})
        shown_images = [shown(model, image) for image in (one.image, two.image)]
        scores = [[float(i @ embed_text(model, given.clip, c)) for c in captions] for i in shown_images]
        text = scores[0][0] > scores[0][1] and scores[1][1] > scores[1][0]
        image = scores[0][0] > scores[1][0] and scores[1][1] > scores[0][1]
        for name, hit in (("text", text), ("image", image), ("group", text and image)):
            right[name] += hit
    path = tmp_path / "examples.jsonl"
    path.write_text("".join(json.dumps(group) + "\n" for group in groups))
    found = figures(measured("negatives", given.clip, path))
    kept = [g for g in groups if g["caption_0"] != g["caption_1"]]  # equal captions are no group
    assert set(found) == {("all", name) for name in right}
    for name, hits in right.items():
        assert found["all", name].n == len(kept)
        assert found["all", name].value == pytest.approx(hits / len(kept))


def test_an_image_with_a_box_is_cropped_as_aro_does(given: Given, tmp_path: Path) -> None:
    pixels = np.zeros((40, 60, 3), dtype=np.uint8)
    pixels[10:30, 20:50] = (255, 0, 0)
    Image.fromarray(pixels).save(tmp_path / "1.png")
    Image.fromarray(pixels[10:30, 20:50]).save(tmp_path / "2.png")
    box = {"bbox_x": 20, "bbox_y": 10, "bbox_w": 30, "bbox_h": 20}
    texts = {"true_caption": "a red square", "false_caption": "a blue square", "relation_name": "on"}
    rows: list[dict[str, Any]] = [{"image_path": "1.png", **box, **texts}, {"image_path": "2.png", **texts}]
    (tmp_path / "vg.json").write_text(json.dumps(rows))
    one, two = read_hard_negatives([str(tmp_path / "vg.json")]).rows
    assert image_sizes([one.image, two.image]) == {one.image: 20, two.image: 20}
    assert decode_image(open_cropped(one.image)).tobytes() == decode_image(open_image(two.image)).tobytes()
    assert measured("negatives", given.clip, tmp_path / "vg.json").found.metrics
    (tmp_path / "vg.json").write_text(json.dumps([{**rows[0], "bbox_x": 60}]))
    with pytest.raises(InputError, match="the box is outside the image of 60 x 40"):
        measured("negatives", given.clip, tmp_path / "vg.json")


def test_a_build_is_read_as_its_shards(given: Given, tmp_path: Path) -> None:
    (tmp_path / "shards").symlink_to(given.data)
    (tmp_path / "manifest.json").write_text("{}")
    expected = read_hard_negatives([given.data]).rows
    found = read_hard_negatives([str(tmp_path)]).rows
    assert [(row.caption, row.negative) for row in found] == [(row.caption, row.negative) for row in expected]


def test_two_captions_are_also_compared_without_the_image(given: Given, tmp_path: Path) -> None:
    sugarcrepe(given, tmp_path)
    one: dict[str, Any] = {
        "id": 0,
        "filename": "0.jpg",
        "caption": "a red circle",
        "caption2": "a circle, red",
        "negative_caption": "a blue circle",
    }
    (tmp_path / "rows.json").write_text(json.dumps([one]))
    model = Clip.load(given.clip)
    c, p, n = (embed_text(model, given.clip, one[name]) for name in ("caption", "caption2", "negative_caption"))
    found = figures(measured("negatives", given.clip, tmp_path / "rows.json"))
    assert {name for _, name in found} == {"accuracy", "augmented", "brittleness", "text-only"}
    assert found["all", "text-only"].value == float(c @ p > c @ n and c @ p > p @ n)


def test_retrieval_counts_the_captions_of_one_image_together(given: Given, tmp_path: Path) -> None:
    sugarcrepe(given, tmp_path)
    rows: list[dict[str, Any]] = []
    for number, sample in enumerate(read_shard(Path(given.data) / "00000.tar")):
        for text in (sample.pair.caption, f"look : {sample.pair.caption}"):  # two rows of one image
            rows.append({"id": f"{number}-{len(rows)}", "image": f"{number}.jpg", "caption": text})
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = figures(measured("retrieval", given.clip, tmp_path / "pairs.jsonl"))
    model = Clip.load(given.clip)
    names = list(dict.fromkeys(row["image"] for row in rows))
    images = np.stack([shown(model, (tmp_path / name).read_bytes()) for name in names])
    texts = np.stack([embed_text(model, given.clip, row["caption"]) for row in rows])
    for k in (1, 5, 10):
        hits = sum(
            row["image"] in [names[place] for place in np.argsort(-(images @ text))[:k]]
            for row, text in zip(rows, texts, strict=True)
        )
        assert found["text to image", f"recall@{k}"].value == pytest.approx(hits / len(rows))
        hits = sum(
            name in [rows[place]["image"] for place in np.argsort(-(texts @ image))[:k]]
            for name, image in zip(names, images, strict=True)
        )
        assert found["image to text", f"recall@{k}"].value == pytest.approx(hits / len(names))
    assert found["text to image", "recall@1"].n == len(rows)


def test_a_class_is_the_mean_of_its_templates_brought_to_unit_length(given: Given, tmp_path: Path) -> None:
    templates, names = ["a {} circle", "the {} square", "{}"], ["red", "green", "blue", "yellow"]
    (tmp_path / "c.json").write_text(json.dumps({"classes": names, "templates": templates}))
    found = measured("zero-shot", given.clip, given.toy, by=("colour",), classes=tmp_path / "c.json")
    model, hits = Clip.load(given.clip), []
    rows = []
    for name in names:
        mean = np.mean([embed_text(model, given.clip, template.replace("{}", name)) for template in templates], axis=0)
        rows.append(mean / np.linalg.norm(mean))
    for image, sample in zip(toy_images(given), generate_toy_set(0, 2), strict=True):
        best = int(np.argmax([row @ shown(model, image) for row in rows]))
        hits.append(names[best] == sample.conditions["colour"])
    assert figures(found)["all", "accuracy"].value == pytest.approx(np.mean(hits))
    assert figures(found)["all", "mean of classes"].value == pytest.approx(np.mean(hits))  # classes of one size
    assert found.found.detail["texts"] == 12


def toy_images(given: Given) -> list[bytes]:
    with tarfile.open(given.toy / "00000.tar") as archive:
        names = [name for name in archive.getnames() if name.endswith(".jpg")]
        return [file.read() for name in names if (file := archive.extractfile(name)) is not None]


def test_conditions_embed_each_image_under_what_is_asked(given: Given) -> None:
    found = measured(
        "conditions", given.lens, given.toy, by=("shape", "rgb"), instructions={"shape": "what shape is it ?"}
    )
    lens = FocalLensClip.load(given.lens)
    asked = torch.tensor([load_tokenizer(given.lens)("what shape is it ?")["input_ids"]])
    with torch.no_grad():
        rows = np.stack([lens.encode_images(seen(image), asked)[0].numpy() for image in toy_images(given)])
    labels = [sample.conditions["shape"] for sample in generate_toy_set(0, 2)]
    precisions = []
    for query in range(len(rows)):
        order = sorted(set(range(len(rows))) - {query}, key=lambda place: -float(rows[query] @ rows[place]))
        right = [labels[place] == labels[query] for place in order]
        precisions.append(np.mean([sum(right[: k + 1]) / (k + 1) for k, hit in enumerate(right) if hit]))
    assert figures(found)["shape", "mAP"].value == pytest.approx(np.mean(precisions), abs=1e-4)
    assert not figures(found)["rgb", "rank correlation"].percent
    assert found.found.detail["instructions"]["shape"] == "what shape is it ?"


def test_a_model_that_reads_no_instruction_is_the_same_under_all(given: Given) -> None:
    one = measured("conditions", given.clip, given.toy, by=("shape",), instructions={"shape": "what ?"})
    two = measured("conditions", given.clip, given.toy, by=("shape",))
    assert one.found.metrics == two.found.metrics
    by = figures(measured("conditions", given.lens, given.toy))
    other = figures(measured("conditions", given.lens, given.toy, instructions={"shape": "red red red ?"}))
    assert by["shape", "mAP"] != other["shape", "mAP"]
    assert by["colour", "mAP"] == other["colour", "mAP"]
    assert by["mean", "mAP"].value == pytest.approx(
        np.mean([by[name, "mAP"].value for name in ("colour", "shape", "both")])
    )


def test_labels_of_shards_may_be_in_a_file_in_any_order(given: Given, tmp_path: Path) -> None:
    rows = [{"key": sample.key, "shape": sample.conditions["shape"]} for sample in generate_toy_set(0, 2)]
    (tmp_path / "l.jsonl").write_text("".join(json.dumps(row) + "\n" for row in reversed(rows)))
    found = measured("conditions", given.clip, given.toy, by=("shape",), labels=tmp_path / "l.jsonl")
    assert found.found.metrics == measured("conditions", given.clip, given.toy, by=("shape",)).found.metrics
    (tmp_path / "l.jsonl").write_text(json.dumps(rows[0]) + "\n")
    with pytest.raises(InputError, match="no labels for 31 of 32"):
        measured("conditions", given.clip, given.toy, by=("shape",), labels=tmp_path / "l.jsonl")


def test_a_focallens_mllm_is_asked_through_its_language_model(given: Given, tmp_path: Path) -> None:
    llava, target = tiny_models.llava_checkpoint(), Clip.load(given.clip)
    FocalLensMllm(llava, target, processor=tiny_models.llava_processor()).save(tmp_path / "mllm")
    found = measured(
        "conditions", str(tmp_path / "mllm"), given.toy, by=("colour",), instructions={"colour": "what colour is it ?"}
    )
    model = FocalLensMllm.load(str(tmp_path / "mllm"))
    ids = torch.tensor([[tiny_models.WORDS.index(word) for word in ("what", "colour", "is", "it", "?")]])
    with torch.no_grad():
        rows = np.stack([
            model.encode_images(seen(image, tiny_models.SIZE), ids, torch.ones_like(ids))[0].numpy()
            for image in toy_images(given)
        ])  # fmt: skip
    from pairwright.filters.metrics.retrieval_precision import mean_average_precision

    labels = [sample.conditions["colour"] for sample in generate_toy_set(0, 2)]
    assert figures(found)["colour", "mAP"].value == pytest.approx(mean_average_precision(rows, labels).map, abs=1e-4)


def test_a_student_is_asked_for_label_and_rationale_by_their_prefixes(tmp_path: Path) -> None:
    rows = []
    for number, split in enumerate(["validation"] * 3 + ["train"]):
        common = {"id": str(number), "task": "nli", "split": split}
        rows.append({**common, "objective": "label", "input": "what is it ?", "output": "red"})
        rows.append({**common, "objective": "rationale", "input": "what colour is it ?", "output": "red blue"})
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder = student(tmp_path / "student")
    network: Any = tiny_models.student()
    words = tiny_models.tokenizer()

    def said(text: str) -> str:
        ids = torch.tensor([words(text)["input_ids"]])
        answer = network.generate(inputs=ids, max_new_tokens=12, do_sample=False)
        return str(words.decode(answer[0], skip_special_tokens=True))

    subject = next(open_models([identify_model(folder)], "cpu"))
    found = rationale_accuracy(subject, *read_student_tasks([str(tmp_path / "rows.jsonl")]), batch=2, longest=12)
    by = {one.measure: one for one in found.metrics}
    assert by["label"].n == 3
    assert by["label"].value == float(said("what is it ?").split() == ["red"])
    rationale = said("what colour is it ?").split()
    shared = min(rationale.count("red"), 1) + min(rationale.count("blue"), 1)
    assert by["rationale, words (F1)"].value == pytest.approx(2 * shared / (2 + len(rationale)))
    assert found.counts == {"examples have no row of this split and are skipped": 1}
    assert len(read_student_tasks([str(tmp_path / "rows.jsonl")], split="train")[0]) == 2


def test_a_student_of_one_text_has_its_label_taken_from_it(given: Given, tmp_path: Path) -> None:
    folder = student(tmp_path / "student")
    found = measured("rationales", folder, given.data, split="train", single=True)
    assert {measure for _, measure in figures(found)} == {"label", "rationale, same text", "rationale, words (F1)"}
    assert figures(found)["all", "label"].n == 24


def test_a_damaged_shard_is_reported_without_options_of_other_commands(tmp_path: Path) -> None:
    from tests.training.training_cases import shards

    shards(tmp_path, count=4)
    tar = tmp_path / "00000.tar"
    tar.write_bytes(tar.read_bytes()[:-2048])
    with pytest.raises(InputError) as error:
        read_captioned_images([str(tar)])
    assert "truncated_tar" in str(error.value)
    assert "--on-error" not in str(error.value)


def test_invalid_requests_are_refused_before_a_model_is_opened(
    given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(*_: Any) -> None:
        raise AssertionError("opened")

    monkeypatch.setattr("pairwright.training.evaluation.evaluated_models.open_model", opened)
    with pytest.raises(UsageError, match=r"of kind student; negatives is for clip.*It supports rationales"):
        measured("negatives", student(tmp_path / "student"), given.data)
    rows = [{"caption": "a", "negative": "b", "image": f"{name}.jpg"} for name in ("x", "y")]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"x.jpg: 2 of 2 images .*--images"):
        measured("negatives", given.clip, tmp_path / "rows.jsonl")
    with pytest.raises(InputError, match="no hard negative"):
        measured("negatives", given.clip, given.toy)
    with pytest.raises(UsageError, match="What is the size"):
        measured("conditions", given.clip, given.toy, by=("size",))
    with pytest.raises(UsageError, match="one --by"):
        measured("zero-shot", given.clip, given.toy)
    with pytest.raises(InputError, match="no row of objective"):
        measured("rationales", str(tmp_path / "student"), given.data)
    with pytest.raises(PairwrightError, match=r"no such folder|cannot be found|checkpoint"):
        measured("negatives", str(tmp_path / "nowhere" / "at" / "all"), given.data)
    (tmp_path / "run.json").write_text("{}")
    with pytest.raises(InputError, match="has not ended"):
        measured("negatives", str(tmp_path), given.data)


@pytest.mark.parametrize("task", ["negatives", "zero-shot", "retrieval"])
def test_data_that_is_not_there_is_reported_whatever_its_extension(given: Given, tmp_path: Path, task: str) -> None:
    with pytest.raises(InputError, match="no such file"):
        measured(task, given.clip, tmp_path / "nowhere", by=("colour",))


@pytest.mark.parametrize("device", ["tpu", "cuda:99"])
def test_a_device_that_is_not_there_is_reported_in_one_line(given: Given, device: str) -> None:
    with pytest.raises(UsageError, match=rf"device '{device}': cannot be used"):
        measured("negatives", given.clip, given.data, device=device)


def test_long_texts_and_small_images_are_counted(given: Given, tmp_path: Path) -> None:
    Image.new("RGB", (20, 40), "red").save(tmp_path / "small.png")
    row = {"caption": "red " * 60, "negative": "blue", "image": "small.png"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n")
    counts = measured("negatives", given.clip, tmp_path / "rows.jsonl").found.counts
    assert counts == {
        "texts exceeded the model's 40 tokens and were truncated": 1,
        "images have a side below the model's 32 pixels and were enlarged": 1,
    }
