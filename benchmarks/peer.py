"""Processes that benchmarks ask for measurements: a line for each command, and a line of JSON as the answer."""

import json
import os
import subprocess
import tempfile


class PeerError(Exception):
    """A process that ended instead of answering, with the last lines of its output."""


class Peer:
    def __init__(self, name, command, environment=None, cores=None):
        """
        environment: variables besides those of this process
        cores: those that it may use; None for all
        """
        keep = None if cores is None else lambda: os.sched_setaffinity(0, cores)
        self.name, self.log = name, tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.log, text=True, env=os.environ | (environment or {}), preexec_fn=keep)

    def send(self, command):
        try:
            self.process.stdin.write(command + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # The answer will be missing.

    def receive(self):
        line = self.process.stdout.readline()
        if line.startswith("{"):
            return json.loads(line)
        self.process.wait()
        self.log.seek(0)
        lines = [text for text in self.log.read().splitlines() if text.strip()]
        raise PeerError(f"{self.name}: exit code {self.process.returncode}: {' / '.join(lines[-3:])[-600:]}")

    def ask(self, command):
        self.send(command)
        return self.receive()

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.log.close()
