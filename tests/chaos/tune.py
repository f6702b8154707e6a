#!/usr/bin/env python3
"""Runs a study with many workers and kills them, the coordinator and the database at random moments.

    tune.py TUNE_PROGRAM --storage sqlite --kills 50
    tune.py TUNE_PROGRAM --storage postgresql --kills 50          with its own server, in a temporary folder
    tune.py TUNE_PROGRAM --storage sqlite --workers 64 --trials 10000 --milliseconds 0 --kills 0     no process may fail

Every trial must end exactly once, with the loss of its point, and none may be lost. TUNE_PROGRAM is built from
tests/chaos/tune_program.cpp. Exits with 77 if PostgreSQL is not installed.
"""

import argparse
import collections
import glob
import json
import os
import pwd
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED = 77
HEARTBEAT_SECONDS = 0.5
HANGS_SECONDS = 300  # Without a trial that ends.
LONGEST_BETWEEN_SECONDS = 1


class Postgresql:
    """A server on a socket in its own folder."""

    def __init__(self, folder):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
        if not programs:
            print("skipped: PostgreSQL is not installed")
            sys.exit(SKIPPED)
        self.programs = os.path.dirname(programs[-1])
        self.folder = os.path.join(folder, "pg")
        os.mkdir(self.folder)
        os.chmod(folder, 0o711)
        self.prefix = []
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root.
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            self.prefix = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        self.data = os.path.join(self.folder, "data")
        subprocess.run([*self.prefix, os.path.join(self.programs, "initdb"), "--pgdata", self.data, "--auth", "trust",
                        "--username", "gallop", "--no-sync"], check=True, stdout=subprocess.DEVNULL, cwd="/")
        self.where = f"postgresql:///postgres?user=gallop&host={self.folder}"
        self.process = None
        self.start()

    def start(self):
        """Waits until it answers: the shared memory of a killed server is in use until its processes have ended."""
        deadline = time.monotonic() + HANGS_SECONDS
        while time.monotonic() < deadline:
            self.process = subprocess.Popen(
                [*self.prefix, os.path.join(self.programs, "postgres"), "-D", self.data, "-k", self.folder,
                 "-c", "listen_addresses=", "-c", "max_connections=200", "-c", "log_min_messages=fatal"],
                cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while self.process.poll() is None and time.monotonic() < deadline:
                ready = [os.path.join(self.programs, "pg_isready"), "-q", "-h", self.folder, "-U", "gallop"]
                if subprocess.run(ready, check=False).returncode == 0:
                    return
                time.sleep(0.05)
        sys.exit("PostgreSQL does not start")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.start()

    def stop(self):
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()


class Study:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.program = os.path.abspath(arguments.program)
        self.rng = random.Random(arguments.seed)
        self.database = Postgresql(folder) if arguments.storage == "postgresql" else None
        self.where = self.database.where if self.database else os.path.join(folder, "studies.db")
        self.log = os.path.join(folder, "counted")
        self.killed = collections.Counter()
        self.coordinator = None
        self.workers = []
        self.started = 0

    def run(self, *words):
        return subprocess.run([self.program, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout

    def start(self, *words, stdin=subprocess.DEVNULL):
        return subprocess.Popen([self.program, *map(str, words)], stdin=stdin, stderr=subprocess.PIPE, text=True)

    def start_coordinator(self):
        """Ends the coordinator by closing its input."""
        if not self.database:
            self.coordinator = self.start("coordinate", self.where, stdin=subprocess.PIPE)

    def start_worker(self):
        self.started += 1
        return self.start("work", self.where, f"worker-{self.started}", self.arguments.milliseconds, self.log)

    def kill_one(self):
        other = "database" if self.database else "coordinator"
        whom = "worker" if sum(self.killed.values()) % 2 == 0 else other
        if whom == "database":
            self.database.kill()
        elif whom == "coordinator":
            if self.coordinator.poll() is not None:
                return
            self.end(self.coordinator)
            self.start_coordinator()
        else:
            index = self.rng.randrange(len(self.workers))
            if self.workers[index].poll() is not None:
                return
            self.end(self.workers[index])
            self.workers[index] = self.start_worker()
        self.killed[whom] += 1

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stderr):
            if pipe:
                pipe.close()

    def counted(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as file:
            return [int(line.split()[0]) for line in file]

    def check_alive(self):
        """Checks that no process has ended with an error."""
        for process in [*self.workers, *([self.coordinator] if self.coordinator else [])]:
            if process.poll():
                sys.exit(f"a process ended with {process.returncode}: {process.stderr.read()}")

    def go(self):
        """Waits until all workers have ended because the study is done."""
        kills = self.arguments.kills
        next_kill = time.monotonic() + self.rng.uniform(0, LONGEST_BETWEEN_SECONDS)
        last, last_at = 0, time.monotonic()
        while any(worker.poll() is None for worker in self.workers):
            if sum(self.killed.values()) < kills and time.monotonic() > next_kill:
                self.kill_one()
                next_kill = time.monotonic() + self.rng.uniform(0, LONGEST_BETWEEN_SECONDS)
            self.check_alive()
            if (size := len(self.counted())) > last:
                last, last_at = size, time.monotonic()
            if time.monotonic() - last_at > HANGS_SECONDS:
                sys.exit(f"no trial has ended for {HANGS_SECONDS} s, after {last}")
            time.sleep(0.02)
        self.check_alive()

    def work(self):
        self.run("create", self.where, self.arguments.trials, HEARTBEAT_SECONDS if self.arguments.kills else 10)
        self.start_coordinator()
        self.workers = [self.start_worker() for _ in range(self.arguments.workers)]
        begin = time.monotonic()
        try:
            self.go()
            seconds = time.monotonic() - begin
            if self.coordinator:
                self.coordinator.stdin.close()
                if code := self.coordinator.wait(timeout=HANGS_SECONDS):
                    sys.exit(f"the coordinator ended with {code}: {self.coordinator.stderr.read()}")
            summary = json.loads(self.run("summary", self.where))
        finally:
            for process in [*self.workers, *([self.coordinator] if self.coordinator else [])]:
                self.end(process)
            if self.database:
                self.database.stop()
        return summary, seconds


def check(summary, counted, trials):
    for key in ["wanted", "trials", "complete", "ends", "ended", "right"]:
        if summary[key] != trials:
            sys.exit(f"{key} should be {trials}: {summary}")
    twice = [number for number, times in collections.Counter(counted).items() if times > 1]
    if twice:
        sys.exit(f"counted twice: {twice}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--storage", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--milliseconds", type=float, default=300, help="mean duration of a trial")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    while True:
        folder = tempfile.mkdtemp(prefix="gallop-chaos-")
        try:
            study = Study(arguments, folder)
            summary, seconds = study.work()
            check(summary, study.counted(), arguments.trials)
        finally:
            shutil.rmtree(folder)
        killed = ", ".join(f"{times} of a {whom}" for whom, times in sorted(study.killed.items()))
        print(f"{arguments.trials} trials by {arguments.workers} workers in {seconds:.1f} s, each ended once; kills: "
              f"{killed or 'none'}; trials begun again: {summary['vanished']}", flush=True)
        # The study may be done before every kill was sent: the remaining kills are sent to another study.
        arguments.kills -= sum(study.killed.values())
        arguments.seed += 1
        if arguments.kills <= 0:
            return


if __name__ == "__main__":
    main()
