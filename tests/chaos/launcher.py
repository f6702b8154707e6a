#!/usr/bin/env python3
"""What 'gallop launch' does where the launcher itself is killed, and where one process cannot start.

    launcher.py PROGRAM

Killed by SIGKILL, as one of several hosts, it leaves no process behind for longer than two seconds. With
--min-processes it goes on without the processes that are killed as soon as they are there.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import kill  # noqa: E402

HANGS_SECONDS = 60
GONE_SECONDS = 2


def children_of(pid):
    """Also those that other threads than the first have started."""
    found = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="utf-8") as file:
                found += [int(word) for word in file.read().split()]
    except OSError:
        pass
    return found


def is_there(pid):
    """Not, where only its parent has to take note of its end."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def rank_of(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            variables = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
        return int(variables.get(b"RANK", -1))
    except (OSError, ValueError):
        return -1


def wait_until(holds, seconds, why):
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            sys.exit(why)
        time.sleep(0.01)


class Launch:
    def __init__(self, program, folder, words, name):
        self.process = subprocess.Popen(
            [program, "launch", *words, "train", "recipe.yaml", "--name", name, "--json"], cwd=folder,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.lines = []
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line)

    def has(self, text):
        return any(text in line for line in self.lines)


def leaves_nobody_behind(program, folder, words, name):
    launch = Launch(program, folder, words, name)
    wait_until(lambda: launch.has('"event":"step"'), HANGS_SECONDS, "no step")
    processes = children_of(launch.process.pid)
    launch.process.send_signal(signal.SIGKILL)
    moment = time.monotonic()
    wait_until(lambda: not any(map(is_there, processes)), GONE_SECONDS, f"{name}: {processes} outlive their launcher")
    print(f"{name}: all {len(processes)} processes are gone {time.monotonic() - moment:.2f} s after their launcher")
    launch.process.wait()
    launch.reader.join()


def goes_on_with_fewer(program, folder):
    launch = Launch(program, folder, ["-n", "4", "--min-processes", "2", "--max-restarts", "10"], "fewer")
    while launch.process.poll() is None:
        for pid in children_of(launch.process.pid):
            if rank_of(pid) >= 2:
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)
    launch.reader.join()
    output = "".join(launch.lines)
    started = [line.split()[2] for line in launch.lines if line.startswith("gallop: starting")]
    if launch.process.returncode != kill.FINISHED or started != ["4", "3", "2"]:
        sys.exit(f"--min-processes: {launch.process.returncode}, {started}\n{output}")
    print("--min-processes: went on with 4, 3 and 2 processes, and finished")


def main():
    program = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="gallop-chaos-") as folder:
        os.makedirs(os.path.join(folder, "data"))
        kill.make_data.make_idx(os.path.join(folder, "data"), 1000)
        with open(os.path.join(folder, "recipe.yaml"), "w", encoding="utf-8") as file:
            file.write(kill.RECIPE % kill.MODELS["mlp"])
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            place = f"127.0.0.1:{free.getsockname()[1]}"
        leaves_nobody_behind(program, folder, ["-n", "2", "--nnodes", "1", "--rdzv", place], "one of several hosts")
        goes_on_with_fewer(program, folder)


if __name__ == "__main__":
    main()
