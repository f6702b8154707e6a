#!/usr/bin/env python3
"""Creates tests/fixtures/metrics.json: metrics of predictions by scikit-learn, and edit distances by RapidFuzz.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install scikit-learn rapidfuzz
    /tmp/venv/bin/python tests/parity/make_metrics.py tests/fixtures/metrics.json [SEED]

SEED draws the predictions (default: 7, with which the stored file is made).

A case has a task, outputs (integers, to be divided by `scale`, so that they are exact everywhere and some are ties),
targets, and the values of metrics by name and options. A per-class value is a list; null is undefined. Only metrics
without a function in scikit-learn are computed here: the expected calibration error and recall at k.

`figures` are the data of figures by name. Curves have an entry for each class, null if there is none: all points of a
ROC curve, and those of a precision-recall curve without intermediate ones, each as counts.
"""

import json
import sys
import warnings

import numpy
import rapidfuzz
import sklearn
from sklearn import metrics
from sklearn.calibration import calibration_curve
from sklearn.preprocessing import label_binarize

IGNORED = -100
AVERAGES = ("macro", "micro", "weighted", "per-class")


def value(number):
    """A value for JSON; NaN is undefined."""
    if isinstance(number, (list, numpy.ndarray)):
        return [value(one) for one in number]
    return None if number is None or numpy.isnan(number) else float(number)


def of_sklearn(function, *arguments, **options):
    """None if scikit-learn has no value."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return value(function(*arguments, **options))
        except ValueError:
            return None


def softmax(logits):
    powers = numpy.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def by_average(values, name, truth, guess, classes):
    scores = {"precision": metrics.precision_score, "recall": metrics.recall_score, "f1": metrics.f1_score,
              "dice": metrics.f1_score, "mean-iou": metrics.jaccard_score}
    function = scores[name]
    for average in AVERAGES[:3]:
        values[f"{name} average={average}"] = of_sklearn(function, truth, guess, average=average)
    per_class = of_sklearn(function, truth, guess, average=None, labels=range(classes) if truth.ndim == 1 else None)
    if truth.ndim == 1:
        # Classes that are neither among targets nor predictions have no value.
        there = set(truth) | set(guess)
        per_class = [one if k in there else None for k, one in enumerate(per_class)]
    values[f"{name} average=per-class"] = per_class


def of_counts(values, truth, guess, classes):
    for name in ("precision", "recall", "f1", "dice", "mean-iou"):
        by_average(values, name, truth, guess, classes)
    if truth.ndim == 1:
        values["balanced-accuracy"] = of_sklearn(metrics.balanced_accuracy_score, truth, guess)
        values["mcc"] = of_sklearn(metrics.matthews_corrcoef, truth, guess)
        values["cohen-kappa"] = of_sklearn(metrics.cohen_kappa_score, truth, guess)
    values["accuracy"] = of_sklearn(metrics.accuracy_score, truth, guess)


def of_scores(values, indicators, scores):
    """Curves of columns, each of which is one class against the rest."""
    aucs, precisions = [], []
    for column in range(scores.shape[1]):
        aucs.append(of_sklearn(metrics.roc_auc_score, indicators[:, column], scores[:, column]))
        precisions.append(of_sklearn(metrics.average_precision_score, indicators[:, column], scores[:, column]))
    values["roc-auc average=per-class"], values["average-precision average=per-class"] = aucs, precisions
    for average in ("macro", "weighted"):
        one = scores.shape[1] == 1
        arguments = (indicators[:, 0], scores[:, 0]) if one else (indicators, scores)
        # The metric of an indicator matrix has no value if that of a class has none.
        values[f"roc-auc average={average}"] = (None if None in aucs else
                                                of_sklearn(metrics.roc_auc_score, *arguments, average=average))
        values[f"average-precision average={average}"] = of_sklearn(metrics.average_precision_score, *arguments,
                                                                    average=average)


def curves_of(figures, indicators, scores):
    """The points of the curve, from the highest threshold to the lowest."""
    roc, precision_recall = [], []
    for column in range(scores.shape[1]):
        truth, score = indicators[:, column], scores[:, column]
        positives, negatives = int(truth.sum()), int(len(truth) - truth.sum())
        if positives > 0 and negatives > 0:
            false, true, _ = metrics.roc_curve(truth, score, drop_intermediate=False)
            roc.append([(false * negatives).round().astype(int).tolist(), (true * positives).round().astype(int).tolist()])
        else:
            roc.append(None)
        if positives > 0:
            precision, recall, _ = metrics.precision_recall_curve(truth, score, drop_intermediate=True)
            precision_recall.append([(recall[::-1] * positives).round().astype(int).tolist(), precision[::-1].tolist()])
        else:
            precision_recall.append(None)
    figures["roc-curve"], figures["precision-recall"] = roc, precision_recall


def reliability(confidence, right):
    """The accuracy and the mean confidence of each of 15 bins that has predictions."""
    accuracies, confidences = calibration_curve(right.astype(int), confidence.astype(numpy.float64), n_bins=15, pos_label=1)
    return [accuracies.tolist(), confidences.tolist()]


def residual_counts(residuals):
    """A histogram of 30 bins from minimum to maximum; None if a value is on an edge, where rounding decides."""
    counts, edges = numpy.histogram(residuals, bins=30)
    is_on_edge = numpy.abs(residuals[:, None] - edges[None, 1:-1]).min() < 1e-9
    return None if is_on_edge else counts.tolist()


def calibration_error(confidence, right, bins):
    number = numpy.clip(numpy.ceil(confidence.astype(numpy.float64) * bins).astype(int) - 1, 0, bins - 1)
    error = 0.0
    for one in range(bins):
        chosen = number == one
        error += abs(right[chosen].sum() - confidence[chosen].astype(numpy.float64).sum())
    return error / len(confidence)


def recall_at(k, relevant, scores):
    """scikit-learn's order of ties: the last comes first."""
    shares = []
    for row, score in zip(relevant, scores):
        first = numpy.argsort(score, kind="mergesort")[::-1][:k]
        if row.sum() > 0:
            shares.append(row[first].sum() / row.sum())
    return value(numpy.mean(shares)) if shares else None


def classes_case(name, outputs, target, scale, text=False):
    """outputs [..., C] of integers, target [...]."""
    classes = outputs.shape[-1]
    rows = outputs.reshape(-1, classes) / scale
    counted = target.reshape(-1) != IGNORED
    rows, truth = rows[counted], target.reshape(-1)[counted]
    exact = softmax(rows)
    probabilities = exact.astype(numpy.float32)
    guess = rows.argmax(axis=1)
    indicators = label_binarize(truth, classes=range(classes))
    values = {}
    of_counts(values, truth, guess, classes)
    loss = metrics.log_loss(truth, exact, labels=range(classes))
    values["loss"] = loss
    values["perplexity"] = float(numpy.exp(loss))
    if text:
        values["bits-per-character"] = float(loss / numpy.log(2))
    for k in (1, 2, 3):
        if 2 < classes > k:  # For two classes it takes a single score.
            values[f"top-k k={k}"] = of_sklearn(metrics.top_k_accuracy_score, truth, rows, k=k, labels=range(classes))
    if not text:
        of_scores(values, indicators if classes > 2 else indicators[:, :1],
                  probabilities if classes > 2 else probabilities[:, 1:])
        whole = numpy.eye(classes, dtype=int)[truth]
        values["mean-average-precision"] = of_sklearn(metrics.label_ranking_average_precision_score, whole, rows)
        for k in (1, 2):
            values[f"recall-at-k k={k}"] = recall_at(k, whole, rows)
    confidence = (1 / numpy.exp(rows - rows.max(axis=1, keepdims=True)).sum(axis=1)).astype(numpy.float32)
    for bins in (15, 4):
        values[f"expected-calibration-error bins={bins}"] = calibration_error(confidence, guess == truth, bins)
    figures = {"reliability": reliability(confidence, guess == truth)}
    if not text:
        figures["confusion-matrix"] = metrics.confusion_matrix(truth, guess, labels=range(classes)).tolist()
        curves_of(figures, indicators if classes > 2 else indicators[:, :1],
                  probabilities if classes > 2 else probabilities[:, 1:])
    return {"name": name, "target_kind": "tokens" if text else "classes", "classes": classes, "scale": scale,
            "outputs": outputs, "target": target, "values": values, "figures": figures}


def binary_case(name, outputs, target, scale):
    logits = outputs.reshape(-1) / scale
    counted = target.reshape(-1) != IGNORED
    logits, truth = logits[counted], target.reshape(-1)[counted]
    guess = (logits > 0).astype(int)
    values = {}
    of_counts(values, truth, guess, 2)
    of_scores(values, truth[:, None], logits[:, None])
    confidence = (1 / (1 + numpy.exp(-numpy.abs(logits)))).astype(numpy.float32)
    values["expected-calibration-error bins=15"] = calibration_error(confidence, guess == truth, 15)
    figures = {"confusion-matrix": metrics.confusion_matrix(truth, guess, labels=range(2)).tolist(),
               "reliability": reliability(confidence, guess == truth)}
    curves_of(figures, truth[:, None], logits[:, None])
    return {"name": name, "target_kind": "binary", "classes": 2, "scale": scale, "outputs": outputs, "target": target,
            "values": values, "figures": figures}


def labels_case(name, outputs, target, scale):
    scores = outputs / scale
    guess = (scores > 0).astype(int)
    values = {}
    of_counts(values, target, guess, target.shape[1])
    of_scores(values, target, scores)
    values["mean-average-precision"] = of_sklearn(metrics.label_ranking_average_precision_score, target, scores)
    for k in (1, 3, 10):
        values[f"recall-at-k k={k}"] = recall_at(k, target, scores)
    confidence = (1 / (1 + numpy.exp(-numpy.abs(scores)))).astype(numpy.float32).reshape(-1)
    right = (guess == target).reshape(-1)
    values["expected-calibration-error bins=15"] = calibration_error(confidence, right, 15)
    figures = {"confusion-by-label": metrics.multilabel_confusion_matrix(target, guess).reshape(-1, 4).tolist(),
               "reliability": reliability(confidence, right)}
    curves_of(figures, target, scores)
    return {"name": name, "target_kind": "labels", "classes": target.shape[1], "scale": scale, "outputs": outputs,
            "target": target, "values": values, "figures": figures}


def numbers_case(name, outputs, target, scale):
    predicted, truth = outputs / scale, target / scale
    values = {"mse": of_sklearn(metrics.mean_squared_error, truth, predicted),
              "rmse": of_sklearn(metrics.root_mean_squared_error, truth, predicted),
              "mae": of_sklearn(metrics.mean_absolute_error, truth, predicted),
              "r2": of_sklearn(metrics.r2_score, truth, predicted)}
    residuals = (truth - predicted).reshape(len(truth), -1)
    figures = {"residuals": [residual_counts(column) for column in residuals.T]}
    return {"name": name, "target_kind": "numbers", "classes": 0, "scale": scale, "outputs": outputs, "target": target,
            "values": values, "figures": figures}


def sequences_case(name, predicted, target):
    """Lists of sequences of classes."""
    def padded(sequences, length):
        return numpy.array([list(one) + [IGNORED] * (length - len(one)) for one in sequences]).reshape(-1, length)

    distances = [rapidfuzz.distance.Levenshtein.distance(*pair) for pair in zip(predicted, target, strict=True)]
    length = sum(map(len, target))
    values = {"label-error-rate": sum(distances) / length if length else None,
              "exact-match": distances.count(0) / len(distances)}
    # Targets and predictions are padded to different lengths.
    return {"name": name, "target_kind": "sequences", "classes": 6, "scale": 1, "outputs": padded(predicted, 14),
            "target": padded(target, 9), "values": values, "figures": {}}


def cases():
    random = numpy.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 7)

    def logits(*sizes, most=200):
        return random.integers(-most, most, sizes, endpoint=True)

    def informed(outputs, target, by):
        """Makes predictions better than chance."""
        flat, truth = outputs.reshape(-1, outputs.shape[-1]), target.reshape(-1)
        for row in range(len(truth)):
            if truth[row] >= 0 and random.random() < 0.5:
                flat[row, truth[row]] += by
        return outputs

    target = random.integers(0, 5, 70)
    yield classes_case("classes", informed(logits(70, 5), target, 150), target, 64)
    target = random.choice(4, 60, p=[0.7, 0.2, 0.05, 0.05])
    yield classes_case("ties and rare classes", informed(logits(60, 4, most=2), target, 2), target, 1)
    # Class 2 is never a target, class 5 neither target nor prediction, class 0 never a prediction.
    target = random.choice([0, 1, 3, 4], 50)
    outputs = informed(logits(50, 6), target, 150)
    outputs[:, 5] = outputs[:, 0] = -500
    yield classes_case("missing classes", outputs, target, 64)
    target = random.integers(0, 3, 60)
    target[random.random(60) < 0.3] = IGNORED
    yield classes_case("ignored targets", informed(logits(60, 3), target, 100), target, 64)
    target = random.integers(0, 2, 50)
    yield classes_case("two classes", informed(logits(50, 2, most=20), target, 20), target, 16)
    yield classes_case("one class alone", logits(20, 3), numpy.full(20, 1), 64)
    yield classes_case("one prediction", logits(1, 4), numpy.array([2]), 64)
    target = random.integers(0, 4, (3, 5, 4))
    target[random.random(target.shape) < 0.1] = IGNORED
    yield classes_case("pixels", informed(logits(3, 5, 4, 4), target, 150), target, 64)
    target = random.integers(0, 6, (5, 8))
    target[2, 5:] = IGNORED
    yield classes_case("tokens", informed(logits(5, 8, 6), target, 150), target, 64, text=True)

    target = random.integers(0, 2, 60)
    yield binary_case("yes or no", logits(60, most=30) + 20 * target, target, 16)
    target = random.integers(0, 2, (40, 1))
    target[::7] = IGNORED
    yield binary_case("yes or no with ties", logits(40, 1, most=3) + target.clip(0), target, 1)
    yield binary_case("always yes", logits(15), numpy.ones(15, dtype=int), 64)

    target = (random.random((50, 5)) < [0.5, 0.1, 0.0, 0.3, 0.9]).astype(int)
    target[3] = 0
    yield labels_case("labels", logits(50, 5, most=60) + 40 * target, target, 32)
    target = (random.random((40, 12)) < 0.2).astype(int)
    target[5] = 1
    yield labels_case("ranked lists with ties", logits(40, 12, most=4) + 3 * target, target, 1)

    target = logits(60)
    yield numbers_case("numbers", target + logits(60, most=90), target, 64)
    target = logits(30, 3) + numpy.array([0, 5000, -70])
    yield numbers_case("columns of numbers", target + logits(30, 3, most=40), target, 64)
    target = 10_000_000 + logits(40, most=3)
    yield numbers_case("numbers far from 0", target + logits(40, most=2), target, 1)
    yield numbers_case("one number alone", logits(12), numpy.full(12, 33), 64)
    yield numbers_case("one number alone, exactly", numpy.full(9, 33), numpy.full(9, 33), 64)
    yield numbers_case("a single number", logits(1), logits(1), 64)

    target = [random.integers(1, 6, length).tolist() for length in random.integers(0, 10, 60)]
    predicted = []
    for one in target:
        # Half of the classes stay, the others are left out, replaced or repeated.
        edits = [([k], [k], [k], [], [int(random.integers(1, 6))], [k, k])[random.integers(0, 6)] for k in one]
        predicted.append(sum(edits, [])[:14])
    yield sequences_case("sequences", predicted, target)
    yield sequences_case("sequences without targets", [[], [3]], [[], []])


def main():
    written = []
    for case in cases():
        case["shape"] = list(case["outputs"].shape)
        case["target_shape"] = list(case["target"].shape)
        case["outputs"] = case["outputs"].reshape(-1).tolist()
        case["target"] = case["target"].reshape(-1).tolist()
        written.append(case)
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in written)
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(f'{{"scikit-learn":"{sklearn.__version__}","cases":[\n{lines}\n]}}\n')


main()
