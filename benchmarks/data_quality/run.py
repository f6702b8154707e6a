#!/usr/bin/env python3
"""Finds planted duplicates and planted label errors in a folder of images.

    python3 -m venv /tmp/venv && /tmp/venv/bin/pip install -r benchmarks/data_quality/requirements.txt
    /tmp/venv/bin/python benchmarks/data_quality/run.py PROGRAM IMAGES FOLDER [OPTION=VALUE...] [--json FILE]

IMAGES has train/CLASS and test/CLASS with JPEG or PNG files, or is "digits": the 1,797 images of handwritten digits of
scikit-learn, every fifth of which is a test image. FOLDER receives a changed copy: exact copies, re-encoded,
resized, darker and mirrored copies of training images, training images that are re-encoded test images, and training
images in the folder of another class, all drawn at random (--seed). `gallop env --data RECIPE --report` then looks for
the copies, and `gallop runs clean RUN` for the labels, by the predictions of a cross-validation. Options are those of
the recipe.

Printed: of each kind of copy, how many are in a group with their original; of the label errors, how many are among the
first 100, 200, ... of the list, in both orders and with all samples whose label is not the predicted one, and the accuracy of each fold.
"""

import argparse
import json
import os
import shutil
import subprocess

import numpy
from PIL import Image, ImageEnhance, ImageOps

RECIPE = """
data: {name: folder, path: changed, image_size: 32, batch_size: 128, augment: [random-horizontal-flip, {random-crop: {padding: 4}}]}
model: {name: resnet, depth: 20}
optimizer: {name: sgd, lr: 0.2, momentum: 0.9, nesterov: true, weight_decay: 5.0e-4}
schedule: {name: one-cycle}
train: {epochs: 8, evaluate_every: 1 epochs}
"""
LISTS = {
    "self-confidence": ("--rank", "self-confidence"),
    "normalized-margin": ("--rank", "normalized-margin"),
    "predicted-neq-given": ("--filter", "predicted-neq-given"),
}
COPIES = {
    "same file": lambda image: None,
    "quality 50": lambda image: (image, 50),
    "resized to 3/4": lambda image: (image.resize((image.width * 3 // 4, image.height * 3 // 4), Image.BILINEAR), 90),
    "darker by 20 %": lambda image: (ImageEnhance.Brightness(image).enhance(0.8), 90),
    "mirrored": lambda image: (ImageOps.mirror(image), 90),
}


def list_images(root, part):
    """[(class, path)], sorted."""
    folder = os.path.join(root, part)
    return [(name, os.path.join(folder, name, file)) for name in sorted(os.listdir(folder))
            for file in sorted(os.listdir(os.path.join(folder, name)))]


def write_digits(root):
    """scikit-learn's images, whose 8 x 8 pixels have 17 values."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    for i, (pixels, label) in enumerate(zip(digits.images, digits.target)):
        folder = os.path.join(root, "test" if i % 5 == 4 else "train", str(label))
        os.makedirs(folder, exist_ok=True)
        Image.fromarray((pixels * 15).astype("uint8")).save(os.path.join(folder, f"{i:04}.png"))


def link(source, target):
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def write_copy(source, target, change):
    with Image.open(source) as image:
        changed = change(image.convert("RGB"))
    if changed is None:
        shutil.copyfile(source, target)
    else:
        changed[0].save(target, "JPEG", quality=changed[1])


def plant(images, folder, count, seed, has_copies):
    """Writes FOLDER/changed. Returns {kind: [(copy, original)]} and the names of the label errors."""
    rng = numpy.random.default_rng(seed)
    root = os.path.join(folder, "changed")
    shutil.rmtree(root, ignore_errors=True)
    train, test = list_images(images, "train"), list_images(images, "test")
    classes = sorted({name for name, _ in train})
    chosen = rng.permutation(len(train))
    wrong, chosen = set(chosen[:count].tolist()), chosen[count:]
    errors = set()
    for i, (label, path) in enumerate(train):
        file = os.path.basename(path)
        if i in wrong:
            other = str(rng.choice([name for name in classes if name != label]))
            # Other classes may have files of this name.
            file, label = f"{label}-{file}", other
            errors.add(f"train/{label}/{file}")
        link(path, os.path.join(root, "train", label, file))
    for label, path in test:
        link(path, os.path.join(root, "test", label, os.path.basename(path)))
    copies = {}
    if not has_copies:
        return copies, errors
    for kind, change in COPIES.items():
        for number in chosen[:count].tolist():
            label, path = train[number]
            name = f"train/{label}/copy-{kind.split()[0]}-{number}.jpg"
            write_copy(path, os.path.join(root, name), change)
            copies.setdefault(kind, []).append((name, f"train/{label}/{os.path.basename(path)}"))
        chosen = chosen[count:]
    for number in rng.permutation(len(test))[:count].tolist():
        label, path = test[number]
        name = f"train/{label}/leaked-{number}.jpg"
        write_copy(path, os.path.join(root, name), COPIES["quality 50"])
        copies.setdefault("test image, quality 50", []).append((name, f"test/{label}/{os.path.basename(path)}"))
    return copies, errors


def gallop(arguments, *options):
    command = [os.path.abspath(arguments.program), *options]
    done = subprocess.run(command, cwd=arguments.folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def found_copies(arguments, copies):
    """{kind: share found}, and the number of images in groups that have no planted copy."""
    gallop(arguments, "env", "--data", "recipe.yaml", "--report", "report", "--json", "report.json", *arguments.options)
    report = json.load(open(os.path.join(arguments.folder, "report.json")))
    groups = [{one["name"] for one in group} for finding in report["findings"] for group in finding["groups"]
              if finding["kind"] in ("leakage", "exact-duplicates", "near-duplicates")]
    group_of = {name: group for group in groups for name in group}
    found = {kind: sum(copy in group_of and original in group_of[copy] for copy, original in pairs)
             for kind, pairs in copies.items()}
    planted = {copy for pairs in copies.values() for copy, _ in pairs}
    others = [sorted(group) for group in groups if not group & planted]
    return {"planted": {kind: len(pairs) for kind, pairs in copies.items()}, "found": found, "other groups": others}


def found_errors(arguments, errors):
    accuracies = []
    # The copies would be in other folds than their originals, whose labels are then known.
    exclude = [] if arguments.only == "labels" else [
        "data.exclude=[report/exact-duplicates.txt,report/near-duplicates.txt,report/leakage.txt]"]
    for fold in range(arguments.folds):
        lines = gallop(arguments, "train", "recipe.yaml", "--name", f"fold-{fold}", f"data.folds={arguments.folds}",
                       f"data.fold={fold}", *exclude, "--json", *arguments.options)
        events = [json.loads(line) for line in lines.splitlines()]
        accuracies.append([one["accuracy"] for one in events if one.get("event") == "evaluation"][-1])
        print(f"fold {fold}: accuracy {accuracies[-1]}", flush=True)
    result = {"planted": len(errors), "accuracies": accuracies}
    for name, options in LISTS.items():
        gallop(arguments, "runs", "clean", "fold-0", *options, "--json", "cleaned.json")
        report = json.load(open(os.path.join(arguments.folder, "cleaned.json")))
        names = [one["name"] for one in report["errors"]]
        ranks = [i for i, name in enumerate(names) if name in errors]
        result[name] = {"ranks": ranks, "listed": len(names), "basis": report["basis"],
                        "found": {str(n): sum(r < n for r in ranks) for n in (100, 150, 200, 300, 500, 1000)},
                        "found in all": len(ranks)}
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("images")
    parser.add_argument("folder")
    parser.add_argument("options", nargs="*")
    parser.add_argument("--count", type=int, default=100, help="planted of each kind")
    parser.add_argument("--folds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("copies", "labels"), help="one part of the figures")
    parser.add_argument("--json", help="file for the results")
    arguments = parser.parse_intermixed_args()
    os.makedirs(arguments.folder, exist_ok=True)
    if arguments.images == "digits":
        arguments.images = os.path.join(arguments.folder, "digits")
        write_digits(arguments.images)
    with open(os.path.join(arguments.folder, "recipe.yaml"), "w") as file:
        file.write(RECIPE)
    copies, errors = plant(arguments.images, arguments.folder, arguments.count, arguments.seed,
                           arguments.only != "labels")
    results = {}
    if arguments.only != "labels":
        results["copies"] = found_copies(arguments, copies)
        for kind, number in results["copies"]["planted"].items():
            print(f"{kind}: {results['copies']['found'][kind]} of {number} found")
        print(f"groups without a planted copy: {len(results['copies']['other groups'])}", flush=True)
    if arguments.only != "copies":
        results["label errors"] = found_errors(arguments, errors)
        for name in LISTS:
            print(f"{name}: {results['label errors'][name]}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
