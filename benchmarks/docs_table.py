"""Tables in the docs that benchmarks write."""

import re
import sys


def put(path, name, text):
    """Replaces the text between the lines <!-- NAME --> and <!-- /NAME --> of a file."""
    with open(path) as file:
        before = file.read()
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if before.count(begin) != 1 or before.count(end) != 1:
        sys.exit(f"{path}: it needs one line {begin} and one line {end}, between which the table is written")
    after = re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n{text}\n{end}", before, flags=re.DOTALL)
    with open(path, "w") as file:
        file.write(after)
