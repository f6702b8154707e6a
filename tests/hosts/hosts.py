#!/usr/bin/env python3
"""Trains on three hosts, injects failures of hosts and links, and compares the final weights with an undisturbed run.

    hosts.py PROGRAM [--rounds 3 --seed 1] [--within 10] [--verbose]

The hosts are network namespaces on their own bridge, which needs root and ip; without them it exits with 77 and a
message. The failures:

    kill       a host's launcher and its processes are killed; it comes back
    crash      the host of the coordinator and the store disappears without closing connections; it comes back
    cut        a host's link is down for a while
    cut_store  the link of the coordinator's host is down for a while
    freeze     a host is frozen for a while
    delay      a host's packets are delayed for a while: nothing may restart

Each time all others must stop within --within seconds. The training must continue with the remaining hosts, and with
all of them once they are back. Without --rounds it runs kill and crash, with --rounds all failures in random order, and
then the test of a folder that is not shared.
"""

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "chaos"))
import kill  # noqa: E402
import runs  # noqa: E402

HOSTS, NEEDED = 3, 2
HANGS_SECONDS = 300
RECIPE = """\
data: {name: mnist, path: data, batch_size: 48, augment: [{random-crop: {padding: 1}}]}
model: {name: resnet, depth: 8, width: 0.5}
optimizer: {name: sgd, lr: 0.02, momentum: 0.9}
train: {epochs: 100000, precision: fp32, channels_last: "true", checkpoint_every: 20 steps, evaluate_every: 500 epochs}
parallel: {name: deterministic, start_seconds: 60}
"""


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Launcher(runs.Process):
    """A training in the network namespace of a host, which receives its output."""

    def __init__(self, host, command):
        self.host = host
        super().__init__(command, host.job.there.folder)

    def take_line(self, line):
        self.host.lines.append(line)
        self.host.job.take_line(self.host, line)

    def pids(self):
        return [self.process.pid, *self.children()]


class Host:
    """A network namespace, and the launcher in it."""

    def __init__(self, number, job):
        self.number, self.job = number, job
        self.space = f"gallop-{os.getpid()}-{number}"
        self.name, self.address = f"node{number + 1}", f"10.77.0.{number + 1}"
        self.launcher, self.lines = None, []

    def connect(self, bridge):
        """Creates a veth pair: one end is eth0 in the namespace, the other is attached to the bridge."""
        ip("netns", "add", self.space)
        self.job.stack.callback(ip, "netns", "del", self.space)
        ip("-n", self.space, "link", "add", "eth0", "type", "veth", "peer", "name", f"host{self.number}", "netns", bridge)
        ip("-n", bridge, "link", "set", f"host{self.number}", "master", "bridge", "up")
        ip("-n", self.space, "addr", "add", f"{self.address}/24", "dev", "eth0")
        for device in ("lo", "eth0"):
            ip("-n", self.space, "link", "set", device, "up")

    def start(self, before="true"):
        """Starts the launcher after a shell command, which may change this host's view of the files."""
        own_names = ["unshare", "--uts", "--mount", "sh", "-c", f'hostname {self.name} && {before} && exec "$@"', "sh"]
        self.launcher = Launcher(self, [
            "ip", "netns", "exec", self.space, *own_names, self.job.there.program, "launch", "-n", "1",
            "--nnodes", f"{NEEDED}:{HOSTS}", "--rdzv", ",".join(host.address for host in self.job.hosts),
            "--max-restarts", "1000", "--join-seconds", "2", "--lost-after", str(self.job.within / 2),
            "train", "recipe.yaml", "--name", "disturbed", "--continue", "--json"])

    def kill(self):
        """Kills all processes, as in a power failure: nothing is cleaned up."""
        pids = self.launcher.pids()
        self.launcher.process.kill()
        self.job.wait_until(lambda: not any(map(runs.is_there, pids)), "processes outlive their launcher", runs.GONE_SECONDS)
        self.launcher.finish()
        self.launcher = None

    def set_link(self, state):
        ip("-n", self.space, "link", "set", "eth0", state)

    def delay(self):
        """Delays packets; without netem in the kernel, by the queue of a slow link."""
        for kind in ("netem delay 80ms 20ms", "tbf rate 10mbit burst 32kb latency 500ms"):
            words = ["tc", "-n", self.space, "qdisc", "add", "dev", "eth0", "root", *kind.split()]
            if subprocess.run(words, capture_output=True).returncode == 0:
                return kind
        self.job.fail("tc has neither netem nor tbf")

class Job:
    def __init__(self, there, stack, within, is_verbose):
        self.there, self.stack, self.within, self.is_verbose = there, stack, within, is_verbose
        self.begun = time.monotonic()
        self.coordinator, self.size, self.step, self.stepped = None, 0, 0, 0.0
        self.starts = 0
        self.hosts = [Host(number, self) for number in range(HOSTS)]
        bridge = f"gallop-{os.getpid()}-bridge"
        ip("netns", "add", bridge)
        stack.callback(ip, "netns", "del", bridge)
        ip("-n", bridge, "link", "add", "bridge", "type", "bridge")
        ip("-n", bridge, "link", "set", "bridge", "up")
        for host in self.hosts:
            host.connect(bridge)
        stack.callback(self.end)

    def end(self):
        for host in self.hosts:
            if host.launcher is not None and host.launcher.is_running():
                host.kill()

    def take_line(self, host, line):
        if self.is_verbose and line.startswith("gallop: "):
            print(f"{time.monotonic() - self.begun:8.2f} {host.name}: {line}", end="", flush=True)
        if match := re.match(r"gallop: starting \d+ process\w* on (\d+) host", line):
            self.coordinator, self.size, self.stepped = host, int(match[1]), 0.0
            self.starts += 1
        elif line.startswith("{"):
            event = json.loads(line)
            if event["event"] in ("step", "checkpoint"):
                self.step, self.stepped = event["step"], time.monotonic()

    def fail(self, why):
        lines = "".join(f"--- {host.name}\n{''.join(host.lines[-30:])}" for host in self.hosts)
        sys.exit(f"{why}\n{lines}")

    def wait_until(self, holds, why, seconds):
        if not runs.holds_within(seconds, holds):
            self.fail(why)

    def wait_for_steps(self, hosts, since):
        """Waits until that number of hosts runs steps; returns the seconds since `moment`."""
        self.wait_until(lambda: self.size == hosts and self.stepped > since, f"no step of {hosts} hosts", HANGS_SECONDS)
        return self.stepped - since

    def run_a_while(self, rng):
        moment = time.monotonic()
        self.wait_until(lambda: self.stepped > moment + 1, "no steps", HANGS_SECONDS)
        time.sleep(rng.uniform(0, 2))

    # The failures. Each returns a description of the result.

    def fall_out(self, host, begin, end):
        """The host is away from begin() to end()."""
        others = [pid for other in self.hosts if other is not host for pid in other.launcher.children()]
        moment = time.monotonic()
        begin()
        self.wait_until(lambda: not any(map(runs.is_there, others)), "the others have not stopped", self.within)
        stopped = time.monotonic() - moment
        fewer = self.wait_for_steps(HOSTS - 1, moment)
        time.sleep(1)
        moment = time.monotonic()
        end()
        more = self.wait_for_steps(HOSTS, moment)
        return f"all stopped after {stopped:.1f} s, a step of two after {fewer:.1f} s, of three {more:.1f} s after its return"

    def member(self, rng):
        return rng.choice([host for host in self.hosts if host is not self.coordinator])

    def do_kill(self, rng):
        host = self.member(rng)
        return self.fall_out(host, host.kill, host.start)

    def do_crash(self, _):
        host = self.coordinator

        def begin():
            host.set_link("down")
            host.kill()

        def end():
            host.set_link("up")
            host.start()

        return self.fall_out(host, begin, end)

    def do_cut(self, rng, host=None):
        host = host or self.member(rng)
        return self.fall_out(host, lambda: host.set_link("down"), lambda: host.set_link("up"))

    def do_cut_store(self, rng):
        return self.do_cut(rng, self.coordinator)

    def do_freeze(self, rng):
        host = self.member(rng)
        pids = host.launcher.pids()
        return self.fall_out(host, lambda: runs.send(pids, signal.SIGSTOP), lambda: runs.send(pids, signal.SIGCONT))

    def do_delay(self, rng):
        starts, step = self.starts, self.step
        host = rng.choice(self.hosts)
        delay = host.delay()
        time.sleep(15)
        subprocess.run(["tc", "-n", host.space, "qdisc", "del", "dev", "eth0", "root"], check=True)
        moment = time.monotonic()
        self.wait_for_steps(HOSTS, moment)
        if self.starts != starts:
            self.fail("the delay stopped the training")
        return f"{delay}: {self.step - step} steps on the way, nothing started again"


def stop_and_compare(job, rng):
    """Stops one launcher by a signal: all must stop after the same step, and save."""
    rng.choice(job.hosts).launcher.process.terminate()
    codes = [host.launcher.finish(HANGS_SECONDS)[0] for host in job.hosts]
    if codes != [kill.STOPPED] * HOSTS:
        job.fail(f"the launchers ended with {codes}")
    steps = job.there.step("disturbed")
    job.there.finished("undisturbed", f"train.steps={steps}")
    job.there.require_weights("disturbed", job.there.weights("undisturbed"), "three hosts")
    print(f"stopped after step {steps}: the weights are those of one process, bit for bit", flush=True)


def refuse_folder_that_is_not_shared(job):
    for host in job.hosts:
        host.lines.clear()
        host.start("mount -t tmpfs none runs" if host.number == 2 else "true")
    codes = [host.launcher.finish(HANGS_SECONDS)[0] for host in job.hosts]
    output = "".join(line for host in job.hosts for line in host.lines)
    if codes != [2] * HOSTS or "does not exist: launchers on several hosts need the same runs folder" not in output:
        job.fail(f"a folder that is not shared: {codes}")
    print("a folder of runs that is not shared is rejected by all", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--within", type=float, default=40,
                        help="seconds until all others have stopped; on an idle machine 10 suffices")
    parser.add_argument("--verbose", action="store_true", help="print the output of the launchers with times")
    arguments = parser.parse_args()
    if os.geteuid() != 0:
        runs.skip("network namespaces need root")
    missing = [name for name in ("ip", "tc", "unshare") if shutil.which(name) is None]
    if missing:
        runs.skip(f"no {' and '.join(missing)}")
    rng = random.Random(arguments.seed)
    with runs.make(arguments.program, RECIPE, "idx data 1000") as there, contextlib.ExitStack() as stack:
        try:
            job = Job(there, stack, arguments.within, arguments.verbose)
        except subprocess.CalledProcessError as error:
            runs.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
        for host in job.hosts:
            host.start()
        job.wait_for_steps(HOSTS, time.monotonic())
        for round_number in range(max(arguments.rounds, 1)):
            names = ["kill", "crash"]
            if arguments.rounds > 0:
                names += ["cut", "cut_store", "freeze", "delay"]
                rng.shuffle(names)
            for name in names:
                job.run_a_while(rng)
                print(f"{round_number + 1} {name}: {getattr(job, 'do_' + name)(rng)}", flush=True)
        stop_and_compare(job, rng)
        if arguments.rounds > 0:
            refuse_folder_that_is_not_shared(job)


if __name__ == "__main__":
    main()
