#!/usr/bin/env python3
"""Creates the pictures of reports in docs/tasks.md: trains and evaluates a small model per task.

    tests/ui/task_figures.py build/release/gallop [FOLDER]      FOLDER is docs/figures by default
"""

import base64
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "scenario")]
import browser as browsers  # noqa: E402

browsers.with_system_python()
import make_data  # noqa: E402
import page  # noqa: E402

WIDTH = 1100
MOST_HEIGHT = 1500
DATA = (["table", "houses", "400"], ["shapes", "shapes", "200", "size=32"], ["text", "words", "1500"])
CONV = "{conv: {channels: 16}}, batch-norm, relu"
RECIPES = {
    "regression": ("data: {name: csv, path: houses, batch_size: 32, targets: [price], ignore: [id, old, large, kind]}\n"
                   "model: {name: mlp, hidden: [32]}\noptimizer: {name: adamw, lr: 0.02}\n"
                   "train: {epochs: 30, precision: fp32}\n"),
    "multi-label": ("data: {name: csv, path: houses, batch_size: 32, targets: [old, large], ignore: [id, kind, price]}\n"
                    "model: {name: mlp, hidden: [16]}\noptimizer: {name: adamw, lr: 0.005}\n"
                    "train: {epochs: 8, precision: fp32}\n"),
    "segmentation": ("data: {name: segmentation, path: shapes, batch_size: 20, classes: [ground, square, disc]}\n"
                     f"model: {{name: layers, layers: [{CONV}, {CONV}, {{conv: {{kernel: 1}}}}]}}\n"
                     "optimizer: {name: adamw, lr: 0.01}\ntrain: {epochs: 4, precision: fp32}\n"),
    "masked-lm": ("data: {name: text, task: masked-lm, path: words/text.txt, context: 32, validation: 0.1, batch_size: 16}\n"
                  "model: {name: gpt, layers: 2, width: 48, heads: 2}\noptimizer: {name: adamw, lr: 0.003}\n"
                  "train: {epochs: 12, precision: fp32}\n"),
}


def make_reports(program, folder):
    for words in DATA:
        make_data.make(folder, words)
    for task, recipe in RECIPES.items():
        with open(os.path.join(folder, f"{task}.yaml"), "w", encoding="utf-8") as file:
            file.write(recipe)
        for words in (["train", f"{task}.yaml", "--name", task, "--quiet"], ["evaluate", task, "--report"]):
            subprocess.run([program, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def take_picture(browser, task):
    browser.size(WIDTH, MOST_HEIGHT)
    browser.open(f"#/run?name={task}&view=report")
    browser.one(".picture")
    browser.run("document.querySelectorAll('img').forEach((one) => { one.loading = 'eager'; })")
    browser.until("all images", lambda: browser.run(
        "return [...document.querySelectorAll('img')].every((one) => one.complete && one.naturalWidth > 0)"))
    browser.run("document.querySelector('.folder').textContent = 'runs'")  # Instead of the folder on this machine.
    ends = browser.run("return [...document.querySelectorAll('.box')].map((one) => Math.ceil(one.getBoundingClientRect().bottom))")
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": max(end for end in ends if end < MOST_HEIGHT) + 16, "scale": 1}
    answer = browser.driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png", "clip": clip})
    return base64.b64decode(answer["data"])


def main():
    missing = browsers.missing()
    if missing:
        sys.exit(f"{missing} is missing; tools/setup --browser installs it")
    program = os.path.abspath(sys.argv[1])
    figures = sys.argv[2] if len(sys.argv) > 2 else os.path.join(HERE, "..", "..", "docs", "figures")
    with tempfile.TemporaryDirectory(prefix="gallop-figures-") as folder:
        make_reports(program, folder)
        with page.serving(program, os.path.join(folder, "runs")) as server:
            browser = browsers.Browser(server.address)
            try:
                for task in RECIPES:
                    with open(os.path.join(figures, f"report-{task}.png"), "wb") as file:
                        file.write(take_picture(browser, task))
            finally:
                browser.close()


if __name__ == "__main__":
    main()
