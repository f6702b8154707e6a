#!/usr/bin/env python3
"""Damages the newest checkpoint of an interrupted run, in every file and at several kinds of positions, and resumes.

    damage.py PROGRAM

Each time the training must name the damaged file, continue from the preceding checkpoint, and end with weights
bit-identical to those of an undisturbed run. If every checkpoint is damaged it must exit with code 3.
"""

import argparse
import os
import re
import shutil
import struct
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import runs  # noqa: E402

BAD_DATA = 3
FILES = ("model.safetensors", "state.safetensors", "trainer.json", "manifest.json")


def flip(place):
    def damage(path):
        with open(path, "r+b") as file:
            content = file.read()
            at = place(content)
            file.seek(at)
            file.write(bytes([content[at] ^ 0x10]))
    return damage


def cut(length):
    def damage(path):
        os.truncate(path, length(os.path.getsize(path)))
    return damage


def data_begin(content):
    return 8 + struct.unpack("<Q", content[:8])[0]


def damages():
    """(what, file, function of its path)"""
    for file in FILES:
        yield "a bit of the first byte", file, flip(lambda content: 0)
        yield "a bit in the middle", file, flip(lambda content: len(content) // 2)
        yield "a bit of the last byte", file, flip(lambda content: len(content) - 1)
        yield "emptied", file, cut(lambda size: 0)
        yield "cut in half", file, cut(lambda size: size // 2)
        yield "cut by one byte", file, cut(lambda size: size - 1)
        yield "gone", file, os.remove
    for file in FILES[:2]:
        yield "a bit of the header's length", file, flip(lambda content: 2)
        yield "a bit of the header", file, flip(lambda content: 20)
        yield "a bit of the first number", file, flip(data_begin)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--every", type=int, default=1, help="test only every Nth kind of damage")
    arguments = parser.parse_args()

    with runs.make(arguments.program) as there:
        there.finished("undisturbed")
        wanted = there.weights("undisturbed")
        there.finished("part", "train.epochs=1")
        newest = there.step("part")
        listed = list(damages())[::arguments.every]
        for what, name, damage in listed:
            there.remove("damaged")
            shutil.copytree(there.path("part"), there.path("damaged"))
            damage(os.path.join(there.checkpoint("damaged"), name))
            output = there.finished("damaged", "train.epochs=2")
            if f"{name}: " not in output or "damaged" not in output and "cannot open" not in output:
                sys.exit(f"{name}, {what}: the damage is not reported:\n{output[-3000:]}")
            found = re.search(r"resumed from step (\d+)", output)
            if found is None or int(found[1]) >= newest:
                sys.exit(f"{name}, {what}: it did not continue from the preceding checkpoint:\n{output[-3000:]}")
            there.require_weights("damaged", wanted, f"{name}, {what}")
        print(f"{len(listed)} damages: each was reported, and it continued from step {found[1]} instead of {newest}, "
              "to the same weights, bit for bit")

        for folder in os.listdir(there.path("part", "checkpoints")):
            if folder.startswith("step-"):
                cut(lambda size: size - 1)(there.path("part", "checkpoints", folder, "model.safetensors"))
        code, output = there.run("part", "train.epochs=2")
        if code != BAD_DATA or "model.safetensors: " not in output:
            sys.exit(f"no intact checkpoint was left, but it ended with {code}:\n{output[-3000:]}")
        print(f"all damaged: exit {code}")


if __name__ == "__main__":
    main()
