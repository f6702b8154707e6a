"""Common code of the tests of this folder."""

import argparse
import os
import subprocess
import sys
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "chaos"))
from runs import SKIPPED, free_port, test_python  # noqa: E402, F401

HANGS_SECONDS = 300


def program_and_python(words, statement, package):
    """The command-line arguments; exits as skipped if the statement fails because that Python lacks a package."""
    parser = argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--python", default=test_python())
    arguments = parser.parse_args()
    if subprocess.run([arguments.python, "-c", statement], capture_output=True, check=False).returncode:
        print(f"skipped: no {package} for this Python; name another with --python")
        sys.exit(SKIPPED)
    return arguments.program, arguments.python


def run(command, folder, code=0, environment=None):
    """The output of a command; includes its error output if the expected exit code is not 0."""
    result = subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False,
                            env=os.environ | (environment or {}))
    if result.returncode != code:
        sys.exit(f"{command} ended with {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout + (result.stderr if code else "")


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found!r}, expected {wanted!r}")


class Server:
    """A server of another program, on loopback; entered once it answers."""

    def __init__(self, command, folder, port, path):
        self.address = f"http://127.0.0.1:{port}"
        with open(os.path.join(folder, "server.log"), "ab") as log:
            self.process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)
        until = time.monotonic() + HANGS_SECONDS
        while True:
            try:
                with urllib.request.urlopen(self.address + path, timeout=5):
                    return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > until:
                    sys.exit(f"{command[0]} does not start")
                time.sleep(0.2)

    def end(self):
        os.killpg(self.process.pid, 15)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()
