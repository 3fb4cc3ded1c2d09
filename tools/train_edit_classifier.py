"""Trains the classifier of replaced relations or objects on edits that readers marked, and writes its weights.

    python -m tools.train_edit_classifier CAPTIONS.jsonl --type relation [--marks MARKS.tsv] [--out WEIGHTS.tsv]

CAPTIONS are the pool, as for `tools.train_cloze_model`, with the ``image_id`` of each row. A row of MARKS names a caption by its
image and its number in the list of the image, the replaced and the new word or phrase (keys of the lexicon), and what a reader says
of the text: 1 or 0 for natural, and for possibly true of the image; empty if nobody read it for that. ``relation_marks.tsv`` and
``object_marks.tsv`` have marks of COCO's validation images of 2014; the texts were drawn without the classifier, or close to its
bounds. Prints the area under the
ROC curve of each label by cross-validation over images, and naturalness against truth for some bounds. Needs scikit-learn (extra
``bench``).
"""

import argparse
import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt
from sklearn.feature_extraction import DictVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.editing.pool import learn_pool, read_pairs
from pairwright.datasets.records import Pair
from pairwright.generators.captions.caption import Caption
from pairwright.generators.edits.constraints.edit_classifier import BIAS, LABELS, Feature
from pairwright.generators.edits.constraints.knowledge import Knowledge
from pairwright.generators.edits.constraints.object_classifier import object_features
from pairwright.generators.edits.constraints.proposed_edit import ProposedEdit
from pairwright.generators.edits.constraints.relation_classifier import relation_features
from pairwright.generators.edits.materials import EditMaterials
from pairwright.generators.edits.replacements import PlaceChecks, Replacements
from pairwright.generators.language.tagger import load_tagger
from pairwright.generators.language.wordnet import load_wordnet
from pairwright.generators.lexicon.tables import DATA

FEATURES: Final[dict[str, Callable[[ProposedEdit, Knowledge], Iterator[Feature]]]] = {
    "relation": relation_features,
    "object": object_features,
}
FLOOR: Final = 1e-4  # below that of every marked edit
MIN_ROWS: Final = 8  # marked edits with a feature; weights of rarer ones are noise
STRENGTH: Final = 0.002  # inverse strength of the L2 penalty, with standardised features
FOLDS: Final = 8
HEAD: Final = (
    "# Weights of edits/constraints/{0}_classifier.py, by `python -m tools.train_edit_classifier --type {0}`.\n"
)

Array = npt.NDArray[Any]


def read_marks(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table of marks."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t"))


def marked_edits(
    rows: Sequence[Mapping[str, str]], images: Mapping[str, Sequence[str]], materials: EditMaterials, target: str
) -> Iterator[tuple[Mapping[str, str], ProposedEdit]]:
    """Yield the marked edits that the rules propose today.

    Args:
        rows: of `read_marks`; those of other images are skipped.
        images: the captions of each image.
        materials: of these captions.
        target: "relation" or "object".
    """
    kind = f"replace-{target}"
    rows = [row for row in rows if row["image_id"] in images]
    captions = [images[row["image_id"]][int(row["caption"])] for row in rows]
    propose = Replacements(materials, {kind: PlaceChecks()}, FLOOR).propose
    for row, text, words in zip(rows, captions, load_tagger().tag(captions), strict=True):
        others = tuple(other for other in images[row["image_id"]] if other != text)
        [proposals] = propose([Caption(Pair("", text, captions=others), words)])[kind]
        edits = map(proposals.proposed_edit, range(len(proposals)))
        if found := next((edit for edit in edits if (edit.old, edit.new) == (row["old"], row["new"])), None):
            yield row, found


def classifier() -> Any:
    """Return an untrained classifier of one label."""
    return make_pipeline(StandardScaler(), LogisticRegression(C=STRENGTH, max_iter=1_000))


def cross_validated(features: Array, marks: Array, folds: Array) -> Array:
    """Return the probability of each row by a classifier that was trained without its fold."""
    found = np.zeros(len(marks))
    for fold in range(FOLDS):
        test = folds == fold
        found[test] = classifier().fit(features[~test], marks[~test]).predict_proba(features[test])[:, 1]
    return found


def learn_weights(features: Array, marks: Array) -> Array:
    """Return the weight of each feature as it is, not standardised, and behind them the bias."""
    scaler, regression = (step for _, step in classifier().fit(features, marks).steps)
    weights = regression.coef_[0] / scaler.scale_
    return np.append(weights, regression.intercept_[0] - weights @ scaler.mean_)


def main() -> None:
    """Train, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captions", type=Path, help="JSONL file; each row with `image_id` and the list `captions`")
    parser.add_argument("--type", choices=FEATURES, required=True, help="what the edits replace")
    parser.add_argument("--marks", type=Path, help="table of marked edits; else that of the type beside this file")
    parser.add_argument("--out", type=Path, help="table of the weights; else that of the lexicon")
    asked = parser.parse_args()
    target, features_of = asked.type, FEATURES[asked.type]
    images = [json.loads(line) for line in asked.captions.read_text(encoding="utf-8").splitlines()]
    pool, model = learn_pool(read_pairs(images))
    materials = EditMaterials.of(load_wordnet(), pool, model)
    rows = read_marks(asked.marks or Path(__file__).with_name(f"{target}_marks.tsv"))
    found = list(marked_edits(rows, {str(image["image_id"]): image["captions"] for image in images}, materials, target))
    print(f"{len(found)} of {len(rows)} marked edits are proposed")
    vectorizer = DictVectorizer(sparse=False)
    table = vectorizer.fit_transform([dict(features_of(edit, materials.knowledge)) for _, edit in found])
    names = [*vectorizer.get_feature_names_out(), BIAS]
    folds = np.array([crc32(row["image_id"].encode()) % FOLDS for row, _ in found])
    weights, probabilities = np.zeros((len(names), len(LABELS))), np.full((len(found), len(LABELS)), np.nan)
    for at, label in enumerate(LABELS):
        read = np.array([row[label] != "" for row, _ in found])
        marks = np.array([row[label] == "1" for row, _ in found])[read]
        used = (np.count_nonzero(table[read], axis=0) >= MIN_ROWS) & (table[read].std(axis=0) > 0)
        features = table[np.ix_(read, used)]
        probabilities[read, at] = cross_validated(features, marks, folds[read])
        print(f"{label}: {len(marks)} marks, area {roc_auc_score(marks, probabilities[read, at]):.3f}")
        weights[np.append(used, True), at] = learn_weights(features, marks)
    print_bounds(probabilities, [row for row, _ in found])
    lines = [
        "\t".join((name, *(f"{value:.3f}" for value in row)))
        for name, row in zip(names, weights, strict=True)
        if np.any(row)
    ]
    out = asked.out or DATA / f"{target}_weights.tsv"
    out.write_text(HEAD.format(target) + "\n".join(["\t".join(("feature", *LABELS)), *lines]) + "\n", encoding="utf-8")


def print_bounds(probabilities: Array, rows: Sequence[Mapping[str, str]]) -> None:
    """Print for some bounds the share of the edits read for both labels that they keep, and the marks of these."""
    marks = np.array([[float(row[label] or np.nan) for label in LABELS] for row in rows])
    read = ~np.isnan(marks).any(axis=1)
    marks, (natural, possible) = marks[read], probabilities[read].T
    for low in (0.6, 0.65, 0.7, 0.75, 0.8):
        for high in (0.03, 0.06, 0.08, 0.1, 0.15):
            kept = (natural >= low) & (possible <= high)
            shares = np.round([kept.mean(), *marks[kept].mean(axis=0)], 3)
            print(f"{LABELS[0]} >= {low}, {LABELS[1]} <= {high}: kept, {', '.join(LABELS)}", shares)


if __name__ == "__main__":
    main()
