#!/usr/bin/env python3
"""Runs the tests of a GoogleTest program in one process and reports each failed test.

  tests/unit/run_suite.py PROGRAM [--shard K/N | --long] [--name NAME] [--limit S] [GTEST_ARGUMENT...]

Instantiations named Long run only with --long. If a test crashes or hangs, it fails by name, and the remaining tests
run in a new process. Tests listed in tests/unit/own_process.txt run in their own processes. GALLOP_TEST_CASE=SUITE.TEST
runs only that test; GALLOP_TEST_RESULTS=FOLDER receives NAME.json with the counts and the output of failures. Exit
code: 0 all passed or skipped, 1 a test failed, 2 wrong use.
"""

import argparse
import collections
import contextlib
import ctypes
import fnmatch
import json
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

OWN_PROCESS = pathlib.Path(__file__).resolve().parent / "own_process.txt"
HANGS_SECONDS = 600  # Each test; a sanitizer makes the longest ones ten times slower.
MOST_LINES = 2000  # Lines of a test's output, from its end.
LONGEST_LINE = 20_000
SLOWEST_SHOWN = 3
BEGIN = re.compile(r"^(.*)\[ RUN      \] (\S+)$")
# The last line of a test's output may lack its newline.
END = re.compile(r"^(.*)\[(       OK |  FAILED  |  SKIPPED )\] ([^\s,]+)(?:, where .*|(?: \(\d+ ms\)))?$")
SUITE = re.compile(r"^\[-{10}\] \d+ tests? from ([^\s,]+)(?:, where .*)?$")
PR_SET_PDEATHSIG = 1


def fail(message):
    print(f"run_suite: {message}", file=sys.stderr)
    sys.exit(2)


def list_tests(program, arguments):
    """SUITE.TEST of every test selected by `arguments` (filters), without disabled ones."""
    try:
        listed = subprocess.run([program, "--gtest_list_tests", *arguments], stdin=subprocess.DEVNULL, text=True,
                                capture_output=True)
    except OSError as error:
        fail(f"{program} did not start: {error.strerror}")
    if listed.returncode != 0:
        fail(f"{program} --gtest_list_tests ended with {ending(listed.returncode)}:\n{listed.stdout}{listed.stderr}")
    tests, suite = [], ""
    for line in listed.stdout.splitlines():
        name = line.split("#")[0].rstrip()
        if name.startswith("  "):
            tests.append(suite + name.strip())
        elif name.endswith("."):
            suite = name
    return [name for name in tests if "DISABLED_" not in name]


def read_own_process(path, module):
    """The tests of `module` in lines of MODULE.SUITE.TEST: REASON."""
    names = set()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, reason = line.partition(": ")
        if name.count(".") != 2 or not reason.strip():
            fail(f"{path}:{number}: expected 'MODULE.SUITE.TEST: REASON', got '{line}'")
        if name.startswith(module + "."):
            names.add(name[len(module) + 1:])
    return names


def ending(code):
    return f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Lines:
    """The lines that are already in a pipe."""

    def __init__(self, pipe):
        self.pipe, self.rest, self.closed = pipe, b"", False
        os.set_blocking(pipe, False)

    def read(self):
        with contextlib.suppress(BlockingIOError):
            for _ in range(16):  # More than a pipe holds; a program that prints endlessly is not waited for.
                chunk = os.read(self.pipe, 65536)
                self.closed = not chunk
                self.rest += chunk
        *lines, self.rest = self.rest.split(b"\n")
        self.rest = self.rest[-LONGEST_LINE:]
        return [line[-LONGEST_LINE:].decode(errors="replace") for line in lines]


class Suite:
    """The results of a program's tests, which `run` adds to."""

    def __init__(self, program, arguments, limit):
        self.program, self.arguments, self.limit = program, arguments, limit
        self.passed, self.skipped, self.failed = {}, {}, {}  # By name: seconds, reasons, outputs.
        self.outside = []  # Outputs of failures outside any test.
        self.current, self.begun, self.output = None, 0, collections.deque(maxlen=MOST_LINES)

    def run(self, names):
        """Runs `names` in one process, and those that remain after a crash or hang in another one."""
        left = list(names)
        while left:
            failed, before = len(self.failed), len(left)
            code, how = self.run_process(left)
            in_test = self.current
            if in_test:
                self.end(in_test, "FAILED", [*self.output, how])
            left = self.not_done(left)
            usual = not left and (code == 0 or (code == 1 and len(self.failed) > failed))
            if not in_test and not usual:
                self.fail_outside(left, [*self.output, how], progress=len(left) < before)
                left = self.not_done(left)

    def not_done(self, names):
        done = {*self.passed, *self.skipped, *self.failed}
        return [name for name in names if name not in done]

    def fail_outside(self, left, output, progress):
        """Handles a process that ended outside any test: the tests of the suite that was being set up fail; if there
        was none, all remaining tests fail if no process gets further."""
        begun = [match[1] for match in map(SUITE.match, output) if match]
        failed = [name for name in left if begun and name.startswith(begun[-1] + ".")]
        if not failed and progress:
            self.outside.append("\n".join(output))
            print(f"--- FAILED outside any test\n{self.outside[-1]}", flush=True)
            return
        for name in failed or left:
            self.end(name, "FAILED", output)
            output = ["The process ended before this test, see the one above."]

    def run_process(self, names):
        """Runs a process to its end; returns its exit code and the reason of its end."""
        self.current, self.output = None, collections.deque(maxlen=MOST_LINES)
        with tempfile.NamedTemporaryFile("w", prefix="gallop-tests-") as flags:
            flags.write(f"--gtest_filter={':'.join(names)}\n")  # In a file, as it may be too long for an argument.
            flags.flush()
            process = subprocess.Popen(
                [self.program, *self.arguments, f"--gtest_flagfile={flags.name}", "--gtest_color=no", "--gtest_brief=0"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
                preexec_fn=die_with_parent)
            ended = self.follow(process)
        how = (f"The process ended here with {ending(process.returncode)}." if ended else
               f"It did not end within {self.limit:g} s and was killed.")
        return process.returncode, how

    def follow(self, process):
        """Reads the output until the process ends; false if a test hangs and the process is killed."""
        lines, ended = Lines(process.stdout.fileno()), os.pidfd_open(process.pid)
        poll = select.poll()
        for source in (lines.pipe, ended):
            poll.register(source, select.POLLIN)
        self.begun, over, hangs = time.monotonic(), False, False
        while not over:
            patience = self.begun + self.limit - time.monotonic()
            ready = [source for source, _ in poll.poll(max(0, patience) * 1000)]
            hangs = patience <= 0 and ended not in ready
            over = hangs or ended in ready
            if over:  # Before the process is reaped, as its id may be reused afterwards.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            for line in lines.read():
                self.take(line)
            if lines.closed and not over:
                with contextlib.suppress(KeyError):
                    poll.unregister(lines.pipe)
        if lines.rest:
            self.take(lines.rest.decode(errors="replace"))
        os.close(ended)
        process.stdout.close()
        return not hangs

    def take(self, line):
        begin, end = BEGIN.match(line), END.match(line)
        if begin and not self.current:
            self.current, self.begun = begin[2], time.monotonic()
            self.output.clear()
        elif end and end[3] == self.current:
            self.end(self.current, end[2].strip(), [*self.output, end[1]] if end[1] else self.output)
        else:
            self.output.append(line)

    def end(self, name, how, output):
        seconds = time.monotonic() - self.begun
        if how == "OK":
            self.passed[name] = seconds
        elif how == "SKIPPED":
            self.skipped[name] = " ".join(line for line in output if not line.endswith(": Skipped")).strip()
        else:
            self.failed[name] = "\n".join(output)
            print(f"--- FAILED {name}\n{self.failed[name]}", flush=True)
        self.current, self.begun = None, time.monotonic()
        self.output.clear()


def parse_shard(text):
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", text)
    if not match or int(match[1]) > int(match[2]):
        raise argparse.ArgumentTypeError(f"expected K/N with K from 1 to N, got '{text}'")
    return int(match[1]), int(match[2])


def write_results(folder, name, module, suite):
    result = {"module": module, "passed": len(suite.passed), "skipped": len(suite.skipped), "failed": suite.failed,
              "outside": suite.outside}
    path = pathlib.Path(folder, f"{name}.json")
    path.with_suffix(".partial").write_text(json.dumps(result))
    path.with_suffix(".partial").rename(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--shard", type=parse_shard, default=(1, 1))
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--name")
    parser.add_argument("--limit", type=float, default=HANGS_SECONDS)
    parser.add_argument("--own-process", type=pathlib.Path, default=OWN_PROCESS, help="another file in place of tests/unit/own_process.txt")
    options, arguments = parser.parse_known_args()
    wrong = [word for word in arguments if not word.startswith("--gtest_")]
    if wrong:
        fail(f"unknown argument '{wrong[0]}'; see --help")

    module = pathlib.Path(options.program).name.removeprefix("test_")
    name = options.name or module
    own = read_own_process(options.own_process, module)
    names = list_tests(options.program, arguments)
    patterns = [pattern for word in arguments if word.startswith("--gtest_filter=")
                for pattern in word.removeprefix("--gtest_filter=").partition("-")[0].split(":") if pattern]
    for pattern in patterns or ["*"]:
        if not any(fnmatch.fnmatchcase(test, pattern) for test in names):
            fail(f"{options.program} has no test {pattern}")
    for missing in sorted(own - set(names)) if not arguments else ():
        fail(f"{options.own_process} names {module}.{missing}, and there is no such test")
    index, count = options.shard
    names = [test for test in names if test.startswith("Long/") == options.long][index - 1::count]
    case = os.environ.get("GALLOP_TEST_CASE")
    if case:
        if case not in names:
            fail(f"there is no test {case} in {name}")
        names = [case]

    begin = time.monotonic()
    suite = Suite(options.program, arguments, options.limit)
    suite.run([test for test in names if test not in own])
    for test in names:
        if test in own:
            suite.run([test])
    seconds = time.monotonic() - begin
    if os.environ.get("GALLOP_TEST_RESULTS"):
        write_results(os.environ["GALLOP_TEST_RESULTS"], name, module, suite)
    for reason in sorted(set(suite.skipped.values())):
        skipped = [test for test in suite.skipped if suite.skipped[test] == reason]
        print(f"skipped {skipped[0]}{f' and {len(skipped) - 1} more' if skipped[1:] else ''}: {reason}")
    slowest = sorted(suite.passed, key=suite.passed.get, reverse=True)[:SLOWEST_SHOWN]
    print(f"slowest: {', '.join(f'{test} {suite.passed[test]:.1f} s' for test in slowest)}")
    for test in suite.failed:
        print(f"FAILED {test}")
    print(f"{name}: {len(suite.passed)} passed, {len(suite.failed)} failed, {len(suite.skipped)} skipped in {seconds:.1f} s")
    sys.exit(1 if suite.failed or suite.outside else 0)


if __name__ == "__main__":
    main()
