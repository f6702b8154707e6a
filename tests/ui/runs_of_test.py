"""Folders of runs for tests of the page, created by 'gallop runs import' from TensorBoard event files written here."""

import os
import pathlib
import struct
import subprocess


def crc32c_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def masked_crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def record(data):
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))


def varint(number):
    data = b""
    while number >= 0x80:
        data += bytes([number & 0x7F | 0x80])
        number >>= 7
    return data + bytes([number])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def event(time, step, tag, value):
    scalar = field(1, tag.encode()) + b"\x15" + struct.pack("<f", value)
    return b"\x09" + struct.pack("<d", time) + b"\x10" + varint(step) + field(5, field(1, scalar))


def import_runs(program, runs, points):
    """points: {run: [(step, tag, value)]}; tag "train/loss" is the metric "train.loss"."""
    logdir = pathlib.Path(runs).parent / f"logdir-{len(os.listdir(pathlib.Path(runs).parent))}"
    for name, scalars in points.items():
        folder = logdir / name
        folder.mkdir(parents=True)
        data = record(b"\x09" + struct.pack("<d", 1.7e9) + field(3, b"brain.Event:2"))
        data += b"".join(record(event(1.7e9 + step, step, tag, value)) for step, tag, value in scalars)
        (folder / "events.out.tfevents.1700000000.host.1.0").write_bytes(data)
    subprocess.run([program, "runs", "import", str(logdir), "--runs", str(runs)], check=True, stdout=subprocess.DEVNULL)


class Ui:
    """'gallop ui' on a free port, from construction to stop()."""

    def __init__(self, program, runs, *options):
        self.process = subprocess.Popen([program, "ui", str(runs), "--port", "0", *options], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = self.process.stdout.readline()
        if "http://" not in line:
            raise RuntimeError(f"no address: {line!r} {self.process.stderr.read()!r}")
        self.address = line.split("http://")[1].split("/")[0]
        self.port = int(self.address.rsplit(":", 1)[1])

    def stop(self, signal=15):
        """(exit code, standard error)"""
        if self.process.poll() is None:
            self.process.send_signal(signal)
        _, errors = self.process.communicate(timeout=120)
        return self.process.returncode, errors

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
