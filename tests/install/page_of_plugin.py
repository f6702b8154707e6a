#!/usr/bin/env python3
"""Checks that the page shows a run and a sweep whose components are those of a plug-in.

    page_of_plugin.py PROGRAM FOLDER PLUGIN      FOLDER: has runs/ and studies/ of install_test
"""

import json
import pathlib
import sys
import urllib.parse
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "ui"))
from runs_of_test import Ui  # noqa: E402: the module is in the folder above

program, folder, plugin = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]


def expect(condition, what):
    if not condition:
        sys.exit(what)


with Ui(program, folder / "runs", "--studies", str(folder / "studies"), "--plugin", plugin) as ui:

    def get(path, **query):
        address = f"http://{ui.address}/api/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(address, timeout=120) as answer:
            return json.load(answer)

    names = {run["name"] for run in get("runs")["runs"]}
    expect("rings" in names, f"the run is not in the table: {names}")
    run = get("run", name="rings")
    options = {option["name"]: option["value"] for option in run["params"]}
    for name, value in {"data.name": "rings", "model.name": "radial", "optimizer.name": "signum",
                        "optimizer.inertia": "0.5", "schedule.name": "halving"}.items():
        expect(options.get(name) == value, f"{name} is {options.get(name)}")
    expect([file["path"] for file in run["identity"][0]["plugins"]] == [plugin], f"other plug-ins: {run['identity'][0]['plugins']}")
    sweep = get("sweep", name="signum")
    expect(sweep["complete"] == 2, f"the sweep is {sweep}")
