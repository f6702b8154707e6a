"""What the tests of this folder share."""

import os
import socket
import subprocess
import sys
import time
import urllib.request

HANGS_SECONDS = 300


def run(command, folder, code=0):
    """What a command prints; its errors too where it is to end with another code than 0."""
    result = subprocess.run(command, cwd=folder, text=True, capture_output=True, check=False)
    if result.returncode != code:
        sys.exit(f"{command} ended with {result.returncode}\n{result.stdout}{result.stderr}")
    return result.stdout + (result.stderr if code else "")


def expect(what, found, wanted):
    if found != wanted:
        sys.exit(f"{what}: {found!r}, and should be {wanted!r}")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    """Of somebody else's, on loopback; there once it answers."""

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
