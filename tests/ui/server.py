#!/usr/bin/env python3
"""Tests the server of 'gallop ui' with requests of browsers, of other sites and of attackers.

    server.py PROGRAM [NAME...]      NAME: only the tests whose names contain it
"""

import fcntl
import http.client
import json
import math
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from runs_of_test import Ui, import_runs

PROGRAM = os.path.abspath(sys.argv[1])
HANGS_SECONDS = 120  # Longer than any request takes on a busy machine.
MARKUP = "<img src=x onerror=alert(1)>"


def points_of(count, tag="evaluation/accuracy"):
    return [(step, tag, math.sin(step)) for step in range(1, count + 1)]


def make_runs(folder):
    runs = folder / "runs"
    runs.mkdir()
    import_runs(PROGRAM, runs, {
        "one": points_of(20),
        "two": points_of(10) + points_of(10, "train/loss"),
        MARKUP: [(1, "evaluation/" + MARKUP, 1.0)],
        "wild": [(1, "evaluation/accuracy", 0.5), (2, "evaluation/accuracy", math.nan),
                 (3, "evaluation/accuracy", math.inf), (4, "evaluation/accuracy", -math.inf)]})
    return runs


class Answer:
    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split()[1]) if len(lines[0].split()) > 1 else 0
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()

    def json(self):
        return json.loads(self.body)


def exchange(ui, raw, seconds=HANGS_SECONDS):
    """The server's response to these bytes until it closes the connection."""
    with socket.create_connection(("127.0.0.1", ui.port), timeout=seconds) as connection:
        try:
            connection.sendall(raw)
        except (BrokenPipeError, ConnectionResetError):
            pass  # The server has closed the connection.
        answer = b""
        try:
            while piece := connection.recv(1 << 16):
                answer += piece
        except ConnectionResetError:
            pass
        return answer


def ask(ui, target, method="GET", headers=None, body=b""):
    lines = {"Host": f"127.0.0.1:{ui.port}", "Connection": "close", **(headers or {})}
    if body:
        lines["Content-Length"] = str(len(body))
    head = f"{method} {target} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items()
                                                        if value is not None)
    return Answer(exchange(ui, head.encode("latin-1") + b"\r\n" + body))


def get(ui, target):
    answer = ask(ui, target)
    assert answer.status == 200, (target, answer.status, answer.body)
    return answer.json()


def own_headers(ui):
    return {"Origin": f"http://127.0.0.1:{ui.port}", "X-Gallop-Token": get(ui, "/api/session")["token"],
            "Content-Type": "application/json"}


def post(ui, name, body, **changed):
    headers = {**own_headers(ui), **{name.replace("_", "-"): value for name, value in changed.items()}}
    return ask(ui, f"/api/{name}", "POST", headers, json.dumps(body).encode())


def expect(condition, *what):
    if not condition:
        raise AssertionError(what)


def until(call, *what):
    """Repeats a call until its result is true, and returns it."""
    end = time.monotonic() + HANGS_SECONDS
    while not (found := call()):
        expect(time.monotonic() < end, "never came", *what)
        time.sleep(0.02)
    return found


def is_closed(connection):
    """Whether the server has closed a connection on which it sends nothing."""
    if not select.select([connection], [], [], 0)[0]:
        return False
    try:
        return connection.recv(1, socket.MSG_PEEK) == b""
    except OSError:
        return True


def snapshot(runs):
    """All files of a folder except the index, with their contents."""
    return {path.relative_to(runs): path.read_bytes() for path in sorted(runs.rglob("*"))
            if path.is_file() and not path.name.startswith(".index.db")}


# What MLflow's server gave away: each as a request (reliability of HTTP servers on a desk).

def test_no_path_reaches_the_file_system(ui, runs):
    secret = runs.parent / "secret.txt"
    secret.write_text("a secret of this machine")
    up = "../" * 12
    targets = [
        "/../../../../etc/passwd", "/..%2f..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..\\..\\etc\\passwd",
        "/%5c..%5c..%5cetc%5cpasswd", "//etc/passwd", "//proc/self/environ", "/%2fetc%2fpasswd", "/.//etc/passwd",
        "/%252e%252e/%252e%252e/etc/passwd", "/%25%32%65%25%32%65/etc/passwd", "/..;/etc/passwd", "/....//etc/passwd",
        "/a/../../etc/passwd", "/api/../etc/passwd", "/api/run/../../secret.txt", "/static/../secret.txt",
        "/index.html%00.js", "/main.js/..", "/api/session/", "/api//session", "/API/SESSION", "/.index.db",
        "/runs/.index.db", "/one/metrics.log", "/page/index.html", "/get-artifact?path=/etc/passwd",
        "/model-versions/get-artifact?name=a&version=1&path=etc/passwd", "/ajax-api/2.0/mlflow/runs/search",
        "/#/etc/passwd", "/a#b", "/a?/a#..", "/api/session#?path=/etc/passwd", "/~root/.ssh/id_rsa", "/%00", "/%0a",
        "/api/session%00", "/api/session%0d%0aX-Injected:%201", "/%", "/%zz", "/\x7f", "/%ff"]
    for name in (up + "etc/passwd", "/etc/passwd", "file:///etc/passwd", "..", ".", "", ".trash", ".index.db",
                 "one/../one", "./one", "one/", "../runs/one", "../secret.txt", "..%2fsecret.txt", "one/metrics.log",
                 "http://127.0.0.1/", "a?/a", "one%00", "one%00/../../secret.txt", "one%0a", "ONE"):
        targets += [f"/api/run?name={name}", f"/api/run/recipe?name={name}", f"/api/run/log?name={name}",
                    f"/api/curves?metric=accuracy&runs={name}", f"/api/compare?runs={name}",
                    f"/api/export.csv?metric=accuracy&runs={name}", f"/api/search?name={name}", f"/api/search/plot.svg?name={name}",
                    f"/api/run/schedule?name={name}", f"/api/run/samples?name={name}",
                    f"/api/run/samples/image?name={name}&image=00.png", f"/api/run/samples/image?name=one&image={name}"]
    for target in targets:
        answer = ask(ui, target)
        expect(answer.status in (400, 404), target, answer.status, answer.body[:300])
        expect(b"secret of" not in answer.body and b"root:" not in answer.body, target)
        expect("x-injected" not in answer.headers, target)


def test_odd_targets(ui, runs):
    for line in (b"GET http://evil.example/ HTTP/1.1", b"GET * HTTP/1.1", b"GET evil HTTP/1.1", b"GET  HTTP/1.1",
                 b"GET /a b HTTP/1.1", b"GET /\xff HTTP/1.1", b"GET /api/session\x00.js HTTP/1.1",
                 b"GET /api/session\x0bx HTTP/1.1"):
        answer = Answer(exchange(ui, line + b"\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % ui.port))
        expect(answer.status in (0, 400, 403, 404), line, answer.status, answer.body[:300])
        expect(b"token" not in answer.body, line)


def test_host(ui, runs):
    for host in (f"127.0.0.1:{ui.port}", f"localhost:{ui.port}", f"[::1]:{ui.port}"):
        expect(ask(ui, "/api/session", headers={"Host": host}).status == 200, host)
    for host in ("evil.example", f"evil.example:{ui.port}", "127.0.0.1", "localhost", f"192.168.0.1:{ui.port}",
                 f"10.0.0.1:{ui.port}", f"127.0.0.2:{ui.port}", f"localhost:{ui.port}.evil.example", f"a@localhost:{ui.port}",
                 f"127.0.0.1:{ui.port}, evil.example", "", None):
        answer = ask(ui, "/api/session", headers={"Host": host})
        expect(answer.status in (400, 403), host, answer.status)
        expect(b"token\"" not in answer.body, host)
    twice = b"GET /api/session HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n"
    expect(Answer(exchange(ui, twice % (ui.port, ui.port))).status in (400, 403))


def test_origin_and_token(ui, runs):
    before = snapshot(runs)
    body = {"run": "one", "key": "k", "value": "v"}
    refused = [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": None}, {"X_Gallop_Token": None},
               {"X_Gallop_Token": ""}, {"X_Gallop_Token": "0" * 64}, {"Host": "evil.example"}]
    for changed in refused:
        expect(post(ui, "tag", body, **changed).status == 403, changed)
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", None):
        expect(post(ui, "tag", body, Content_Type=kind).status == 400, kind)
    expect(ask(ui, "/api/session", headers={"Origin": "http://evil.example"}).status == 403)
    expect(snapshot(runs) == before)
    expect(post(ui, "tag", body).status == 200)
    expect(json.loads((runs / "one" / "labels.json").read_text())["tags"]["k"] == "v")


def test_reading_writes_nothing(ui, runs):
    get(ui, "/api/runs")
    before = snapshot(runs)
    token = get(ui, "/api/session")["token"]
    for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        for name in ("tag", "note", "delete", "restore"):
            answer = ask(ui, f"/api/{name}?run=one&key=k&value=v&text=t&token={token}", method, own_headers(ui))
            expect(answer.status == 405, method, name, answer.status)
    for method in ("PUT", "DELETE", "OPTIONS", "POST"):
        answer = ask(ui, "/api/runs", method, own_headers(ui), b"{}")
        expect(answer.status == 405, method, answer.status)
        expect("access-control-allow-origin" not in answer.headers)
    expect(snapshot(runs) == before)


def test_changes_name_runs_alone(ui, runs):
    outside = runs.parent / "outside"
    outside.mkdir()
    (outside / "recipe.yaml").write_text("{}")
    before, kept = snapshot(runs), snapshot(outside)
    for name in ("../outside", "..", ".", "/", str(outside), "../../etc", "", "one/..", "one/../../outside", ".trash",
                 "..\\outside", "%2e%2e/outside", "one\0", "file:" + str(outside)):
        for action, more in (("delete", {}), ("restore", {}), ("note", {"text": "x"}), ("tag", {"key": "k", "value": "v"})):
            answer = post(ui, action, {"run": name, **more})
            expect(answer.status in (400, 404), action, name, answer.status, answer.body)
    expect(snapshot(runs) == before and snapshot(outside) == kept)
    shutil.rmtree(outside)


def test_delete_and_restore(ui, runs):
    expect(post(ui, "delete", {"run": "two"}).status == 200)
    expect(ask(ui, "/api/run?name=two").status == 404)
    expect((runs / ".trash" / "two" / "metrics.log").exists())
    expect(post(ui, "restore", {"run": "two"}).status == 200)
    expect(get(ui, "/api/run?name=two")["name"] == "two")
    with open(runs / "two" / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answer = post(ui, "delete", {"run": "two"})
        expect(answer.status == 400 and "training" in answer.json()["error"], answer.body)


def test_headers(ui, runs):
    for target in ("/", "/chart.js", "/api/session", "/api/nothing", "/nothing", "/%00"):
        answer = ask(ui, target)
        policy = answer.headers.get("content-security-policy", "")
        expect("default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy, target)
        expect(answer.headers.get("x-content-type-options") == "nosniff", target)
        expect(answer.headers.get("cross-origin-resource-policy") == "same-origin", target)
        expect("access-control-allow-origin" not in answer.headers, target)
        expect("no-store" in answer.headers["cache-control"] or target in ("/", "/chart.js"), target)
    page = ask(ui, "/")
    expect(page.headers["content-type"].startswith("text/html"), page.headers)
    again = ask(ui, "/", headers={"If-None-Match": page.headers["etag"]})
    expect(again.status == 304 and not again.body, again.status)
    head = ask(ui, "/", "HEAD")
    expect(head.status == 200 and not head.body and head.headers["content-length"] == str(len(page.body)))
    expect(not ask(ui, "/api/events", "HEAD").body)


def test_limits(ui, runs):
    expect(ask(ui, "/api/session", headers={"X-Long": "x" * 15000}).status == 200)
    expect(ask(ui, "/api/session", headers={"X-Long": "x" * 17000}).status == 431)
    expect(ask(ui, "/api/session", headers={f"X-{i}": "x" * 100 for i in range(160)}).status == 431)
    expect(ask(ui, "/api/session", headers={"X-Long": "x" * 200000}).status in (0, 413, 431))
    expect(ask(ui, "/" + "x" * 17000).status == 431)
    expect(ask(ui, "/" + "x" * 200000).status in (0, 414, 431))
    expect(ask(ui, "/api/run?name=" + "x" * 8192).status == 404)
    expect(ask(ui, "/api/run?name=" + "x" * 8193).status == 400)
    expect(post(ui, "note", {"run": "one", "text": "x" * 50000}).status == 200)
    expect(post(ui, "note", {"run": "one", "text": "x" * 65536}).status == 413)
    expect(post(ui, "note", {"run": "one", "text": "x" * 3_000_000}).status == 413)
    chunked = ("POST /api/note HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n"
               % ui.port + "".join(f"{name}: {value}\r\n" for name, value in own_headers(ui).items()) + "\r\n")
    expect(Answer(exchange(ui, chunked.encode() + b"8000\r\n" + b"x" * 0x8000 + b"\r\n" + b"9000\r\n" + b"x" * 0x9000 +
                           b"\r\n0\r\n\r\n")).status == 413)
    expect(ask(ui, "/api/runs?limit=100000").status == 400)
    expect(get(ui, "/api/run?name=one")["note"] == "x" * 50000)


def test_bodies_that_are_no_json(ui, runs):
    for body in (b"{", b"[" * 60000, b'{"run": "one", "text": "\xff"}', b'{"run": "one", "text": 1}', b"null", b'"one"', b"\0"):
        answer = ask(ui, "/api/note", "POST", own_headers(ui), body)
        expect(answer.status == 400 and "error" in answer.json(), body[:20], answer.status)


def test_slow_clients(ui, runs):
    slow = []
    for sent in (b"", b"GET /api/session HT", b"GET /api/session HTTP/1.1\r\nHost: x\r\n",
                 b"POST /api/note HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Length: 1000\r\n\r\nabc" % ui.port):
        for _ in range(8):
            connection = socket.create_connection(("127.0.0.1", ui.port), timeout=HANGS_SECONDS)
            connection.sendall(sent)
            slow.append(connection)
    # Other connections are not blocked.
    expect(get(ui, "/api/session")["version"])
    expect(not is_closed(slow[0]), "the answer came after the slow clients were gone")
    # A connection that sends one byte per second is closed, too.
    trickle = socket.create_connection(("127.0.0.1", ui.port), timeout=1)
    trickle.sendall(b"GET /api/session HTTP/1.1\r\nX: ")
    gone, end = False, time.monotonic() + HANGS_SECONDS
    while not gone and time.monotonic() < end:
        try:
            trickle.sendall(b"x")
            gone = trickle.recv(1) == b""
        except TimeoutError:
            pass
        except OSError:
            gone = True
    expect(gone, "a slow client was kept")
    for connection in slow:
        try:
            while connection.recv(4096):
                pass
        except OSError:
            pass
        connection.close()


def test_connections(ui, runs):
    """Connections beyond the maximum wait, and are served later."""
    held = [socket.create_connection(("127.0.0.1", ui.port), timeout=HANGS_SECONDS) for _ in range(64)]
    waiting = socket.create_connection(("127.0.0.1", ui.port), timeout=HANGS_SECONDS)
    waiting.sendall(b"GET /api/session HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nConnection: close\r\n\r\n" % ui.port)
    waiting.settimeout(0.5)
    try:
        # Only if the machine is so busy that the silent connections have already been closed.
        expect(waiting.recv(1, socket.MSG_PEEK) == b"" or any(map(is_closed, held)), "the 65th connection was served")
    except TimeoutError:
        pass
    for connection in held:
        connection.close()
    waiting.settimeout(HANGS_SECONDS)
    expect(waiting.recv(12) == b"HTTP/1.1 200")
    waiting.close()


class Events:
    """A stream of server-sent events."""

    def __init__(self, ui):
        self.connection = http.client.HTTPConnection("127.0.0.1", ui.port, timeout=HANGS_SECONDS)
        self.connection.request("GET", "/api/events", headers={"Host": f"127.0.0.1:{ui.port}"})
        self.answer = self.connection.getresponse()

    def next(self):
        """(changed, removed) of the next event."""
        end = time.monotonic() + HANGS_SECONDS
        while line := self.answer.readline():
            if line.startswith(b"data: "):
                data = json.loads(line[6:])
                return set(data["changed"]), set(data["removed"])
            expect(time.monotonic() < end, "no event was sent")
        raise AssertionError("the stream has ended")

    def wait_for_change(self, name):
        while name not in self.next()[0]:
            pass

    def close(self):
        self.connection.close()
        self.answer.close()


def test_events(ui, runs):
    get(ui, "/api/runs")
    lines = (runs / "one" / "metrics.log").read_bytes().splitlines(keepends=True)
    events = Events(ui)
    expect(events.answer.status == 200 and events.answer.headers["Content-Type"] == "text/event-stream")
    new = runs / "new"
    shutil.copytree(runs / "one", new)
    (new / "metrics.log").write_bytes(b"".join(lines[:8]))

    def count():
        answer = ask(ui, "/api/curves?metric=accuracy&runs=new")
        return answer.json()["curves"][0]["count"] if answer.status == 200 else 0

    # The run may be noticed while it is copied.
    events.wait_for_change("new")
    before = sum(b"accuracy" in line for line in lines[:8])
    while count() != before:
        events.wait_for_change("new")
    with open(new / "metrics.log", "ab") as log:
        log.write(b"".join(lines[8:12]))
    while count() != before + 4:
        events.wait_for_change("new")
    shutil.rmtree(new)
    while "new" not in events.next()[1]:
        pass
    events.close()


def test_a_training_that_is_killed(ui, runs):
    run = runs / "killed"
    events = Events(ui)

    def state():
        answer = ask(ui, "/api/run?name=killed")
        return answer.json()["state"] if answer.status == 200 else ""

    shutil.copytree(runs / "one", run)
    log = (run / "metrics.log").read_bytes().splitlines(keepends=True)
    with open(run / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        (run / "metrics.log").write_bytes(b"".join(log[:5]))
        while state() != "training":
            events.wait_for_change("killed")
    while state() != "died":
        events.wait_for_change("killed")
    events.close()
    shutil.rmtree(run)


def listen(ui):
    """Opens a stream, once one is available: the server has to notice that others were closed."""
    def one():
        stream = Events(ui)
        return stream if stream.answer.status == 200 else None

    return until(one, "room for a listener")


def test_many_listeners(ui, runs):
    streams = [listen(ui) for _ in range(16)]
    expect(Events(ui).answer.status == 503)
    expect(get(ui, "/api/session")["version"])
    for stream in streams:
        stream.close()
    listen(ui).close()


def test_numbers_that_json_has_not(ui, runs):
    curve = get(ui, "/api/curves?metric=accuracy&runs=wild")["curves"][0]
    expect(curve["y"] == [0.5, "NaN", "Infinity", "-Infinity"], curve["y"])
    expect(curve["latest"]["value"] == "-Infinity" and curve["least"]["value"] == 0.5)
    row = get(ui, "/api/runs?columns=metrics.accuracy&filter=name%3D%3D'wild'")["runs"][0]
    expect(row["values"] == ["-Infinity"], row)
    expect(ask(ui, "/api/export.csv?metric=accuracy&runs=wild").body.count(b"nan") == 1)
    expect(b"<svg" in ask(ui, "/api/plot.svg?metric=accuracy&runs=wild").body)


def test_markup_is_text(ui, runs):
    name = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E"
    expect(get(ui, f"/api/run?name={name}")["name"] == MARKUP)
    expect(post(ui, "note", {"run": MARKUP, "text": "<script>"}).status == 200)
    for target in (f"/api/run?name={name}", "/api/runs", f"/api/run?name={name}x", "/%3Cscript%3E",
                   f"/api/curves?metric={name}&runs={name}"):
        answer = ask(ui, target)
        expect(answer.headers["content-type"] == "application/json", target)
        answer.json()
    svg = ask(ui, f"/api/plot.svg?metric={name}&runs={name}")
    expect(svg.status == 200 and b"<img" not in svg.body and "attachment" in svg.headers["content-disposition"])
    csv = ask(ui, f"/api/export.csv?metric={name}&runs={name}")
    expect('"' not in csv.headers["content-disposition"].split('"')[1] and "<" not in csv.headers["content-disposition"])


def test_damaged_runs_are_marked(ui, runs):
    for name in ("cut", "flipped", "empty", "newer", "bare"):
        shutil.copytree(runs / "one", runs / name)
    log = (runs / "one" / "metrics.log").read_bytes()
    (runs / "cut" / "metrics.log").write_bytes(log[:len(log) // 2 + 3])
    (runs / "cut" / "run.json").write_bytes(b'{"version": "0.1')
    flipped = bytearray(log)
    flipped[300] ^= 1
    (runs / "flipped" / "metrics.log").write_bytes(flipped)
    (runs / "empty" / "metrics.log").write_bytes(b"")
    (runs / "empty" / "recipe.yaml").write_bytes(b"")
    (runs / "newer" / "run.json").write_text('{"format": 99}')
    for path in (runs / "bare").iterdir():
        if path.name != "recipe.yaml":
            path.unlink()

    def rows():
        return {row["name"]: row for row in get(ui, "/api/runs?limit=1000&columns=metrics.accuracy")["runs"]}

    until(lambda: {"cut", "flipped", "empty", "newer", "bare", "one"} <= set(rows()), "all runs")
    until(lambda: "damaged" in rows()["flipped"]["trouble"], "the damage")
    expect(not rows()["one"]["trouble"])
    for name in ("cut", "flipped", "empty", "newer", "bare"):
        run = get(ui, f"/api/run?name={name}")
        expect("\n" not in run["trouble"], run["trouble"])
        expect(name in ("empty", "bare") or run["metrics"], name)
        get(ui, f"/api/run/log?name={name}")
        get(ui, f"/api/compare?runs={name},one")
    expect("run.json" in get(ui, "/api/run?name=cut")["trouble"])
    count = get(ui, "/api/curves?metric=accuracy&runs=flipped")["curves"][0]["count"]
    expect(count == 19, count)
    for name in ("cut", "flipped", "empty", "newer", "bare"):
        shutil.rmtree(runs / name)


def test_for_prometheus(ui, runs):
    answer = ask(ui, "/metrics")
    expect(answer.status == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4"), answer.headers)
    expect(b"# TYPE gallop_run_metric gauge" in answer.body, answer.body)
    if shutil.which("promtool"):  # A tool of Prometheus.
        subprocess.run(["promtool", "check", "metrics"], input=answer.body, check=True, stdout=subprocess.DEVNULL)


def test_a_deleted_index(ui, runs):
    get(ui, "/api/runs")
    for path in runs.glob(".index.db*"):
        path.unlink()
    expect(len(get(ui, "/api/runs")["runs"]) >= 4)
    expect(post(ui, "note", {"run": "one", "text": "after"}).status == 200)
    rows = {row["name"]: row["note"] for row in get(ui, "/api/runs")["runs"]}
    expect(rows["one"] == "after", rows)
    for path in runs.glob(".index.db*"):
        path.write_bytes(b"no database" * 1000)
    expect(post(ui, "note", {"run": "one", "text": "again"}).status == 200)
    expect({row["name"]: row["note"] for row in get(ui, "/api/runs")["runs"]}["one"] == "again")


def test_errors_are_one_line(ui, runs):
    for target in ("/api/runs?filter=metrics.acuracy%3E1", "/api/runs?filter=(", "/api/runs?sort=x", "/api/curves?metric=x&runs=one",
                   "/api/curves?metric=accuracy&runs=missing", "/api/groups", "/api/run?name=on"):
        answer = ask(ui, target)
        message = answer.json()["error"]
        expect(answer.status in (400, 404) and message and "\n" not in message, target, answer.status, message)
    expect("did you mean" in ask(ui, "/api/runs?filter=metrics.acuracy%3E1").json()["error"])
    expect(ask(ui, "/api/curves?metric=accuracy&runs=one&axis=samples").status == 422)


def test_keep_alive(ui, runs):
    connection = http.client.HTTPConnection("127.0.0.1", ui.port, timeout=HANGS_SECONDS)
    for _ in range(50):
        connection.request("GET", "/api/session")
        answer = connection.getresponse()
        expect(answer.status == 200 and json.loads(answer.read())["runs"])
    connection.close()


# The command itself.

def test_port_in_use(ui, runs):
    result = subprocess.run([PROGRAM, "ui", str(runs), "--port", str(ui.port)], capture_output=True, text=True, timeout=HANGS_SECONDS)
    expect(result.returncode == 4 and "is in use by another program" in result.stderr, result)
    expect(len(result.stderr.strip().splitlines()) == 1, result.stderr)


def test_wrong_use(ui, runs):
    for words, part in (([str(runs / "none")], "does not exist"), ([str(runs), "--port", "70000"], "port"),
                        ([str(runs), "--host", "no.such.host.invalid"], "no.such.host.invalid")):
        result = subprocess.run([PROGRAM, "ui", *words], capture_output=True, text=True, timeout=HANGS_SECONDS)
        expect(result.returncode == 2 and part in result.stderr, words, result)


def test_ends_by_a_signal(ui, runs):
    for number in (signal.SIGINT, signal.SIGTERM):
        other = Ui(PROGRAM, runs)
        stream = Events(other)
        held = socket.create_connection(("127.0.0.1", other.port))
        code, errors = other.stop(number)
        expect(code == 0 and not errors, code, errors)
        stream.close()
        held.close()


def test_open_to_others(ui, runs):
    other = Ui(PROGRAM, runs, "--host", "0.0.0.0", "--open-to", "trainer.example", "--open-to", "10.1.2.3")
    with other:
        for name, status in (("trainer.example", 200), ("10.1.2.3", 200), ("localhost", 200), ("10.1.2.4", 403), ("0.0.0.0", 403)):
            expect(ask(other, "/api/session", headers={"Host": f"{name}:{other.port}"}).status == status, name)
    code, errors = other.stop()
    expect(code == 0 and "warning" in errors and len(errors.strip().splitlines()) == 1, errors)


def main():
    wanted = sys.argv[2:]
    tests = {name: test for name, test in globals().items()
             if name.startswith("test_") and (not wanted or any(part in name for part in wanted))}
    failed = 0
    with tempfile.TemporaryDirectory(prefix="gallop-ui-") as folder:
        runs = make_runs(pathlib.Path(folder))
        ui = Ui(PROGRAM, runs)
        for name, test in tests.items():
            try:
                test(ui, runs)
                print(f"ok      {name}", flush=True)
            except Exception as error:  # pylint: disable=broad-except
                failed += 1
                print(f"FAILED  {name}: {type(error).__name__}: {error}", flush=True)
        alive = ui.process.poll() is None
        code, errors = ui.stop()
        if not alive or code != 0 or errors:
            failed += 1
            print(f"FAILED  the server: {'ended by itself, ' if not alive else ''}code {code}: {errors}")
    sys.exit(1 if failed else 0)


main()
