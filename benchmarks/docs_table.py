"""Tables of results in the docs, which benchmarks write themselves."""

import re
import sys


def put(path, name, text):
    """Replaces what stands between the lines <!-- NAME --> and <!-- /NAME --> of a file."""
    with open(path) as file:
        before = file.read()
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if before.count(begin) != 1 or before.count(end) != 1:
        sys.exit(f"{path}: it needs one line {begin} and one line {end}, between which the table goes")
    after = re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n{text}\n{end}", before, flags=re.DOTALL)
    with open(path, "w") as file:
        file.write(after)
