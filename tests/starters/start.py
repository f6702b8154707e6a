#!/usr/bin/env python3
"""Trains in two processes started by a real launcher, and compares the weights with those of 'gallop launch'.

    start.py PROGRAM torchrun|mpirun|srun

Exits with 77 and a message if the launcher is not installed. srun has its own Slurm, on loopback, which needs root.
"""

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "chaos"), os.path.join(HERE, "..", "scenario")]
import kill  # noqa: E402
import runs  # noqa: E402

DAEMON_SECONDS = 120
RECIPE = """\
data: {name: mnist, path: data, batch_size: 32}
model: {name: mlp, hidden: [64], dropout: 0.1}
optimizer: {name: adamw, lr: 0.01}
train: {epochs: 2, precision: fp32, channels_last: "false"}
"""


def torchrun():
    python = runs.test_python()
    if subprocess.run([python, "-c", "import torch.distributed.run"], capture_output=True).returncode != 0:
        runs.skip(f"{python} has no torch")
    return [python, "-m", "torch.distributed.run", "--no-python", "--standalone", "--nproc-per-node", "2"]


def mpirun():
    if shutil.which("mpirun") is None:
        runs.skip("no mpirun")
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-x", f"MASTER_PORT={runs.free_port()}", "-n", "2"]


SLURM_CONF = """\
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=batch_sched_delay=1,sched_interval=2
SlurmUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} RealMemory=1000 State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE
PartitionName=urgent Nodes={host} MaxTime=INFINITE State=UP PriorityTier=10 OverSubscribe=EXCLUSIVE
"""


@contextlib.contextmanager
def slurm(folder):
    """A Slurm of one node; its daemons are ended by process id."""
    missing = [name for name in ("srun", "slurmctld", "slurmd", "munged") if shutil.which(name) is None]
    if missing:
        runs.skip(f"no {', '.join(missing)}")
    if os.geteuid() != 0:
        runs.skip("Slurm's daemons need root")
    host = socket.gethostname().split(".")[0]
    for name in ("state", "spool"):
        os.makedirs(os.path.join(folder, name))
    path = os.path.join(folder, "slurm.conf")
    with open(path, "w", encoding="utf-8") as file:
        ports = runs.free_port(), runs.free_port()
        file.write(SLURM_CONF.format(host=host, ports=ports, folder=folder, cpus=os.cpu_count()))
    key = os.path.join(folder, "munge.key")
    with open(key, "wb") as file:
        file.write(os.urandom(128))
    os.chmod(key, 0o400)
    os.chmod(folder, 0o755)
    munge = ["munged", "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={key}",
             f"--pid-file={folder}/munge.pid", f"--log-file={folder}/munge.log", f"--seed-file={folder}/munge.seed"]
    with contextlib.ExitStack() as stack:
        environment = os.environ | {"SLURM_CONF": path}
        for command, answer in (
                (munge, ["test", "-S", f"{folder}/munge.socket"]),
                (["slurmctld", "-D", "-f", path], ["sh", "-c", "scontrol ping | grep -w UP"]),
                (["slurmd", "-D", "-f", path], ["sh", "-c", "sinfo --noheader --format=%T | grep idle"])):
            daemon = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(daemon.wait)
            stack.callback(daemon.kill)

            def answers(ask=answer):
                return subprocess.run(ask, env=environment, capture_output=True).returncode == 0

            if not runs.holds_within(DAEMON_SECONDS, lambda: daemon.poll() is not None or answers()):
                sys.exit(f"{command[0]} does not answer")
            if daemon.poll() is not None:
                runs.skip(f"{command[0]} does not run here")
        yield environment


def processes(starter, folder, stack):
    """The environment and the arguments that start two processes."""
    if starter == "srun":
        return (stack.enter_context(slurm(folder)) | {"MASTER_PORT": str(runs.free_port())},
                ["srun", "-n", "2", "--overcommit"])
    return dict(os.environ), {"torchrun": torchrun, "mpirun": mpirun}[starter]()


def run(command, folder, environment, name):
    result = subprocess.run([*command, "train", "recipe.yaml", "--name", name], cwd=folder, env=environment,
                            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=runs.HANGS_SECONDS)
    output = result.stdout + result.stderr
    if result.returncode != 0:
        sys.exit(f"{command[0]} ended with {result.returncode}:\n{output}")
    if not re.search(r"processes +2, ddp", output):
        sys.exit(f"they did not train together:\n{output}")
    return kill.weights_hash(os.path.join(folder, "runs", name))


def main():
    program, starter = os.path.abspath(sys.argv[1]), sys.argv[2]
    with tempfile.TemporaryDirectory(prefix="gallop-start-") as folder, contextlib.ExitStack() as stack:
        os.makedirs(os.path.join(folder, "data"))
        kill.make_data.make_idx(os.path.join(folder, "data"), 500)
        with open(os.path.join(folder, "recipe.yaml"), "w", encoding="utf-8") as file:
            file.write(RECIPE)
        environment, command = processes(starter, folder, stack)
        wanted = run([program, "launch", "-n", "2"], folder, os.environ, "launched")
        found = run([*command, program], folder, environment, "started")
        if found != wanted:
            sys.exit(f"{starter}: the weights differ")
        print(f"{starter}: two processes, and the weights are those of 'gallop launch', bit for bit")


if __name__ == "__main__":
    main()
