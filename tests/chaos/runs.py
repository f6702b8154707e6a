"""A folder with data and a recipe for the trainings of the programs of this folder, and the faults that they inject."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import kill

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
from free_port import free_port  # noqa: E402, F401

SKIPPED = 77
GRACE_SECONDS = 10  # The grace period of every launcher.
GONE_SECONDS = 60  # Until the processes of a killed launcher have ended, which normally happens at once.
HANGS_SECONDS = 600  # On any machine: a process that takes longer hangs.
RECIPE = """\
data: {name: mnist, path: data, batch_size: 20, threads: 2}
model: {name: mlp, hidden: [64], dropout: 0.1}
optimizer: {name: adamw, lr: 0.003}
train: {epochs: 2, precision: fp32, channels_last: "false", checkpoint_every: 7 steps}
"""


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def test_python():
    """The Python with the packages to compare with: GALLOP_TEST_PYTHON, or the one that runs the tests."""
    return os.environ.get("GALLOP_TEST_PYTHON") or sys.executable


def children_of(pid):
    """The children of all threads of a process."""
    found = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="utf-8") as file:
                found += [int(word) for word in file.read().split()]
    return found


def is_there(pid):
    """Whether the process runs; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def rank_of(pid):
    """The rank of a process under 'gallop launch'; -1 if it has none, or not yet."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", encoding="utf-8", errors="replace") as file:
        for entry in file.read().split("\0"):
            if entry.startswith("RANK="):
                return int(entry.removeprefix("RANK="))
    return -1


def send(pids, *numbers):
    """Sends signals; processes that have ended are skipped."""
    for number in numbers:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)


def handles(pid, number):
    """Whether the process has installed a handler for this signal."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/status", encoding="utf-8") as file:
        for line in file:
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def holds_within(seconds, condition):
    """Whether the condition becomes true within this time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


class Process:
    """A running training, and its output so far."""

    def __init__(self, command, folder, environment=None):
        self.lines = []
        self.process = subprocess.Popen(
            command, cwd=folder, env=os.environ | (environment or {}), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)
            self.take_line(line)

    def take_line(self, line):
        """Called for each line of output, by a reader thread."""

    def output(self):
        return "".join(self.lines)

    def is_running(self):
        return self.process.poll() is None

    def event(self, name):
        """The newest event of this name in the output of --json; None if there is none."""
        for line in reversed(self.lines):
            if line.startswith("{") and json.loads(line)["event"] == name:
                return json.loads(line)
        return None

    def wait_for(self, condition, what, seconds=HANGS_SECONDS):
        holds_within(seconds, lambda: condition() or not self.is_running())
        if not condition():
            self.process.kill()
            code, output = self.finish()
            sys.exit(f"no {what}; ended with {code}:\n{output[-4000:]}")

    def wait_for_event(self, name):
        self.wait_for(lambda: self.event(name), f"event {name}")

    def children(self):
        return children_of(self.process.pid)

    def rank(self, number):
        """The process of a rank under 'gallop launch'."""
        def found():
            return next((pid for pid in self.children() if rank_of(pid) == number), None)
        self.wait_for(found, f"rank {number}")
        return found()

    def kill(self):
        """SIGKILL to all processes, as in a power failure: nothing is cleaned up."""
        self.process.kill()
        self.finish()

    def finish(self, seconds=HANGS_SECONDS):
        """The exit code, as in subprocess, and the whole output."""
        try:
            code = self.process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.reader.join()
            sys.exit(f"it did not end within {seconds} s:\n{self.output()[-4000:]}")
        self.reader.join()
        return code, self.output()


class Hold:
    """A call at which a training waits until it is released; arguments as in calls.c."""

    def __init__(self, there, path, number=1, reads=False, rank=""):
        self.number = number
        self.log, self.gate = (os.path.join(there.folder, f"hold-{there.holds}.{end}") for end in ("log", "gate"))
        there.holds += 1
        self.environment = there.preload(
            "calls", FAULT_PATH=path, FAULT_READS="1" if reads else "", FAULT_LOG=self.log, FAULT_AT=number,
            FAULT_ACTION="wait", FAULT_UNTIL=self.gate, FAULT_RANK=rank)

    def has_come(self):
        if not os.path.exists(self.log):
            return False
        with open(self.log, encoding="utf-8") as file:
            return len(file.readlines()) >= self.number

    def let_go(self):
        with open(self.gate, "w", encoding="utf-8"):
            pass


class Runs:
    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.holds = 0
        self.started = []

    def start(self, name, *options, processes=0, launch=(), grace=GRACE_SECONDS, environment=None):
        """Starts or continues the training of this name; with `processes` under 'gallop launch', with the options
        `launch`."""
        launcher = ["launch", "-n", str(processes), "--grace", str(grace), *launch] if processes else []
        self.started.append(Process(
            [self.program, *launcher, "train", "recipe.yaml", "--name", name, "--continue", "--json", *options],
            self.folder, environment))
        return self.started[-1]

    def run(self, name, *options, processes=0, environment=None):
        return self.start(name, *options, processes=processes, environment=environment).finish()

    def finished(self, name, *options, processes=0, environment=None):
        """Runs the same training to its end; returns the output."""
        code, output = self.run(name, *options, processes=processes, environment=environment)
        if code != kill.FINISHED:
            sys.exit(f"the run {name} ended with {code}:\n{output[-4000:]}")
        return output

    def remove(self, name):
        shutil.rmtree(os.path.join(self.folder, "runs", name), ignore_errors=True)

    def path(self, name, *more):
        return os.path.join(self.folder, "runs", name, *more)

    def checkpoint(self, name):
        """The folder of the newest checkpoint."""
        with open(self.path(name, "checkpoints", "latest"), encoding="utf-8") as file:
            return self.path(name, "checkpoints", file.read().strip())

    def step(self, name):
        """The weights of the newest checkpoint."""
        return int(re.search(r"step-(\d+)", self.checkpoint(name))[1])

    def weights(self, name):
        return kill.weights_hash(self.path(name))

    def require_weights(self, name, wanted, what):
        if self.weights(name) != wanted:
            sys.exit(f"{what}: the weights differ from those of an undisturbed run")

    def hold(self, path, number=1, reads=False, rank=""):
        return Hold(self, path, number, reads, rank)

    def preload(self, library, **variables):
        """The environment that preloads LIBRARY.c of this folder."""
        path = os.path.join(self.folder, library + ".so")
        if not os.path.exists(path):
            if shutil.which("cc") is None:
                skip("no C compiler")
            subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", path, os.path.join(HERE, library + ".c"), "-ldl"],
                           check=True)
        return {"LD_PRELOAD": path, "ASAN_OPTIONS": "verify_asan_link_order=0",
                **{name: str(value) for name, value in variables.items()}}


@contextlib.contextmanager
def make(program, recipe=RECIPE, data="idx data 200"):
    """Runs of a program in a folder of their own."""
    with tempfile.TemporaryDirectory(prefix="gallop-chaos-") as folder:
        kill.make_data.make(folder, data.split())
        with open(os.path.join(folder, "recipe.yaml"), "w", encoding="utf-8") as file:
            file.write(recipe)
        there = Runs(os.path.abspath(program), folder)
        try:
            yield there
        finally:
            for process in there.started:
                if process.is_running():
                    process.kill()
