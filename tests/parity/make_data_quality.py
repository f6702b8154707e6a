#!/usr/bin/env python3
"""Creates tests/fixtures/data_quality.json: perceptual hashes of imagehash, confident learning of cleanlab, and Tukey's
fences from percentiles of numpy.

    python3 -m venv /tmp/venv
    /tmp/venv/bin/pip install cleanlab imagehash pillow numpy
    /tmp/venv/bin/python tests/parity/make_data_quality.py tests/fixtures/data_quality.json
"""

import json
import sys

import cleanlab
import imagehash
import numpy
from cleanlab.count import compute_confident_joint
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores, order_label_issues
from PIL import Image


def picture(rng, height, width, channels):
    """A smooth random picture."""
    small = rng.integers(0, 256, (5, 6, channels), dtype=numpy.uint8)
    planes = [Image.fromarray(small[..., c]).resize((width, height), Image.BICUBIC) for c in range(channels)]
    return planes[0] if channels == 1 else Image.merge("RGB", planes)


def hash_of(image):
    """Bit 8 r + c is coefficient (r, c)."""
    bits = imagehash.phash(image).hash.flatten()
    return str(sum(int(bit) << i for i, bit in enumerate(bits)))


def hashes(rng):
    """At 32 x 32 pixels hashes are equal bit for bit; at other sizes filters differ."""
    result = []
    for height, width, channels in [(32, 32, 1)] * 6 + [(32, 32, 3)] * 6 + [(48, 64, 3), (97, 41, 1), (20, 25, 3)]:
        image = picture(rng, height, width, channels)
        result.append({"height": height, "width": width, "channels": channels, "hash": hash_of(image),
                       "pixels": image.tobytes().hex()})
    return result


def predictions(rng, samples, classes, noise, sharpness, rare=False):
    """Labels of which a part is wrong, and probabilities that a model might predict, as float32."""
    weights = numpy.ones(classes)
    if rare:
        weights[-2:] = [0.05, 0.005]
    truth = rng.choice(classes, samples, p=weights / weights.sum())
    labels = numpy.where(rng.random(samples) < noise, rng.integers(0, classes, samples), truth)
    logits = rng.normal(0, 1, (samples, classes))
    logits[numpy.arange(samples), truth] += sharpness
    shares = numpy.exp(logits) / numpy.exp(logits).sum(1, keepdims=True)
    # As many digits as a float has, so that JSON is exact.
    return labels, shares.astype(numpy.float32)


def cleaned(labels, shares):
    """The joint counts, and the errors by both rankings."""
    joint, _ = compute_confident_joint(labels, shares, calibrate=True, return_indices_of_off_diagonals=True)
    mask = find_label_issues(labels, shares, filter_by="prune_by_noise_rate", n_jobs=1)
    assert len(set(shares[numpy.arange(len(labels)), labels])) == len(labels), "ties"
    ranked = {}
    for method in ("self_confidence", "normalized_margin"):
        scores = get_label_quality_scores(labels, shares, method=method)
        # Rounded equal margins have no defined order.
        errors = order_label_issues(mask, labels, shares, rank_by=method)
        assert len(set(scores[errors])) == len(errors), "ties"
        ranked[method] = {"errors": errors.tolist(), "scores": scores[errors].astype(float).tolist()}
    unlike = find_label_issues(labels, shares, filter_by="predicted_neq_given", n_jobs=1)
    ranked["predicted_neq_given"] = order_label_issues(unlike, labels, shares, rank_by="self_confidence").tolist()
    return {"classes": shares.shape[1], "labels": labels.tolist(),
            "probabilities": shares.astype("<f4").tobytes().hex(),
            "joint": joint.astype(int).tolist(), **ranked}


def tukey(rng):
    result = []
    for values in (rng.normal(0, 1, 101), rng.lognormal(0, 1, 50), numpy.array([3.0, 3.0, 3.0, 3.0, 9.0]), numpy.array([2.0])):
        low, high = numpy.percentile(values, [25, 75])
        result.append({"values": values.tolist(), "low": low - 1.5 * (high - low), "high": high + 1.5 * (high - low)})
    return result


def main(file):
    rng = numpy.random.default_rng(5)
    content = {
        "made by": f"cleanlab {cleanlab.__version__}, imagehash {imagehash.__version__}, numpy {numpy.__version__}",
        "hashes": hashes(rng),
        "label errors": [cleaned(*predictions(rng, *case)) for case in
                         [(300, 3, 0.1, 3), (400, 10, 0.2, 2), (500, 6, 0.15, 1.5, True), (120, 2, 0.3, 1), (60, 4, 0, 6)]],
        "fences": tukey(rng),
    }
    with open(file, "w") as out:
        json.dump(content, out)
        out.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
