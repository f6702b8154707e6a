#!/usr/bin/env python3
"""Tests the page of 'gallop ui' in a headless Chromium.

    page.py PROGRAM [--only NAME]...     on generated runs
    page.py --address http://127.0.0.1:6006/ [--only NAME]...     on a running server, without tests that need own runs

Needs chromium, chromium-driver, python3-selenium and libxxhash; skipped if one is missing. Exit codes: 0 all passed, 1
not, 77 skipped.
"""

import argparse
import contextlib
import fcntl
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import urllib.request

import browser as browsers
import made_runs
from browser import Api, Browser, By, Failure, Keys

sys.path.append(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from free_port import free_port  # noqa: E402

SKIPPED = 77
RUNS = 300
EXTRA_METRICS = 30
tests = []


def test(function):
    """Tests that run on any server."""
    tests.append((function, False))
    return function


def own_test(function):
    """Tests that need the generated runs."""
    tests.append((function, True))
    return function


def expect(what, found, wanted):
    if found != wanted:
        raise Failure(f"{what}: found {found!r}, not {wanted!r}")


SWEEP = """\
command: [sh, -c, 'for step in 1 2 3; do echo "{{\\"loss\\": $1, \\"step\\": $step}}"; done', one, "{x}"]
metric: {name: loss, goal: minimize}
parameters:
  x: {min: 0.0, max: 1.0}
  kind: [plain, "<b>bold</b>"]
sampler: random
trials: TRIALS
"""


def search(program, folder, trials):
    """Creates a sweep 'tiny' of a number of trials, the first of which has a run."""
    sweep = os.path.join(folder, ".tiny.yaml")
    with open(sweep, "w", encoding="utf-8") as file:
        file.write(SWEEP.replace("TRIALS", str(trials)))
    studies = studies_of(folder)
    subprocess.run([program, "tune", sweep, "--name", "tiny", "--studies", studies, "--quiet"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    runs = os.path.join(studies, "tiny", "runs")
    if not os.path.exists(os.path.join(runs, "0000", "recipe.yaml")):
        made_runs.write_run(runs, 3, "0000")


def studies_of(folder):
    return os.path.join(folder, ".studies")


def searches_of(folder):
    return os.path.join(folder, ".searches")


class Server:
    """The server on a folder."""

    def __init__(self, program, folder, port=0, options=()):
        self.folder = folder
        self.process = subprocess.Popen([program, "ui", folder, "--studies", studies_of(folder), "--searches", searches_of(folder),
                                         "--port", str(port), *options], stdout=subprocess.PIPE, text=True)
        self.address = None
        for line in self.process.stdout:
            found = re.search(r"http://127\.0\.0\.1:(\d+)/", line)
            if found:
                self.address, self.port = found[0], int(found[1])
                break
        if self.address is None:
            raise Failure(f"'{program} ui' printed no address and ended with {self.process.wait()}")

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(timeout=browsers.PATIENCE_S)
        self.process.stdout.close()
        if code != 0:
            raise Failure(f"'gallop ui' ended with {code} after SIGINT")


@contextlib.contextmanager
def serving(program, folder, port=0, options=()):
    server = Server(program, folder, port, options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.stop()


def shown_names(browser):
    return browser.run("return [...document.querySelectorAll('.row:not([hidden]):not(.group) .cell.name a')]"
                       ".map((one) => [Number(one.closest('.row').getAttribute('aria-rowindex')), one.textContent])"
                       ".sort((a, b) => a[0] - b[0]).map((one) => one[1])")


def first_names(browser, count=5):
    return shown_names(browser)[:count]


def table(browser, hash_="#/"):
    browser.open(hash_)
    browser.until("rows", lambda: shown_names(browser))


def compared(api, count=3):
    """Runs with everything that charts show, one of them named like markup."""
    names = api.names(limit=40, filter='state == "finished"')
    return [name for name in names if "," not in name and '"' not in name][:count]


def compare_hash(names, **query):
    quoted = ",".join(urllib.request.quote(name, safe="") for name in names)
    return f"#/compare?runs={quoted}" + "".join(f"&{name}={urllib.request.quote(value, safe='')}" for name, value in query.items())


def card(metric):
    return f'.card[data-metric="{metric}"]'


def open_curves(browser, api, count=3, **query):
    names = compared(api, count)
    browser.open(compare_hash(names, **query))
    browser.until("the legend of loss", lambda: len(browser.all(f"{card('loss')} tbody tr")), count)
    return names


def chart(browser, metric, expression):
    """Evaluates a JavaScript expression of `chart`, the chart of a metric, once it is drawn."""
    browser.until(f"the chart of {metric}", lambda: browser.run("const canvas = document.querySelector(arguments[0]);"
                                                                "return canvas !== null && Chart.getChart(canvas) !== undefined", f"{card(metric)} canvas"))
    return browser.run("const chart = Chart.getChart(document.querySelector(arguments[0])); return " + expression, f"{card(metric)} canvas")


def choose_option(browser, selector, value):
    """Chooses an option of a <select>."""
    browser.run("const one = document.querySelector(arguments[0]); one.value = arguments[1]; one.dispatchEvent(new Event('change'))", selector, value)


# From here on, requests whose address contains a text wait in `held` for a call.
HOLD = """
const real = window.fetch;
window.held = [];
window.fetch = (url, init) => (!String(url).includes(arguments[0]) ? real(url, init) : new Promise((done, fail) => {
  init.signal.addEventListener("abort", () => fail(new DOMException("aborted", "AbortError")));
  window.held.push(async () => {
    const response = await real(url);
    const answer = await response.json();
    done({ ok: response.ok, status: response.status, json: async () => answer });
  });
}));
"""


def let_go_of(browser, index):
    """Answers a held request, and returns after the page has received the answer."""
    browser.driver.execute_async_script("const [index, done] = arguments; window.held[index]().then(() => requestAnimationFrame(() => done()))", index)


# The table.


@test
def table_shows_the_newest_runs(browser, api):
    table(browser)
    names = api.names(limit=8)
    browser.until("names", lambda: first_names(browser, 8), names)
    total = api.get("runs", limit=1)["total"]
    expect("count", browser.text(".count"), f"{total:,} runs")
    expect("rows that readers of the screen are told of", browser.one("#runs").get_attribute("aria-rowcount"), str(total + 1))


@test
def names_are_never_markup(browser, api):
    odd = next(name for name in api.names(limit=50) if name.startswith("<img"))
    table(browser)
    browser.until("a name like markup", lambda: odd in shown_names(browser))
    expect("elements that names made", len(browser.all("img, #view script, #view b")), 0)
    browser.go(f"#/run?name={urllib.request.quote(odd, safe='')}")
    browser.until("its page", lambda: browser.text("h1"), odd)
    browser.go(compare_hash([odd]))
    browser.until("its legend", lambda: odd in browser.texts(".side-runs a"))
    expect("elements that names made", len(browser.all("img")), 0)


@test
def names_take_one_line(browser, api):
    table(browser)
    told = browser.driver.execute_async_script("const done = arguments[0]; import('/run_name.js').then(({ inOneLine }) => "
                                               "done(inOneLine('a\\nb\\u001b[31mc\\u202ed')))")
    expect("a name with control characters", told, "a\u240ab\u241b[31mc\ufffdd")


@test
def a_heading_sorts(browser, api):
    table(browser)
    heading = '[data-column="metrics.accuracy"]'
    browser.click(heading)
    wanted = api.names(sort="metrics.accuracy", descending=1, limit=5)
    browser.until("highest first", lambda: first_names(browser), wanted)
    expect("sort order", browser.one(f"[role=columnheader]:has({heading})").get_attribute("aria-sort"), "descending")
    browser.click(heading)
    browser.until("lowest first", lambda: first_names(browser), api.names(sort="metrics.accuracy", limit=5))


@test
def a_filter_chooses(browser, api):
    table(browser)
    formula = "metrics.accuracy > 0.9 and params.optimizer.lr < 0.05"
    browser.click("#filter")
    browser.press(formula, Keys.ENTER)
    answer = api.get("runs", filter=formula, limit=5)
    browser.until("count", lambda: browser.text(".count"), f"{answer['matching']:,} of {answer['total']:,} runs")
    browser.until("names", lambda: first_names(browser), [run["name"] for run in answer["runs"]])
    browser.reload()
    browser.until("the same after loading again", lambda: first_names(browser), [run["name"] for run in answer["runs"]])


@test
def a_wrong_filter_is_reported(browser, api):
    table(browser)
    before = first_names(browser)
    wrong = "metrics.acuracy > 1"
    browser.click("#filter")
    browser.press(wrong, Keys.ENTER)
    browser.until("the server's words", lambda: browser.text("#filter-error"), api.error("runs", filter=wrong))
    expect("rows stay", first_names(browser), before)


@own_test
def a_wrong_filter_is_reported_until_it_is_right(browser, api, server, program):
    with tempfile.TemporaryDirectory(prefix="gallop-ui-") as folder:
        made_runs.write_run(folder, 1, "first")
        with serving(program, folder) as other:
            browser.driver.get(f"{other.address}#/")
            browser.until("rows", lambda: shown_names(browser), ["first"])
            browser.click("#filter")
            browser.press("metrics.late > 0", Keys.ENTER)
            error = Api(other.address).error("runs", filter="metrics.late > 0")
            browser.until("the server's words", lambda: browser.text("#filter-error:not([hidden])"), error)
            made_runs.write_run(folder, 2, "second")
            browser.until("a new run in the rows before", lambda: shown_names(browser), ["second", "first"])
            expect("the error stays", browser.text("#filter-error:not([hidden])"), error)
            made_runs.append(folder, "first", 3000, {"late": 1.0})
            browser.until("the runs that the filter chooses now", lambda: shown_names(browser), ["first"])
            expect("no error", browser.text("#filter-error:not([hidden])"), None)


@test
def a_filter_that_is_typed_last_stays_with_its_view(browser, api):
    table(browser)
    browser.run("window.waiting = []; window.setTimeout = (call) => window.waiting.push(call)")
    browser.click("#filter")
    browser.press("x")
    browser.go("#/sweeps")
    browser.until("another view", lambda: browser.run("return document.title"), "Sweeps · Gallop")
    browser.until("what waits", lambda: browser.run("return window.waiting.length"))
    browser.run("for (const call of window.waiting.splice(0)) call()")
    expect("the address", browser.run("return location.hash"), "#/sweeps")


@test
def names_are_offered_in_the_filter(browser, api):
    table(browser)
    browser.click("#filter")
    browser.press("opt")
    browser.until("names", lambda: "params.optimizer.lr" in browser.texts(".suggestions li"))
    while browser.text(".suggestions [aria-selected=true]") != "params.optimizer.lr":
        browser.press(Keys.ARROW_DOWN)
    browser.press(Keys.ENTER)
    expect("taken", browser.one("#filter").get_property("value"), "params.optimizer.lr ")


@test
def a_filter_without_runs_says_so(browser, api):
    browser.open("#/?filter=metrics.accuracy%20%3E%2099")
    browser.until("a word", lambda: "No run matches this filter" in (browser.text(".empty") or ""))
    browser.click(".empty button")
    browser.until("all again", lambda: first_names(browser), api.names(limit=5))


@test
def only_seen_rows_are_made(browser, api):
    table(browser)
    total = api.get("runs", limit=1)["total"]
    browser.run("document.querySelector('#runs').scrollTop = 1e9")
    last = api.names(offset=total - 3, limit=3)
    browser.until("the last rows", lambda: shown_names(browser)[-3:], last)
    made = len(browser.all(".row"))
    if made > 80:
        raise Failure(f"{made} rows were made")


@test
def keys_do_all(browser, api):
    table(browser)
    names = api.names(limit=4)
    browser.press("/")
    browser.until("focus in the filter", lambda: browser.driver.switch_to.active_element.get_attribute("id"), "filter")
    browser.press(Keys.ESCAPE)
    browser.until("focus in the table", lambda: browser.driver.switch_to.active_element.get_attribute("id"), "runs")
    browser.press(Keys.SPACE, Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.SPACE)
    browser.until("chosen", lambda: browser.text("#compare"), "Compare 2")
    browser.press("?")
    browser.until("the list of keys", lambda: browser.all("dialog[open] kbd"))
    browser.press(Keys.ESCAPE)
    browser.until("closed", lambda: len(browser.all("dialog")), 0)
    browser.press("c")
    browser.until("compared", lambda: browser.texts(".side-runs a"), [names[0], names[2]])
    browser.press("g")
    browser.until("the table again", lambda: first_names(browser, 4), names)
    browser.until("focus comes back", lambda: browser.driver.switch_to.active_element.get_attribute("id"), "runs")
    browser.press(Keys.HOME, Keys.ARROW_DOWN, Keys.ENTER)
    browser.until("opened", lambda: browser.text("h1"), names[1])


@test
def end_goes_to_the_last_run(browser, api):
    table(browser)
    total = api.get("runs", limit=1)["total"]
    browser.run("document.querySelector('#runs').focus()")
    browser.press(Keys.END)
    browser.until("the last row is active", lambda: browser.one("#runs").get_attribute("aria-activedescendant"), f"row-{total - 1}")
    browser.until("it is there", lambda: shown_names(browser)[-1:], api.names(offset=total - 1))


@test
def shift_chooses_a_range(browser, api):
    table(browser)
    boxes = browser.all(".row .cell.name input")
    boxes[1].click()
    browser.actions().key_down(Keys.SHIFT).click(browser.all(".row .cell.name input")[4]).key_up(
        Keys.SHIFT).perform()
    browser.until("four", lambda: browser.text("#compare"), "Compare 4")
    selected = browser.all(".row .cell.name input")[2]
    browser.actions().key_down(Keys.SHIFT).click(selected).key_up(Keys.SHIFT).perform()
    browser.until("one of them stays ticked", selected.is_selected)
    expect("still four", browser.text("#compare"), "Compare 4")
    browser.click("#choose-none")
    browser.until("none", lambda: browser.text("#compare"), "Compare all")


@test
def shift_chooses_rows_that_were_never_seen(browser, api):
    table(browser)
    total = api.get("runs", limit=1)["total"]
    browser.all(".row .cell.name input")[1].click()
    browser.press(Keys.END)
    browser.until("the last row", lambda: shown_names(browser)[-1:], api.names(offset=total - 1))
    browser.actions().key_down(Keys.SHIFT).send_keys(Keys.SPACE).key_up(Keys.SHIFT).perform()
    browser.until("all but the first", lambda: browser.text("#compare"), f"Compare {total - 1:,}")


@test
def a_range_begins_in_the_same_order(browser, api):
    table(browser)
    browser.all(".row .cell.name input")[1].click()
    browser.until("one", lambda: browser.text("#compare"), "Compare 1")
    browser.click('[data-column="metrics.accuracy"]')
    wanted = api.names(sort="metrics.accuracy", descending=1, limit=5)
    browser.until("another order", lambda: first_names(browser), wanted)
    browser.actions().key_down(Keys.SHIFT).click(browser.one("#row-3 input")).key_up(Keys.SHIFT).perform()
    chosen = {api.names(limit=2)[1], wanted[3]}
    browser.until("no rows between", lambda: set(browser.run("return JSON.parse(sessionStorage.getItem('gallop.chosen'))")), chosen)


@test
def runs_in_groups(browser, api):
    table(browser)
    choose_option(browser, "[aria-label='Group by']", "params.model.name")
    groups = api.get("groups", by="params.model.name")["groups"]
    wanted = [f"{group['value']}{group['count']:,}" for group in groups]
    shown = lambda: [text.lstrip("▸▾") for text in browser.texts(".row.group:not([hidden])")]
    browser.until("groups", shown, wanted)
    browser.click(".row.group:nth-child(2)")
    value = groups[1]["value"]
    browser.until("its runs", lambda: first_names(browser), api.names(filter=f'params.model.name == "{value}"', limit=5))


@test
def columns_are_chosen(browser, api):
    table(browser)
    metric = next(name for name in reversed(api.get("columns")["metrics"]) if not name.startswith("system."))
    browser.click("#columns")
    browser.press(metric)
    browser.until("found", lambda: metric in browser.texts(".chooser-list span"))
    browser.run("[...document.querySelectorAll('.chooser-list label')].find((one) => one.textContent === arguments[0]).click()", metric)
    browser.click("dialog .primary")
    column = f"metrics.{metric}"
    browser.until("the column", lambda: browser.all(f'[data-column="{column}"]'))
    browser.reload()
    browser.until("kept", lambda: browser.all(f'[data-column="{column}"]'))
    run = next(run for run in api.get("runs", columns=column, limit=20)["runs"] if isinstance(run["values"][0], float))
    titles = lambda: browser.run("return [...document.querySelectorAll('.row')].filter((row) => row.querySelector('a')?.textContent === arguments[0])"
                                 ".flatMap((row) => [...row.querySelectorAll('[title]')].map((one) => one.title))", run["name"])
    browser.until("its value", lambda: any(_is_number(title) and float(title) == run["values"][0] for title in titles()))


def _is_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


@test
def troubles_are_marked(browser, api):
    runs = api.get("runs", limit=1000)["runs"]
    at, run = next((i, run) for i, run in enumerate(runs) if run["trouble"])
    table(browser)
    browser.run("document.querySelector('#runs').scrollTop = arguments[0]", at * 32)
    browser.until("its mark", lambda: any(one.get_attribute("title") == run["trouble"] for one in browser.all(".row.troubled .mark.trouble")))


@test
def pages_gone_by_hold_no_connection(browser, api):
    browser.open("#/")
    for _ in range(8):  # Browsers open six connections to a server.
        browser.driver.get(browser.address + "/missing-page")
        browser.driver.get(browser.address + "/#/")
        browser.until("rows", lambda: shown_names(browser))


# Curves.


@test
def curves_have_their_legend(browser, api):
    names = open_curves(browser, api)
    answer = api.get("curves", metric="loss", runs=",".join(names), axis="step", smoothing=0.6)

    def found():
        titles = [[cell.get_attribute("title") for cell in row.find_elements(By.CSS_SELECTOR, "td.value[title]")]
                  for row in browser.all(f"{card('loss')} tbody tr")]
        return [[[float(part.replace(",", "")) for part in title.split(" at step ")] for title in row if title] for row in titles]

    wanted = [[[float(curve[which]["value"]), curve[which]["step"]] for which in ("latest", "least", "most")] for curve in answer["curves"]]
    browser.until("latest, min and max of each run", found, wanted)


@test
def names_have_their_room_in_a_legend(browser, api):
    open_curves(browser, api)
    width = lambda: browser.run("return document.querySelector(arguments[0]).offsetWidth", f"{card('loss')} tbody th")
    before = width()
    places = "return [...document.querySelectorAll(arguments[0])].map((one) => one.getBoundingClientRect().right)"
    figures = browser.run(places, f"{card('loss')} .figure")
    browser.actions().move_to_element(browser.one(f"{card('loss')} .plot")).perform()
    browser.until("columns for the values at the pointer take room of names", lambda: width() < before - 100)
    expect("all other values stay where they were", browser.run(places, f"{card('loss')} .figure"), figures)
    browser.actions().move_to_element(browser.one("h1")).perform()
    browser.until("and give it back", width, before)


@test
def ticks_can_be_told_apart(browser, api):
    open_curves(browser, api)
    told = browser.driver.execute_async_script("const done = arguments[0]; import('/axes.js').then(({ shortNumber }) => done(["
        "[22576783, 22576784, 22576785].map((one) => shortNumber(one, 2)), [0.999991, 0.999992].map((one) => shortNumber(one, 4e-6)), [9999, 10000.5].map((one) => shortNumber(one, 2)),"
        "[1e30, 2.5e6, 12000, 0.25].map((one) => shortNumber(one, one))]))")
    expect("ticks", told, [["22.576783M", "22.576784M", "22.576785M"], ["0.999991", "0.999992"], ["9,999", "10,000.5"], ["1e30", "2.5M", "12k", "0.25"]])
    times = browser.driver.execute_async_script("const done = arguments[0]; import('/axes.js').then(({ placeOn, tickLabel, timeTicks }) => {"
        "const labels = (axis, from, span) => timeTicks(axis, from, from + span, 700).map(({ value }) => tickLabel(axis, value, span));"
        "const morning = new Date(2026, 2, 2, 5) / 1000;"
        "done([labels('relative', 108000, 1500), labels('relative', 3600, 5), labels('wall', morning, 3.5 * 86400), labels('wall', morning, 20 * 86400),"
        "labels('wall', morning, 5), placeOn('relative', 110700.4)]); })")
    expect("ticks of times", times, [["1 d 6 h", "1 d 6 h 5 min", "1 d 6 h 10 min", "1 d 6 h 15 min", "1 d 6 h 20 min", "1 d 6 h 25 min"],
                                     ["1 h", "1 h 1 s", "1 h 2 s", "1 h 3 s", "1 h 4 s", "1 h 5 s"], ["12:00", "03-03", "12:00", "03-04", "12:00", "03-05", "12:00"],
                                     ["03-05", "03-12", "03-19"], [f"05:00:0{second}" for second in range(6)], "1 d 6 h 45 min after its start"])


@test
def values_are_written_and_read_exactly(browser, api):
    table(browser)
    results = browser.driver.execute_async_script("const done = arguments[0]; Promise.all(['/api.js', '/filters.js', '/format.js'].map((file) => import(file)))"
        ".then(([{ numberOf }, { equalTo }, { formatBytes, formatNumber }]) => done([[999, 1000, 999499, 999700, 999.7e9, 1.5e15].map(formatBytes),"
        "['1.10', 'Infinity', 1234.5].map(formatNumber), ['5', '-5', '+5', '1e999'].map((text) => equalTo('params.a', text)),"
        "['5', '-inf', 'constructor'].map((text) => String(numberOf(text)))]))")
    expect("sizes", results[0], ["999 B", "1.00 kB", "999 kB", "1.00 MB", "1.00 TB", "1.50 PB"])
    expect("texts stay as they are", results[1], ["1.10", "∞", "1,234.5"])
    expect("formulas", results[2], ["params.a == 5", "params.a == -5", 'params.a == "+5"', 'params.a == "1e999"'])
    expect("numbers", results[3], ["5", "-Infinity", "NaN"])


@test
def only_seen_charts_are_mounted(browser, api):
    open_curves(browser, api)
    metrics = len(browser.all(".card"))
    browser.until("the first chart", lambda: browser.all(f"{card('accuracy')} canvas"))
    mounted = len(browser.all(".card canvas"))
    if not 0 < mounted < metrics / 2:
        raise Failure(f"{mounted} of {metrics} charts are mounted")
    browser.run("document.querySelector('#view').scrollTop = 1e9")
    browser.until("the first is let go", lambda: not browser.all(f"{card('accuracy')} canvas"))
    browser.run("document.querySelector('#view').scrollTop = 0")
    browser.until("and comes back", lambda: browser.all(f"{card('accuracy')} canvas"))


@test
def smoothing_is_asked_for_while_dragged(browser, api):
    open_curves(browser, api)
    raw = chart(browser, "loss", "chart.data.datasets.at(-1).data.map((point) => point.y)")
    slider = browser.one("#smoothing")
    browser.forget_requests()
    browser.actions().click_and_hold(slider).move_by_offset(30, 0).perform()
    browser.until("asked before it is let go", lambda: [one for one in browser.requests("/api/curves") if "smoothing=0.6&" not in one])
    browser.actions().release().perform()
    value = slider.get_property("value")
    browser.until("the last place", lambda: any(f"smoothing={float(value):g}&" in one for one in browser.requests("/api/curves")))
    expect("the line behind is still the raw one", chart(browser, "loss", "chart.data.datasets.at(-1).data.map((point) => point.y)"), raw)
    browser.run("const one = arguments[0]; one.value = 0; one.dispatchEvent(new Event('input')); one.dispatchEvent(new Event('change'))", slider)
    browser.until("no line behind without smoothing", lambda: chart(browser, "loss", "chart.data.datasets.length"), 3)


@test
def smooth_lines_are_the_servers(browser, api):
    names = open_curves(browser, api)
    answer = api.get("curves", metric="loss", runs=",".join(names), axis="step", smoothing=0.6, points=1000)
    shown = lambda: chart(browser, "loss", "chart.data.datasets[0].data.filter((point) => Number.isFinite(point.y)).map((point) => [point.x, point.y])")
    curve = answer["curves"][0]
    wanted = [[x, y] for x, y in zip(curve["x"], curve["smooth"]) if not isinstance(y, str)]
    if len(wanted) <= 300:
        browser.until("points", shown, wanted)


@test
def what_is_not_finite_is_a_gap(browser, api):
    for name in api.names(limit=60, filter='state == "finished"'):
        if "," in name:
            continue
        curve = api.get("curves", metric="train.loss", runs=name, axis="step", smoothing=0, points=1000)["curves"][0]
        if "NaN" in curve["y"] and "Infinity" in curve["y"]:
            break
    else:
        raise Failure("no run has a non-finite value")
    browser.open(compare_hash([name], search="^train.loss$", smoothing="0"))
    browser.until("the chart", lambda: browser.all(f"{card('train.loss')} tbody tr"))
    gaps = lambda: chart(browser, "train.loss", "chart.data.datasets[0].data.filter((point) => Number.isNaN(point.y)).map((point) => point.x)")
    browser.until("gaps", gaps, [x for x, y in zip(curve["x"], curve["y"]) if isinstance(y, str)])


@test
def dragging_zooms_exactly(browser, api):
    open_curves(browser, api)
    plot = browser.one(f"{card('loss')} .plot")
    expect("a chart's height", plot.size["height"], 210)
    browser.forget_requests()
    browser.actions().move_to_element_with_offset(plot, -60, 0).click_and_hold().move_by_offset(120, 0).release().perform()
    asked = browser.until("exact points", lambda: browser.requests("from="))[0]
    begin, end = (float(re.search(rf"[?&]{name}=([^&]+)", asked)[1]) for name in ("from", "to"))
    browser.until("what is shown", lambda: [chart(browser, "loss", "chart.scales.x.min"), chart(browser, "loss", "chart.scales.x.max")], [begin, end])
    browser.double_click(browser.one(f"{card('loss')} .plot"))
    browser.until("all again", lambda: chart(browser, "loss", "chart.scales.x.max") > end)


@test
def a_chart_takes_keys(browser, api):
    open_curves(browser, api)
    browser.run("document.querySelector(arguments[0]).focus()", f"{card('loss')} .plot")
    browser.press(Keys.ARROW_RIGHT)
    browser.until("values at the pointer", lambda: all(browser.texts(f"{card('loss')} td.here")[:1]))
    browser.forget_requests()
    browser.press("+")
    browser.until("zoomed", lambda: browser.requests("from="))
    browser.press("0")
    browser.until("all again", lambda: len(browser.all(f"{card('loss')} .whole:not([hidden])")), 0)


@test
def the_pointer_tells_values(browser, api):
    names = open_curves(browser, api, smoothing="0")
    plot = browser.one(f"{card('loss')} .plot")
    browser.actions().move_to_element(plot).perform()
    browser.until("values", lambda: any(browser.texts(f"{card('loss')} td.here")))
    at = int(re.search(r"[\d,]+", browser.text(f"{card('loss')} thead th"))[0].replace(",", ""))
    curves = api.get("curves", metric="loss", runs=",".join(names), axis="step", smoothing=0)["curves"]
    for curve, text in zip(curves, browser.texts(f"{card('loss')} td.here")):
        if not curve["x"][0] <= at <= curve["x"][-1]:
            continue
        near = sorted(range(len(curve["x"])), key=lambda i: abs(curve["x"][i] - at))[:2]
        if text == "NaN" and any(curve["y"][i] == "NaN" for i in near):
            continue
        if not any(abs(float(text.replace(",", "")) - float(curve["y"][i])) <= 1e-4 * max(1, abs(float(curve["y"][i]))) for i in near):
            raise Failure(f"{curve['run']} at {at}: {text}")
    expect("the line in other charts too", browser.run("return [...document.querySelectorAll('.cross')].filter((one) => !one.hidden).length > 1"), True)


@test
def axes_are_chosen(browser, api):
    names = open_curves(browser, api)
    for axis in ("relative", "wall", "samples"):
        browser.run("const one = document.querySelector('#axis'); one.value = arguments[0]; one.dispatchEvent(new Event('change'))", axis)
        curves = api.get("curves", metric="loss", runs=",".join(names), axis=axis, smoothing=0.6)["curves"]
        browser.until(axis, lambda: chart(browser, "loss", "chart.data.datasets[0].data.at(-1).x"), curves[0]["x"][-1])
    error = api.error("curves", metric="loss", runs=names[0], axis="tokens")
    browser.open(compare_hash(names[:1], axis="tokens"))
    browser.until("the server's words", lambda: browser.text(f"{card('loss')} .error"), error)


@test
def axes_can_be_logarithmic(browser, api):
    open_curves(browser, api)
    for text, axis in (("log y", "y"), ("log x", "x")):
        browser.run("[...document.querySelectorAll('.pair button')].find((one) => one.textContent === arguments[0]).click()", text)
        browser.until(text, lambda: chart(browser, "loss", f"chart.scales.{axis}.type"), "logarithmic")
    browser.reload()
    browser.until("kept in the address", lambda: browser.all(f"{card('loss')} tbody tr") and chart(browser, "loss", "chart.scales.y.type"), "logarithmic")


@own_test
def a_point_alone_on_a_logarithmic_axis_is_drawn(browser, api, server, program):
    with tempfile.TemporaryDirectory(prefix="gallop-ui-") as folder:
        made_runs.write_run(folder, 1, "first")
        for step, value in ((3000, -1.0), (3100, 5.0), (3200, -1.0)):
            made_runs.append(folder, "first", step, {"odd": value})
        with serving(program, folder) as other:
            browser.driver.get(other.address + compare_hash(["first"], search="^odd$", smoothing="0", logy="1"))
            browser.until("the chart", lambda: browser.all(f"{card('odd')} tbody tr"))
            expect("its point", chart(browser, "odd", "chart.data.datasets[0].pointRadius"), [0, 2.5, 0])


@test
def metrics_are_searched(browser, api):
    open_curves(browser, api)
    browser.click("#search")
    browser.press("^(accuracy|loss)$")
    shown = lambda: browser.run("return [...document.querySelectorAll('.card:not([hidden])')].map((one) => one.dataset.metric)")
    browser.until("found", shown, ["accuracy", "loss"])
    browser.until("the others are let go", lambda: not browser.all(".card[hidden] canvas"))
    expect("cards without room", browser.run("return [...document.querySelectorAll('.card')].filter((one) => one.style.minHeight === '0px').length"), 0)
    browser.press("[")
    browser.until("a wrong expression is reported", lambda: browser.run("return [...document.querySelectorAll('.error')].some((one) => !one.hidden && one.textContent.includes('expression'))"))


@test
def runs_are_hidden_and_left_out(browser, api):
    names = open_curves(browser, api)
    browser.all(".eye")[0].click()
    browser.until("two are drawn", lambda: browser.texts(f"{card('loss')} tbody th"), names[1:])
    browser.run("document.querySelector('.drop').click()")
    browser.until("two are compared", lambda: browser.texts(".side-runs a"), names[1:])


@test
def runs_have_colors_of_their_own(browser, api):
    names = open_curves(browser, api)
    colors = chart(browser, "loss", "chart.data.datasets.slice(0, 3).map((one) => one.borderColor)")
    expect("different", len(set(colors)), 3)
    browser.open(compare_hash(names[:1]))
    browser.until("the chart", lambda: len(browser.all(f"{card('loss')} tbody tr")), 1)
    expect("the same alone", chart(browser, "loss", "chart.data.datasets[0].borderColor"), colors[0])


@test
def groups_have_mean_and_band(browser, api):
    formula = "metrics.accuracy > 0.9"
    browser.open(f"#/compare?filter={urllib.request.quote(formula)}&group=params.model.name&search=%5Eloss%24&smoothing=0")
    groups = api.get("band", metric="loss", by="params.model.name", filter=formula, axis="step", smoothing=0, points=1000)["groups"]
    browser.until("groups", lambda: browser.texts(f"{card('loss')} tbody th"), [str(group["value"]) for group in groups])
    browser.until("mean, and the edges of two bands, of each", lambda: chart(browser, "loss", "chart.data.datasets.length"), 5 * len(groups))
    browser.until("runs of each", lambda: [int(text.replace(",", "")) for text in browser.texts(f"{card('loss')} tbody td:last-child")], [group["runs"] for group in groups])
    if len(groups[0]["x"]) <= 300:
        browser.until("means", lambda: chart(browser, "loss", "chart.data.datasets[0].data.map((point) => point.y)"), groups[0]["mean"])


@own_test
def only_metrics_of_the_runs_have_charts(browser, api, server, program):
    formula = "params.train.seed < 3"
    metrics = lambda names: {metric["name"] for name in names for metric in api.get("run", name=name)["metrics"]}
    cards = lambda: set(browser.run("return [...document.querySelectorAll('.card')].map((one) => one.dataset.metric)"))
    browser.open(f"#/compare?filter={urllib.request.quote(formula)}")
    wanted = metrics(api.names(filter=formula))
    expect("others have more", set(api.get("columns")["metrics"]) > wanted, True)
    browser.until("theirs", cards, wanted)
    choose_option(browser, "#group", "state")
    browser.until("all, as a band may be of more runs than are read", cards, set(api.get("columns")["metrics"]))
    choose_option(browser, "#group", "")
    browser.until("theirs again", cards, wanted)


@own_test
def too_many_runs_to_group_are_reported(browser, api, server, program):
    names = [name for name in api.names(limit=100, filter='state == "finished"') if "," not in name and '"' not in name][:50]
    browser.open(compare_hash(names + [f"not-read-{i}" for i in range(400)], group="state"))
    browser.until("curves in place of bands", lambda: len(browser.all(f"{card('loss')} tbody tr")), len(names))
    group = browser.one("#group")
    expect("no choice", group.is_enabled(), False)
    expect("why", group.get_attribute("title"), "Too many selected runs to group; use a filter")
    expect("what is shown", browser.text(".hint"), f"The first {len(names)} of {len(names) + 400} runs.")


@own_test
def all_runs_are_compared_as_they_come_and_go(browser, api, server, program):
    with tempfile.TemporaryDirectory(prefix="gallop-ui-") as folder, tempfile.TemporaryDirectory() as away, serving(program, folder) as other:
        remove = lambda name: os.rename(os.path.join(folder, name), os.path.join(away, name))
        side = lambda: browser.texts(".side-runs a")
        legend = lambda: browser.texts(f"{card('loss')} tbody th")
        browser.driver.get(f"{other.address}#/compare")
        browser.until("none", lambda: browser.text(".empty h2"), "No runs to compare")
        for run, name in enumerate(("first", "second", "third", "fourth")):
            made_runs.write_run(folder, run, name)
            browser.until(f"the {name}", lambda: side()[:1], [name])
        browser.until("curves of all", legend, ["fourth", "third", "second", "first"])
        expect("how many", browser.text("h1"), "4 runs")
        remove("second")
        browser.until("those that are left", side, ["fourth", "third", "first"])
        browser.until("their curves", legend, ["fourth", "third", "first"])
        expect("how many", browser.text("h1"), "3 runs")
        expect("errors", browser.texts(".error:not([hidden])"), [])
        browser.driver.get(other.address + compare_hash(["first", "third", "fourth"], view="options"))
        heads = lambda: browser.texts(".sides thead a")
        browser.until("three", heads, ["first", "third", "fourth"])
        remove("first")
        browser.until("the others", heads, ["third", "fourth"])
        expect("which is missing", browser.text(".error:not([hidden])"), "there is no run 'first'")
        remove("third")
        remove("fourth")
        browser.until("none again", lambda: browser.text(".empty h2"), "No runs to compare")


@test
def all_points_are_there_to_take_away(browser, api):
    names = open_curves(browser, api)
    links = browser.run("return [...document.querySelectorAll(arguments[0])].map((one) => [one.textContent, one.href, one.hasAttribute('download')])", f"{card('loss')} .tools a")
    expect("links", [(text, download) for text, _, download in links], [("CSV", True), ("SVG", True)])
    for (_, address, _), kind, begin in zip(links, ("text/csv", "image/svg+xml"), ("run", "<")):
        with urllib.request.urlopen(address, timeout=browsers.PATIENCE_S) as answer:
            content = answer.read().decode()
            expect("its kind", answer.headers.get_content_type(), kind)
        if not content.startswith(begin) or (kind == "text/csv" and not all(name in content for name in names)):
            raise Failure(f"{address}: {content[:200]}")


# Other ways to compare.


@test
def parallel_coordinates_are_brushed(browser, api):
    formula = "metrics.accuracy > 0.9"
    browser.open(f"#/compare?filter={urllib.request.quote(formula)}&view=parallel")
    matching = api.get("runs", filter=formula, limit=1)["matching"]
    browser.until("a line for each run", lambda: len(browser.all(".run-line")), matching)
    axis = browser.all(".brush-area")[-1]
    browser.actions().move_to_element(axis).click_and_hold().move_by_offset(0, -130).release().perform()
    out = browser.until("lines outside", lambda: len(browser.all(".run-line.out")))
    if out >= matching:
        raise Failure("no line is inside")
    browser.run("[...document.querySelectorAll('.toolbar button')].find((one) => one.textContent.startsWith('Select these')).click()")
    browser.until("chosen in the table", lambda: browser.text("#compare"), f"Compare {matching - out:,}")


@test
def options_that_differ_come_before_those_that_some_runs_lack(browser, api):
    browser.open("#/compare?view=parallel")
    differing = browser.driver.execute_async_script("const done = arguments[0]; import('/run_values.js').then(({ differing }) => done(differing("
        "[{ values: { a: '1', lr: '0.1', same: 'x' } }, { values: { lr: '0.2', same: 'x' } }], ['a', 'lr', 'same'])))")
    expect("in this order", differing, ["lr", "a"])
    browser.until("titles are whole", lambda: browser.all(".axis-title"))
    cut = browser.run("const edge = document.querySelector('.drawing svg').getBoundingClientRect();"
                      "return [...document.querySelectorAll('.drawing text')].filter((one) => one.getBoundingClientRect().left < edge.left).map((one) => one.textContent)")
    expect("texts that are cut", cut, [])


@test
def a_double_click_lets_a_range_go(browser, api):
    browser.open(compare_hash(compared(api, 3), view="parallel"))
    browser.until("lines", lambda: len(browser.all(".run-line")), 3)
    axis = browser.all(".brush-area")[-1]
    browser.actions().move_to_element(axis).click_and_hold().move_by_offset(0, -60).release().perform()
    browser.until("a range", lambda: browser.all(".brush:not([hidden])"))
    browser.double_click(axis)
    browser.until("none", lambda: len(browser.all(".brush:not([hidden])")) + len(browser.all(".run-line.out")), 0)


@test
def each_point_leads_to_its_run(browser, api):
    names = compared(api, 3)
    browser.open(compare_hash(names, view="scatter", x="seconds", y="metrics.accuracy"))
    browser.until("points", lambda: len(browser.all(".points a")), 3)
    point = browser.all(".points a")[0]
    name = point.get_attribute("aria-label")
    browser.run("arguments[0].focus()", point)
    browser.until("what it is", lambda: browser.text(".point-label b"), name)
    browser.press(Keys.ENTER)
    browser.until("its page", lambda: browser.text("h1"), name)


@own_test
def a_late_answer_changes_no_plot(browser, api, server, program):
    browser.open(compare_hash(compared(api, 3), view="scatter", x="steps", y="metrics.accuracy"))
    browser.until("points", lambda: len(browser.all(".points a")), 3)
    browser.run(HOLD, "/api/runs?")
    held = lambda: browser.run("return window.held.length")
    choose_option(browser, "#scatter-x", "params.train.seed")
    browser.until("the first request", held, 1)
    choose_option(browser, "#scatter-x", "params.optimizer.lr")
    browser.until("the second request", held, 2)
    let_go_of(browser, 1)
    browser.until("its axis", lambda: "optimizer.lr" in browser.texts(".axis-title"))
    let_go_of(browser, 0)
    expect("points", len(browser.all(".points a")), 3)
    expect("runs without a value", browser.text(".toolbar [role=status]"), "3 runs")


@test
def configurations_stand_side_by_side(browser, api):
    names = compared(api, 3)
    browser.open(compare_hash(names, view="options"))
    params = api.get("compare", runs=",".join(names))["params"]
    rows = lambda: browser.run("return [...document.querySelectorAll('.sides tbody:first-of-type tr:not(.section-row)')]"
                               ".map((row) => [...row.children].map((cell) => cell.textContent))")
    wanted = lambda keep: [[one["name"], *["–" if value is None else str(value) for value in one["values"]]] for one in params if keep(one)]
    browser.until("what differs", rows, wanted(lambda one: one["differs"]))
    browser.click("#only-differing")
    browser.until("all", rows, wanted(lambda one: True))


# One run.


@test
def a_run_has_its_page(browser, api):
    name = compared(api, 1)[0]
    run = api.get("run", name=name)
    table(browser)
    browser.go(f"#/run?name={urllib.request.quote(name, safe='')}")
    browser.until("its name", lambda: browser.text("h1"), name)
    browser.until("its metrics", lambda: browser.texts(".overview > .box tbody th"), [metric["name"] for metric in run["metrics"]])
    browser.until("state", lambda: browser.text(".page-head .state"), run["state"])
    if run["checkpoints"]:
        browser.until("checkpoints", lambda: len(browser.all(".stack .box:last-child tbody tr")), len(run["checkpoints"]))
    for view, selector in (("curves", card("loss")), ("system", ".card[data-metric^='system.']")):
        browser.click(f"[data-view={view}]")
        browser.until(view, lambda: browser.all(f"{selector} tbody tr"))
    browser.click("[data-view=recipe]")
    browser.until("recipe", lambda: browser.text(".recipe"), api.get("run/recipe", name=name)["recipe"])
    origins = [[param["name"], str(param["value"]), param.get("origin") or "–"] for param in run["params"]]
    browser.until("options and where they come from", lambda: browser.run("return [...document.querySelectorAll('.box tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))"), origins)
    browser.click("[data-view=log]")
    total = api.get("run/log", name=name, limit=1)["total"]
    browser.until("the newest records", lambda: len(browser.all(".log tbody tr")), min(total, 200))


@own_test
def a_run_says_what_it_was_made_of_and_what_it_has_cost(browser, api, server, program):
    name = compared(api, 1)[0]
    browser.open(f"#/run?name={urllib.request.quote(name, safe='')}")
    browser.until("its name", lambda: browser.text("h1"), name)
    facts = "return Object.fromEntries([...document.querySelectorAll('.facts dt')].map((one) => [one.textContent, one.nextSibling.textContent]))"
    browser.until("energy", lambda: "Energy" in browser.run(facts))
    shown = browser.run(facts)
    expect("energy", shown["Energy"].split(" Wh")[0], "0.133")  # Two readings of 240 J.
    expect("the model's file", shown["model"], "nets/net.pt2, 1 file, 2.00 kB bb")
    expect("what has no price given", [word for word in ("CO2", "Price") if word in shown], [])
    with serving(program, server.folder, options=("--country", "DE", "--price", "6")) as other:
        told = Api(other.address).get("run", name=name)["energy"]
        browser.driver.get(f"{other.address}#/run?name={urllib.request.quote(name, safe='')}")
        browser.until("money", lambda: browser.run(facts).get("Price"), "1")
        expect("CO2", browser.run(facts)["CO2"], f"{told['co2_grams']:.3g} g")


@own_test
def nan_sorts_last_and_is_neither_least_nor_most(browser, api, server, program):
    with tempfile.TemporaryDirectory(prefix="gallop-ui-") as folder:
        made_runs.write_run_of_nan(folder, 1, "nan")
        made_runs.write_run(folder, 2, "good")
        made_runs.write_run(folder, 3, "better")
        with serving(program, folder) as other:
            browser.driver.get(f"{other.address}#/")
            browser.until("rows", lambda: len(shown_names(browser)), 3)
            browser.click('[data-column="metrics.accuracy"]')
            browser.until("highest first", lambda: shown_names(browser), ["better", "good", "nan"])
            browser.click('[data-column="metrics.accuracy"]')
            browser.until("lowest first", lambda: shown_names(browser), ["good", "better", "nan"])
            browser.driver.get(f"{other.address}#/run?name=nan")
            cells = ("return [...document.querySelectorAll('.overview > .box tbody tr')].map((row) => "
                     "[...row.children].map((cell) => cell.textContent))")
            browser.until("last, min, max and points", lambda: browser.run(cells)[:1], [["accuracy", "NaN2,000", "–", "–", "2"]])
            browser.driver.get(f"{other.address}#/run?name=nan&view=curves")
            legend = f"return [...document.querySelectorAll('{card('accuracy')} tbody td.value[title]')].map((cell) => cell.title)"
            browser.until("latest, min and max", lambda: browser.run(legend), ["NaN at step 2,000", "", ""])


@test
def a_run_without_a_report_says_how_to_make_one(browser, api):
    name = compared(api, 1)[0]
    browser.open(f"#/run?name={urllib.request.quote(name, safe='')}&view=report")
    browser.until("what to do", lambda: browser.text(".empty .command"), f"gallop evaluate {name} --report")


@own_test
def classes_and_mistakes_are_shown(browser, api, server, program):
    name = compared(api, 2)[1]
    made_runs.write_report(server.folder, name)
    browser.open(f"#/run?name={urllib.request.quote(name, safe='')}&view=report")
    rows = ("return [...document.querySelectorAll('.confusion tbody tr')].map((row) => "
            "[...row.children].map((cell) => cell.textContent))")
    browser.until("the counts", lambda: browser.run(rows), [["cat", "90", "10", "90.0 %"], [made_runs.MARKUP, "", "40", "100.0 %"]])
    images = "return [...document.querySelectorAll('.mistakes img')].map((one) => one.naturalWidth)"
    browser.until("the images", lambda: browser.run(images), [4])
    expect("what it is taken for", browser.texts(".mistakes .guess"), [made_runs.MARKUP])
    figures = "return [...document.querySelectorAll('.picture')].map((one) => `${one.alt} ${one.naturalWidth}`)"
    browser.until("the figures", lambda: browser.run(figures), ["ROC curve 9"])


@own_test
def a_report_follows_evaluations(browser, api, server, program):
    name = compared(api, 5)[4]
    browser.open(f"#/run?name={urllib.request.quote(name, safe='')}&view=report")
    browser.until("none yet", lambda: browser.text(".empty h2"), "No report yet")
    rights = lambda: browser.texts(".confusion .right")
    for cats in (70, 80):
        made_runs.write_report(server.folder, name, cats)
        browser.until("the counts", rights, [str(cats), "40"])
    made_runs.write_report(server.folder, name, others=99)
    pictures = "return [...document.querySelectorAll('.picture')].map((one) => `${one.alt} ${one.naturalWidth}`)"
    browser.until("a figure in place of a large table", lambda: browser.run(pictures), ["Confusion matrix 9", "ROC curve 9"])
    expect("tables", browser.all(".confusion"), [])


@own_test
def masks_are_shown_over_their_images(browser, api, server, program):
    name = compared(api, 3)[2]
    made_runs.write_overlays(server.folder, name)
    browser.open(f"#/run?name={urllib.request.quote(name, safe='')}&view=report")
    images = "return [...document.querySelectorAll('.masks img')].map((one) => `${one.alt} ${one.naturalWidth}`)"
    kinds = ("image", "true mask", "predicted mask", "differences")
    browser.until("the masks", lambda: browser.run(images), 2 * [f"{kind} of sample 7 4" for kind in kinds])
    expect("their IoU", browser.texts(".overlays p"), ["Sample 7, IoU 0.25", "Sample 7, IoU undefined"])
    colors = ("return [...document.querySelectorAll('.legend-of-classes li')].map((one) => "
              "`${one.textContent} ${getComputedStyle(one.querySelector('i')).backgroundColor}`)")
    expect("the legend", browser.run(colors), ["ground rgb(153, 153, 153)", f"{made_runs.MARKUP} rgb(230, 159, 0)", "wrong pixel rgb(216, 27, 96)"])
    expect("no empty list of mistakes", "Most confident mistakes" in browser.texts("h2"), False)


@test
def a_run_says_what_it_does_not_keep(browser, api):
    name = compared(api, 1)[0]
    for view, word in (("schedule", "No schedule"), ("data", "No samples")):
        browser.open(f"#/run?name={urllib.request.quote(name, safe='')}&view={view}")
        browser.until(view, lambda: browser.text(".empty h2"), word)


def until_as_wide_as_its_window(browser, what, pixels):
    """Waits for charts to adopt a new width, which happens in a later frame."""
    widest = "return Math.max(document.documentElement.scrollWidth, document.querySelector('#view').scrollWidth)"
    browser.until(f"width of {what}", lambda: browser.run(widest), pixels)


def expect_no_scrolling_aside(browser, selector):
    browser.size(390, 780)
    try:
        browser.one(selector)
        until_as_wide_as_its_window(browser, selector, 390)
    finally:
        browser.size(1360, 820)


@own_test
def a_log_is_followed(browser, api, server, program):
    with tempfile.TemporaryDirectory(prefix="gallop-ui-") as folder:
        made_runs.write_run(folder, 1, "first")
        with serving(program, folder) as other:
            kinds = lambda: browser.texts(".log .kind")
            browser.driver.get(f"{other.address}#/run?name=first&view=log")
            records = Api(other.address).get("run/log", name="first")["records"]
            browser.until("all records", kinds, [record["kind"] for record in records])
            browser.run(HOLD, "/api/run/log")
            for kind in ("evaluation", "end"):
                choose_option(browser, "[aria-label=Kind]", kind)
            browser.until("a request for each", lambda: browser.run("return window.held.length"), 2)
            for index in range(3):
                browser.until("the next", lambda: browser.run("return window.held.length") > index)
                let_go_of(browser, index)
            browser.until("records of the last kind", kinds, ["end"])
            browser.reload()
            browser.until("all records", lambda: len(kinds()), len(records))
            made_runs.append(folder, "first", 3000, {"found": 1.0}, kind="probe")
            browser.until("a new kind", lambda: "probe" in browser.texts("[aria-label=Kind] option"))
            browser.until("its record", lambda: kinds()[-1:], ["probe"])
            made_runs.append(folder, "first", 4000, {"accuracy": 0.5}, records=2500)
            total = len(records) + 2501
            browser.until("the newest", lambda: browser.text(".toolbar [role=status]"), f"{total - 1999:,} to {total:,}")
            expect("rows", len(kinds()), 2000)


@own_test
def schedules_are_drawn_with_what_was_used(browser, api, server, program):
    name = compared(api, 2)[1]
    schedule = made_runs.write_schedule(server.folder, name)
    browser.open(f"#/run?name={urllib.request.quote(name, safe='')}&view=schedule")
    browser.until("where it stands", lambda: browser.text(".schedule-place"), "Step 2,000 of 4,000, epoch 5 of 10")
    browser.until("titles", lambda: browser.texts(".card figcaption .ellipsis"), ["learning rate, linear", "momentum, reduce-on-plateau"])
    browser.until("lines", lambda: browser.texts(f"{card('train.lr')} tbody th"), ["used", "planned"])
    browser.until("lines of what is not logged", lambda: browser.texts(f"{card('train.momentum')} tbody th"), ["planned"])
    line = schedule["lines"][0]
    browser.until("planned", lambda: chart(browser, "train.lr", "chart.data.datasets[1].data.map((point) => [point.x, point.y])"), [list(pair) for pair in zip(schedule["at"], line["values"])])
    rates = {param["name"]: param["value"] for param in api.get("run", name=name)["params"]}
    browser.until("used", lambda: chart(browser, "train.lr", "[chart.data.datasets[0].data.at(-1).x, chart.data.datasets[0].data.at(-1).y]"), [2000, float(rates["optimizer.lr"])])
    expect("the mark", chart(browser, "train.lr", "chart.options.plugins.marks.place"), 2000)
    expect("what follows evaluations", browser.text(".hint"), "Depends on evaluations: momentum. The plan assumes that they keep improving.")
    browser.run("document.querySelector(arguments[0]).focus()", f"{card('train.lr')} .plot")
    browser.press(Keys.ARROW_RIGHT, "+")
    browser.until("the keys zoom", lambda: browser.all(f"{card('train.lr')} .whole:not([hidden])"))
    expect_no_scrolling_aside(browser, ".schedule-place")
    made_runs.append(server.folder, name, 2100, {"accuracy": 0.5})
    browser.until("it goes on", lambda: browser.text(".schedule-place"), "Step 2,100 of 4,000, epoch 5.25 of 10")
    with open(os.path.join(server.folder, name, "schedule.json"), "w", encoding="utf-8") as file:
        file.write('{"steps": 4')
    browser.reload()
    browser.until("the damage is reported", lambda: any("schedule.json: " in text for text in browser.texts(".panel .error")))


def timeline_pixels(browser):
    return browser.run("return document.querySelector('.timeline canvas').toDataURL()")


def name_of_picked(browser):
    return browser.text(".timeline .point-label:not([hidden]) b")


@own_test
def profiles_are_shown(browser, api, server, program):
    name = compared(api, 4)[3]
    browser.open(f"#/run?name={urllib.request.quote(name, safe='')}&view=profile")
    browser.until("what to do without any", lambda: browser.text(".empty .command"), "profile.every='1000 steps'")
    made_runs.write_profile(server.folder, name, 20)
    made_runs.write_profile(server.folder, name, 40, ranks=2)
    browser.reload()
    browser.until("the newest", lambda: browser.run("return document.querySelector('#profile-step')?.value"), "40")
    browser.until("phases", lambda: browser.run("return document.querySelector('.phases').getAttribute('aria-label')"), "data wait 5.0 %, forward 40.0 %, backward 50.0 %, host 5.0 %")
    expect("advice", browser.text(".advice p"), f"5.0 % of the step is spent waiting for {made_runs.MARKUP}. Set data.threads to 2: expected speed-up 1.01× to 1.05× (computed).")
    expect("options", browser.texts(".advice code"), ["data.threads=2"])
    browser.until("the peak", lambda: browser.texts(".memory .axis-title")[-1], "peak 6.00 MB")
    browser.until("roofs", lambda: browser.texts(".roofline .roof-name"), ["memory 20.0 GB/s", "caches 200 GB/s", "bf16 2 TFLOP/s"])
    expect("ranks", browser.run("return [...document.querySelectorAll('.boxes.profile tbody tr')].map((row) => row.textContent)")[:2],
           ["0host-010 ms8 ms0 ms1 ms2 ms0.0 %", "1host-110 ms9 ms0 ms1 ms2 ms100.0 %"])


@own_test
def a_damaged_trace_is_reported(browser, api, server, program):
    name = compared(api, 4)[3]
    made_runs.write_profile(server.folder, name, 70)
    trace = os.path.join(server.folder, name, "profiles", "step-70", "rank-0.json.gz")
    os.truncate(trace, os.path.getsize(trace) // 2)
    browser.open(f"#/run?name={urllib.request.quote(name, safe='')}&view=profile&step=70")
    browser.until("the damage", lambda: browser.text(".panel .error:not([hidden])"), "the trace is damaged or incomplete")
    browser.until("no timeline", lambda: "The trace cannot be read." in browser.texts(".profile .box p"))
    expect("the profile", len(browser.all(".phases")), 1)
    os.remove(trace)
    error = api.error("run/profile/trace", name=name, step=70, rank=0)
    browser.reload()
    browser.until("the server's words", lambda: browser.text(".panel .error:not([hidden])"), error)


def fact(browser, name):
    return browser.run("return [...document.querySelectorAll('.facts dt')].find((one) => one.textContent === arguments[0])?.nextSibling.textContent", name)


@own_test
def counters_of_a_profile_are_shown(browser, api, server, program):
    name = compared(api, 4)[3]
    made_runs.write_profile(server.folder, name, 90)
    browser.open(f"#/run?name={urllib.request.quote(name, safe='')}&view=profile&step=90")
    browser.until("those of the kernel", lambda: fact(browser, "Kernel"), "12 page faults, 31 context switches, 3 of them involuntary, 0.5 CPU migrations per step")
    expect("those of the processor", fact(browser, "Processor"), "1.5 instructions per cycle, 30M cycles per step, 1M LLC misses per step (6.40 GB/s), backend stalled 20.0 % of the cycles")
    profile = made_runs.profile_of(90)
    profile["counters"] = {"page_faults": 0, "context_switches": 2, "why_no_hardware": made_runs.MARKUP}
    profile["why_no_layers"] = "a step cannot be recorded"
    profile["layers"] = []
    with open(os.path.join(server.folder, name, "profiles", "step-90.json"), "w", encoding="utf-8") as file:
        json.dump(profile, file)
    browser.reload()
    browser.until("why there are none", lambda: fact(browser, "Processor"), f"no hardware counters: {made_runs.MARKUP}")
    expect("those that there are", fact(browser, "Kernel"), "0 page faults, 2 context switches per step")
    expect("why there are no layers", "Unknown: a step cannot be recorded." in browser.texts(".profile .box p"), True)


DROP = """
const data = new DataTransfer();
for (const [name, text] of arguments[0]) data.items.add(new File([text], name));
document.querySelector("#view").dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
"""


@own_test
def a_profile_is_opened_from_files(browser, api, server, program):
    browser.open("#/")
    browser.one("#to-profile")
    browser.press("p")
    browser.until("how files are made", lambda: browser.text(".empty .command"), "gallop profile RECIPE --json --trace trace.json > profile.json")
    browser.forget_requests()
    with tempfile.TemporaryDirectory(prefix="gallop-files-") as folder:
        profile, trace = (os.path.join(folder, name) for name in ("profile.json", "trace.json.gz"))
        with open(profile, "w", encoding="utf-8") as file:
            json.dump(made_runs.profile_of(40), file)
        with gzip.open(trace, "wt", encoding="utf-8") as file:
            json.dump(made_runs.trace_of(0), file)
        choose = lambda *files: browser.one("#profile-files").send_keys("\n".join(files))
        choose(profile)
        browser.until("phases", lambda: browser.all(".phases") and browser.run("return document.querySelector('.phases').getAttribute('aria-label')"),
                      "data wait 5.0 %, forward 40.0 %, backward 50.0 %, host 5.0 %")
        expect("no timeline without a trace", browser.all(".timeline"), [])
        choose(trace)
        canvas = browser.one(".timeline canvas")
        expect("the profile stays", len(browser.all(".phases")), 1)
        browser.run("arguments[0].focus()", canvas)
        browser.press(Keys.ARROW_RIGHT)
        browser.until("the first span", lambda: name_of_picked(browser), "ProfilerStep#19")
    expect("nothing is uploaded", browser.requests("/api/run"), [])
    two = made_runs.profile_of(60, ranks=2)
    browser.run(DROP, [["two.json", json.dumps(two)], *((f"rank-{rank}.json", json.dumps(made_runs.trace_of(rank))) for rank in (1, 0))])
    browser.until("the dropped one", lambda: browser.run("return [...document.querySelectorAll('.boxes.profile tbody tr')].map((row) => row.textContent)")[:2],
                  ["0host-010 ms8 ms0 ms1 ms2 ms0.0 %", "1host-110 ms9 ms0 ms1 ms2 ms100.0 %"])
    browser.run(DROP, [["broken.json", "{"]])
    browser.until("no JSON", lambda: browser.text(".error:not([hidden])"), "broken.json is not valid JSON.")
    browser.run(DROP, [["other.json", '{"a": 1}']])
    browser.until("another file", lambda: browser.text(".error:not([hidden])"), "other.json is neither a profile of 'gallop profile --json' nor a trace.")
    browser.run(DROP, [["odd.json", '{"phases": [], "layers": [], "operators": []}']])
    browser.until("an odd profile", lambda: "cannot read these files as a profile" in (browser.text(".error:not([hidden])") or ""))
    expect("what was shown stays", len(browser.all(".timeline canvas")), 1)
    browser.size(390, 780)
    try:
        until_as_wide_as_its_window(browser, "a profile of files", 390)
    finally:
        browser.size(1360, 820)


@own_test
def a_timeline_takes_keys_and_the_pointer(browser, api, server, program):
    name = compared(api, 4)[3]
    made_runs.write_profile(server.folder, name, 60, ranks=2)
    browser.open(f"#/run?name={urllib.request.quote(name, safe='')}&view=profile&step=60")
    canvas = browser.one(".timeline canvas")
    browser.run("arguments[0].focus()", canvas)
    browser.press(Keys.ARROW_RIGHT)
    browser.until("the first span", lambda: name_of_picked(browser), "ProfilerStep#19")
    browser.press(Keys.ARROW_DOWN, Keys.ARROW_RIGHT)
    browser.until("its layer is no markup", lambda: browser.texts(".timeline .point-label > div")[1:3], [made_runs.MARKUP, "backward"])
    browser.run("arguments[0].blur()", canvas)
    browser.until("none", lambda: browser.all(".timeline .point-label[hidden]"))
    before = browser.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(document.querySelector('.timeline canvas').toDataURL()))))")
    browser.run("arguments[0].focus()", canvas)
    browser.press("+", "+")
    browser.until("it is enlarged", lambda: timeline_pixels(browser) != before)
    browser.press("0")
    browser.until("all of it", lambda: timeline_pixels(browser) == before)
    browser.run("""arguments[0].dispatchEvent(new WheelEvent("wheel", { deltaY: -100, clientX: 600, clientY: 400, bubbles: true, cancelable: true }))""", canvas)
    browser.until("the wheel enlarges it", lambda: timeline_pixels(browser) != before)
    enlarged = timeline_pixels(browser)
    browser.actions().drag_and_drop_by_offset(canvas, -90, 0).perform()
    browser.until("dragging moves it", lambda: timeline_pixels(browser) not in (before, enlarged))
    browser.double_click(canvas)
    browser.actions().move_to_element(browser.one("h1")).perform()
    browser.until("a double click shows all", lambda: timeline_pixels(browser) == before)


@own_test
def layers_of_a_profile_are_enlarged(browser, api, server, program):
    name = compared(api, 4)[3]
    made_runs.write_profile(server.folder, name, 80)
    browser.open(f"#/run?name={urllib.request.quote(name, safe='')}&view=profile&step=80")
    paths = lambda: browser.run("return [...document.querySelectorAll('.flame g')].map((one) => one.dataset.path)")
    browser.until("the layers", paths, ["", "layer1", "layer1.conv1", made_runs.MARKUP])
    browser.run("document.querySelector('.flame g[data-path=layer1]').focus()")
    browser.until("its time", lambda: browser.text(".flame + .point-label:not([hidden])"), "layer14 ms 40.0 % of the stepforward 4 ms, backward 0 ms4 GFLOP, 2.00 MB50.0 % of the hardware limit")
    browser.press(Keys.ENTER)
    browser.until("it alone", paths, ["layer1", "layer1.conv1"])
    browser.press(Keys.ENTER)
    browser.until("all", paths, ["", "layer1", "layer1.conv1", made_runs.MARKUP])
    browser.click("[data-part=backward_ms]")
    browser.until("those of backward", paths, ["", made_runs.MARKUP])
    browser.run("document.querySelector('.memory svg').focus()")
    browser.press(Keys.ARROW_RIGHT)
    browser.until("the node after the peak", lambda: browser.text(".memory + .point-label:not([hidden]) b"), "2.00 MB")
    browser.size(390, 780)
    try:
        until_as_wide_as_its_window(browser, "a profile", 390)
    finally:
        browser.size(1360, 820)
    with open(os.path.join(server.folder, name, "profiles", "step-80.json"), "w", encoding="utf-8") as file:
        file.write('{"steps": 4')
    browser.reload()
    browser.until("the damage is reported", lambda: any("the profile of step 80 is damaged" in text for text in browser.texts(".panel .error")))


@own_test
def samples_are_shown(browser, api, server, program):
    name = compared(api, 3)[2]
    made_runs.write_samples(server.folder, name, [{"label": made_runs.MARKUP, "image": "00.png", "before": "01.png"},
                                                  {"label": "cat", "image": "02.png"}], ["random-horizontal-flip", "random-crop"])
    browser.open(f"#/run?name={urllib.request.quote(name, safe='')}")
    browser.click("[data-view=schedule]")
    browser.press(Keys.ARROW_RIGHT)
    browser.until("classes", lambda: browser.texts(".samples .label"), [made_runs.MARKUP, "cat"])
    browser.until("how they are augmented", lambda: browser.text(".box .muted"), "Each image before and after random-horizontal-flip, random-crop.")
    browser.until("the images before and after", lambda: browser.run("return [...document.querySelectorAll('.samples img')].map((one) => one.naturalWidth)"), [4, 6])
    browser.until("the one that is missing", lambda: browser.texts(".samples .no-image"), ["cannot be read"])
    expect_no_scrolling_aside(browser, ".samples")
    made_runs.write_samples(server.folder, name, [{"text": "once\nupon <b>a</b> time"}])
    browser.reload()
    browser.until("texts", lambda: browser.texts(".texts pre"), ["once\nupon <b>a</b> time"])
    with open(os.path.join(server.folder, name, "samples", "samples.json"), "w", encoding="utf-8") as file:
        file.write('{"samples": ["../../recipe.yaml"')
    browser.reload()
    browser.until("the damage is reported", lambda: any("samples.json: " in text for text in browser.texts(".panel .error")))


@test
def tags_and_notes_are_written(browser, api):
    name = compared(api, 1)[0]
    browser.open(f"#/run?name={urllib.request.quote(name, safe='')}")
    browser.click("#tag")
    browser.press("team=<b>vision</b>=1", Keys.ENTER)
    browser.until("kept", lambda: api.get("run", name=name)["tags"].get("team"), "<b>vision</b>=1")
    browser.until("shown", lambda: any("team=<b>vision</b>=1" in text for text in browser.texts(".tags li")))
    browser.click("[aria-label='Remove the tag team']")
    browser.until("removed", lambda: "team" not in api.get("run", name=name)["tags"])
    browser.click("#note")
    browser.press("seen at noon")
    browser.until("the note", lambda: "seen at noon" in api.get("run", name=name)["note"])
    browser.click("#tag")
    browser.press("x" * 300, Keys.ENTER)
    browser.until("an error of the server is reported", lambda: any("is not a tag" in text for text in browser.texts(".error")))


@test
def a_deleted_run_comes_back(browser, api):
    name = compared(api, 2)[1]
    browser.open(f"#/run?name={urllib.request.quote(name, safe='')}")
    browser.click("#delete")
    browser.click("dialog .actions button:first-child")
    browser.until("kept", lambda: not browser.all("dialog"))
    expect("still there", api.get("run", name=name)["name"], name)
    browser.click("#delete")
    browser.click("dialog .primary")
    browser.until("the table", lambda: shown_names(browser))
    api.error("run", name=name)
    browser.until("gone from it", lambda: name not in shown_names(browser))
    browser.click(".notice .link")
    browser.until("back", lambda: browser.text("h1"), name)
    expect("for the server too", api.get("run", name=name)["name"], name)


@test
def a_run_that_is_not_there_is_reported(browser, api):
    browser.open("#/run?name=no-such-run")
    browser.until("a word", lambda: "Run not found" in (browser.text(".empty") or ""))


# Sweeps.


@own_test
def sweeps_are_listed(browser, api, server, program):
    browser.open("#/sweeps")
    browser.until("what to do", lambda: browser.text(".empty .command"), "gallop tune SWEEP")
    search(program, server.folder, 8)
    browser.until("the new one", lambda: browser.texts(".plain tbody th a"), ["tiny"])
    browser.until("its progress", lambda: browser.text(".progress"), "8 of 8")
    browser.click(".plain tbody th a")
    browser.until("its page", lambda: browser.text("h1"), "tiny")


def open_sweep(browser, program, folder, view=""):
    search(program, folder, 8)
    browser.open(f"#/sweep?name=tiny&view={view}")


@own_test
def a_sweep_has_its_page(browser, api, server, program):
    open_sweep(browser, program, server.folder)
    browser.until("its page", lambda: browser.text("h1"), "tiny")
    told = api.get("sweep", name="tiny")
    best = told["best"][0]
    expect("the best by its loss", told["trials"][best["trial"]]["values"][0], min(trial["values"][0] for trial in told["trials"]))
    browser.until("how to run it again", lambda: browser.text(".command"), best["command"])
    plots = "return [...document.querySelectorAll('img.picture')].map((one) => one.complete && one.naturalWidth > 100)"
    browser.until("history and importance", lambda: browser.run(plots), [True, True])
    trials = browser.until("progress", lambda: browser.text(".facts .progress"))
    search(program, server.folder, 10)
    browser.until("what has come since", lambda: browser.text(".facts .progress"), trials.replace("8", "10"))
    browser.until("in its plots", lambda: browser.run(plots), [True, True])
    expect("elements that names made", len(browser.all("#view b")), 0)
    browser.size(390, 780)
    try:
        until_as_wide_as_its_window(browser, "a sweep", 390)
    finally:
        browser.size(1360, 820)


@own_test
def trials_are_sorted(browser, api, server, program):
    open_sweep(browser, program, server.folder, "trials")
    browser.until("all trials", lambda: len(browser.all(".plain tbody tr")) >= 8)
    trials = api.get("sweep", name="tiny")["trials"]
    names = lambda down: [f"trial {one['trial']}" for one in sorted(trials, key=lambda one: one["values"][0], reverse=down)]
    browser.click('[data-key="metrics.loss"]')
    browser.until("the lowest first", lambda: browser.texts(".plain tbody th"), names(False))
    browser.click('[data-key="metrics.loss"]')
    browser.until("the highest first", lambda: browser.texts(".plain tbody th"), names(True))
    browser.reload()
    browser.until("the same after loading again", lambda: browser.texts(".plain tbody th"), names(True))
    browser.run("[...document.querySelectorAll('.plain tbody th a')].find((one) => one.textContent === 'trial 0').click()")
    browser.until("its run", lambda: browser.text("h1"), "tiny/0000")


@own_test
def trials_have_parallel_coordinates_and_plots(browser, api, server, program):
    open_sweep(browser, program, server.folder, "parallel")
    count = len(api.get("sweep", name="tiny")["trials"])
    browser.until("a line for each", lambda: len(browser.all(".run-lines polyline")), count)
    browser.click('[data-view="plots"]')
    shown = "const one = document.querySelector('img.picture'); return one && one.complete && one.naturalWidth > 100 ? one.alt : null"
    for plot in api.get("sweep", name="tiny")["plots"]:
        browser.run("const one = document.querySelector('#plot'); one.value = arguments[0]; one.dispatchEvent(new Event('change'))", plot["kind"])
        browser.until(plot["kind"], lambda: browser.run(shown), plot["summary"])


@own_test
def runs_of_sweeps_are_a_group(browser, api, server, program):
    open_sweep(browser, program, server.folder)
    browser.click(".links a")
    browser.until("its runs", lambda: shown_names(browser), ["tiny/0000"])
    expect("in a group", [(group["value"], group["runs"]) for group in api.get("groups", by="tags.sweep")["groups"] if group["value"] == "tiny"],
           [("tiny", ["tiny/0000"])])


@test
def a_sweep_that_is_not_there_is_reported(browser, api):
    browser.open("#/sweep?name=no-such-sweep")
    browser.until("a word", lambda: "Sweep not found" in (browser.text(".empty") or ""))


# Searches.


def report_of_search(trials, **others):
    """A report in the form of optimize/report.cpp, as far as the page reads it."""
    rows = [["change", "predicted", "gain", "quality", "took", "verdict"], *([*trial, "0:10", verdict] for *trial, verdict in trials)]
    return {"headline": "mlp.yaml: 1.50 times the samples per second", "goal": "throughput", "recipe": "<b>mlp</b>.yaml", "gain": 1.5, "seconds": 60.0,
            "budget_seconds": 1200.0, "command": "gallop launch -n 2 train mlp.yaml train.precision=bf16",
            "trials": [{"change": trial[0], "verdict": trial[-1].split(":")[0]} for trial in trials],
            "tables": [{"title": "Changes", "rows": rows, "note": ""}], **others}


BF16 = ("train.precision=bf16", "1.22x to 1.34x", "1.18x (1.10 to 1.27)", "loss +0.01 %", "kept")
THREADS = ("data.threads=2", "-", "0.92x (0.79 to 1.08)", "same loss", "rejected: no gain")
ABLATION = {"title": "Ablation", "rows": [["change", "worth in the best recipe"], ["train.precision=bf16", "1.50x"]], "note": "Together."}


def write_search(folder, name, journal, **files):
    """The files of a search; JSON unless they are texts."""
    search_folder = os.path.join(searches_of(folder), name)
    os.makedirs(search_folder, exist_ok=True)
    lines = [{"search": "question"}, *({"experiment": text, "seconds": 1.5, "result": result} for text, result in journal)]
    texts = {"journal.jsonl": "".join(json.dumps(line) + "\n" for line in lines)}
    texts.update({name.replace("_", "."): one if isinstance(one, str) else json.dumps(one) for name, one in files.items()})
    for file_name, text in texts.items():
        part = os.path.join(search_folder, f".{file_name}.part")
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, os.path.join(search_folder, file_name))
    return search_folder


@own_test
def searches_are_listed_and_followed(browser, api, server, program):
    browser.open("#/searches")
    browser.until("what to do", lambda: browser.text(".empty .command"), "gallop optimize RECIPE")
    profile = ("profile []", [])
    search_folder = write_search(server.folder, "mlp-throughput", [profile])
    with open(os.path.join(search_folder, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        browser.until("the new one", lambda: browser.texts(".plain tbody th a"), ["mlp-throughput"])
        browser.until("that it runs", lambda: browser.text(".plain .state"), "running")
        browser.click(".plain tbody th a")
        browser.until("its page", lambda: browser.text("h1"), "mlp-throughput")
        browser.click('[data-view="changes"]')
        browser.until("nothing yet", lambda: browser.text(".nothing"), "No change has been tried yet.")
        browser.click('[data-view="journal"]')
        browser.until("what was done", lambda: browser.texts(".plain tbody th"), ["profile []"])
        compared = ("compare [] with [train.precision=bf16]", {"speedup": {"value": 1.18}})
        write_search(server.folder, "mlp-throughput", [profile, compared], progress_json=report_of_search([BF16]))
        browser.until("the newest experiment first", lambda: browser.texts(".plain tbody th"), [compared[0], profile[0]])
        expect("its outcome", browser.text(".plain tbody td:last-child"), "1.18x")
        browser.click('[data-view="changes"]')
        browser.until("the change", lambda: browser.texts(".plain tbody th"), [BF16[0]])
        write_search(server.folder, "mlp-throughput", [profile, compared], progress_json=report_of_search([BF16, THREADS]))
        browser.until("the next one", lambda: browser.texts(".plain tbody th"), [BF16[0], THREADS[0]])
    browser.click('[data-view=""]')
    browser.until("that it was stopped", lambda: "The same command continues it" in " ".join(browser.texts(".box p")))
    expect("elements that names made", len(browser.all("#view b")), 0)


@own_test
def a_search_has_its_page(browser, api, server, program):
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="640" height="200"><rect width="200" height="80"/></svg>'
    report = report_of_search([BF16, THREADS])
    report["tables"].append(ABLATION)
    write_search(server.folder, "done", [("profile []", [])], report_json=report, report_svg=svg)
    browser.open("#/search?name=done")
    browser.until("its headline", lambda: browser.text("h2"), report["headline"])
    expect("its state", browser.text(".page-head .state"), "finished")
    expect("how to train it", browser.text(".command"), report["command"])
    browser.until("the waterfall", lambda: browser.run(
        "return [...document.querySelectorAll('img.picture')].map((one) => one.complete && one.naturalWidth)"), [640])
    expect("the ablation", browser.texts(".plain tbody tr")[-1], "train.precision=bf161.50x")
    browser.click('[data-view="changes"]')
    browser.until("verdicts", lambda: browser.texts(".plain .state"), [BF16[-1], THREADS[-1]])
    expect("predicted beside measured", browser.texts(".plain tbody td")[:2], [BF16[1], BF16[2]])
    browser.size(390, 780)
    try:
        until_as_wide_as_its_window(browser, "a search", 390)
    finally:
        browser.size(1360, 820)


@test
def a_search_that_is_not_there_is_reported(browser, api):
    browser.open("#/search?name=no-such-search")
    browser.until("a word", lambda: "Search not found" in (browser.text(".empty") or ""))


# Everywhere.


@test
def the_current_view_is_announced(browser, api):
    table(browser)
    current = lambda: browser.run("return [...document.querySelectorAll('nav a')].map((one) => one.getAttribute('aria-current'))")
    expect("the runs", current(), ["page", None, None, None])
    browser.go("#/searches")
    browser.until("the searches", current, [None, None, "page", None])
    browser.go("#/constructor")
    browser.until("no view", lambda: browser.text(".empty h2"), "Page not found")
    expect("none", current(), [None, None, None, None])


@test
def narrow_windows_need_no_scrolling_aside(browser, api):
    names = compared(api, 2)
    browser.size(390, 780)
    try:
        for hash_ in ("#/", compare_hash(names), compare_hash(names, view="scatter"), compare_hash(names, view="options"), f"#/run?name={urllib.request.quote(names[0], safe='')}"):
            browser.open(hash_)
            browser.until(hash_, lambda: browser.all(".row, .card table, .points, .sides table, .facts dd"))
            until_as_wide_as_its_window(browser, hash_, 390)
    finally:
        browser.size(1360, 820)


@test
def texts_are_readable_in_light_and_dark(browser, api):
    contrast = """
        const parts = (color) => color.match(/[\\d.]+/g).slice(0, 3).map(Number).map((part) => part / 255)
          .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
        const light = (color) => { const [r, g, b] = parts(color); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const solid = (one) => { for (; one; one = one.parentElement) { const color = getComputedStyle(one).backgroundColor;
          if (!/, 0\\)$/.test(color)) return color; } return "rgb(255, 255, 255)"; };
        return arguments[0].map((selector) => { const one = document.querySelector(selector);
          const [a, b] = [light(getComputedStyle(one).color), light(solid(one))].sort((x, y) => y - x); return (a + 0.05) / (b + 0.05); });"""
    pages = []
    try:
        for is_dark in (False, True):
            browser.dark(is_dark)
            table(browser)
            seen = ["#row-0 .name a", ".count", ".sort", "#row-0 .state", "#columns", "#to-runs"]
            for selector, ratio in zip(seen, browser.run(contrast, seen)):
                if ratio < 4.5:
                    raise Failure(f"{selector} has a contrast of {ratio:.2f}{' in the dark' if is_dark else ''}")
            pages.append(browser.run("return getComputedStyle(document.documentElement).backgroundColor"))
    finally:
        browser.dark(False)
    expect("two different pages", len(set(pages)), 2)
    browser.press("t")
    browser.until("the key", lambda: browser.run("return getComputedStyle(document.documentElement).backgroundColor"), pages[1])


@own_test
def what_changes_is_shown_without_moving(browser, api, server, program):
    table(browser)
    browser.until("the newest", lambda: first_names(browser, 1), ["unfinished"])
    browser.run("document.querySelector('#runs').scrollTop = 640")
    browser.until("scrolled", lambda: "unfinished" not in shown_names(browser))
    middle = lambda: browser.run("const box = document.querySelector('#runs').getBoundingClientRect();"
                                 "return document.elementFromPoint(box.left + 60, box.top + 200).closest('.row').querySelector('a').textContent")
    seen = middle()
    browser.run("document.querySelector('#filter').focus()")
    made_runs.write_run(server.folder, RUNS + 10, "just-begun")
    total = RUNS + 1
    browser.until("one more", lambda: browser.text(".count"), f"{total:,} runs")
    browser.until("what was seen stays", middle, seen)
    expect("focus stays", browser.driver.switch_to.active_element.get_attribute("id"), "filter")
    browser.open("#/run?name=unfinished&view=curves")
    browser.until("its curve", lambda: browser.all(f"{card('accuracy')} tbody tr"))
    made_runs.append(server.folder, "unfinished", 5000, {"accuracy": 0.4321})
    browser.until("the new point", lambda: chart(browser, "accuracy", "chart.data.datasets.at(-1).data.at(-1).y"), 0.4321)


@own_test
def a_click_outlives_what_changes_meanwhile(browser, api, server, program):
    """Browsers do not report a click if its element is removed between press and release."""
    table(browser)
    link = lambda name: browser.run("return [...document.querySelectorAll('.row:not([hidden]) .name a, .plain tbody th a')].find((one) => one.textContent === arguments[0])", name)
    browser.actions().click_and_hold(link("unfinished")).perform()
    made_runs.append(server.folder, "unfinished", 6000, {"accuracy": 0.8765})
    browser.until("its new value", lambda: browser.all(".row [title='0.8765']"))
    browser.actions().release().perform()
    browser.until("its page", lambda: browser.text("h1"), "unfinished")

    table(browser)
    total = api.get("runs", limit=1)["total"]
    browser.run("document.querySelector('#runs').scrollTop = 640")
    browser.until("scrolled", lambda: "unfinished" not in shown_names(browser))
    name = browser.run("const { left, top } = document.querySelector('#runs').getBoundingClientRect();"
                       "return document.elementFromPoint(left + 60, top + 200).closest('.row').querySelector('a').textContent")
    browser.actions().click_and_hold(link(name)).perform()
    made_runs.write_run(server.folder, RUNS + 20, "just-begun-above")
    browser.until("one more above", lambda: browser.text(".count"), f"{total + 1:,} runs")
    browser.actions().release().perform()
    browser.until("its page", lambda: browser.text("h1"), name)

    table(browser)
    names = first_names(browser, 3)
    boxes = browser.all(".row .cell.name input")
    browser.actions().click_and_hold(boxes[1]).perform()
    browser.run("import('/chosen.js').then(({ choose }) => choose([arguments[0]]))", names[2])
    browser.until("another is chosen", lambda: browser.text("#compare"), "Compare 1")
    browser.until("and shown so", boxes[2].is_selected)
    browser.actions().release().perform()
    browser.until("both", lambda: browser.text("#compare"), "Compare 2")

    search(program, server.folder, 12)
    browser.open("#/sweeps")
    browser.until("its progress", lambda: browser.text(".progress"), "12 of 12")
    browser.actions().click_and_hold(link("tiny")).perform()
    search(program, server.folder, 14)
    browser.until("more of it", lambda: browser.text(".progress"), "14 of 14")
    browser.actions().release().perform()
    browser.until("its page", lambda: browser.text("h1"), "tiny")


@own_test
def without_runs_the_page_says_what_to_do(browser, api, server, program):
    with tempfile.TemporaryDirectory(prefix="gallop-ui-") as folder, serving(program, folder) as empty:
        other = Browser(empty.address)
        try:
            other.open("#/")
            expect("the command", other.one(".empty pre").text, "gallop train fashion-mnist")
            other.until("what they are grouped by", lambda: other.text("[aria-label='Group by']"), "nothing")
            made_runs.write_run(folder, 1, "first")
            other.until("its first run", lambda: shown_names(other), ["first"])
            expect("complaints", other.complaints(), [])
        finally:
            other.close()


@own_test
def a_server_that_ends_and_comes_back(browser, api, server, program):
    with tempfile.TemporaryDirectory(prefix="gallop-ui-") as folder:
        made_runs.write_run(folder, 1, "first")
        first = Server(program, folder, free_port())
        other = Browser(first.address)
        try:
            other.open("#/")
            other.until("rows", lambda: shown_names(other), ["first"])
            first.stop()
            other.until("a quiet word", lambda: "does not respond" in other.text("#banner") and other.one("#banner").is_displayed())
            expect("what was shown stays", shown_names(other), ["first"])
            made_runs.write_run(folder, 2, "second")
            with serving(program, folder, first.port):
                other.until("it is back", lambda: not other.all("#banner:not([hidden])"))
                other.until("and what has changed", lambda: shown_names(other), ["second", "first"])
                other.go("#/run?name=second")
                other.click("#tag")
                other.press("a=1", Keys.ENTER)
                other.until("its new token is used", lambda: Api(first.address).get("run", name="second")["tags"], {"a": "1"})
        finally:
            other.close()


@own_test
def what_could_not_be_loaded_comes_with_the_server(browser, api, server, program):
    with tempfile.TemporaryDirectory(prefix="gallop-ui-") as folder:
        made_runs.write_run(folder, 1, "first")
        made_runs.write_profile(folder, "first", 20)
        made_runs.write_report(folder, "first")
        port = free_port()
        views = {"recipe": ".recipe", "report": ".confusion", "profile": ".timeline canvas", "log": ".log tbody tr"}
        is_shown = "return [...document.querySelectorAll(arguments[0])].some((one) => one.nodeName === 'CANVAS' || one.textContent !== '')"
        first = Server(program, folder, port)
        other = Browser(first.address)
        try:
            other.open("#/run?name=first")
            other.until("its views", lambda: other.all("[data-view=recipe]"))
            for view, selector in (*views.items(), ("compare", ".side-runs a")):
                first.stop()
                other.until("a quiet word", lambda: other.one("#banner").is_displayed())
                if view in views:
                    other.click(f"[data-view={view}]")
                else:
                    other.go("#/compare")
                    other.until("another page", lambda: other.run("return document.title"), "Compare · Gallop")
                expect(f"{view} without a server", other.run(is_shown, selector), False)
                first = Server(program, folder, port)
                other.until(f"{view} after all", lambda: other.run(is_shown, selector))
                other.until("it is back", lambda: not other.all("#banner:not([hidden])"))
            expect("complaints", other.complaints(), [])
        finally:
            other.close()
            if first.process.poll() is None:
                first.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--address")
    parser.add_argument("--only", action="append", default=[])
    arguments = parser.parse_args()
    if not arguments.program and not arguments.address:
        parser.error("give the program or --address")
    browsers.with_system_python()
    missing = browsers.missing()
    if missing:
        print(f"skipped: {missing} is not there")
        return SKIPPED
    with contextlib.ExitStack() as stack:
        server = None
        address = arguments.address
        if not address:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gallop-ui-"))
            try:
                made_runs.write_runs(folder, RUNS, EXTRA_METRICS)
            except made_runs.NoHash:
                print("skipped: libxxhash is not there")
                return SKIPPED
            server = stack.enter_context(serving(os.path.abspath(arguments.program), folder))
            address = server.address
        api = Api(address)
        browser = Browser(address)
        stack.callback(browser.close)
        failed = 0
        for function, needs_own in tests:
            name = function.__name__
            if (arguments.only and name not in arguments.only) or (needs_own and not server):
                continue
            try:
                if needs_own:
                    function(browser, api, server, os.path.abspath(arguments.program))
                else:
                    function(browser, api)
                expect("complaints of the browser", browser.complaints(), [])
                print(f"passed  {name}", flush=True)
            except Exception as failure:  # Including errors of the driver: the other tests continue.
                failed += 1
                print(f"FAILED  {name}: {type(failure).__name__}: {(str(failure) or '-').splitlines()[0]}", flush=True)
                browser.complaints()
                browser.let_go()  # Keys such as Shift would otherwise stay pressed in the following tests.
        return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
