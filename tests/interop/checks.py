"""What the tests of this folder share."""

import subprocess
import sys


def run(command, folder, code=0):
    """What a command prints; its errors too where it is to end with another code than 0."""
    result = subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False)
    if result.returncode != code:
        sys.exit(f"{command} ended with {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout + (result.stderr if code else "")


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found!r}, and should be {wanted!r}")
