#!/usr/bin/env python3
"""Draws docs/figures/speed.svg from the --json files of the benchmarks.

    draw.py STEP.json LOADING.json FILE.svg
"""

import json
import sys

WIDTH, BAR, GAP, LABEL = 860, 20, 9, 178
PANEL = WIDTH // 2 - 12
NAMES = {"resnet20": "ResNet-20", "wide-resnet": "Wide ResNet", "resnet18": "ResNet-18", "vit": "ViT-tiny",
         "gpt": "GPT, 6 x 256", "gpt2": "GPT-2", "mlp": "MLP", "mlp20": "MLP, 20 layers"}
PYTORCH_FORMS = ("eager", "compile", "max-autotune")
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2933; }
.title { font-weight: 600; font-size: 14px; }
.small { font-size: 12px; fill: #5f6b7a; }
.bar { fill: #0f766e; }
.peer { stroke: #b45309; stroke-width: 1.5; stroke-dasharray: 4 3; }
@media (prefers-color-scheme: dark) {
  text { fill: #e4e7eb; } .small { fill: #9aa5b1; } .bar { fill: #2dd4bf; } .peer { stroke: #f59e0b; }
}
"""


def text(x, y, content, kind=""):
    content = content.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.0f}" y="{y:.0f}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{content}</text>'


def panel(x, title, note, rows, peer):
    """Horizontal bars of (label, ratio, shown); the dashed line is the peer at ratio 1."""
    scale = (PANEL - LABEL - 62) / max(ratio for _, ratio, _ in rows)
    parts = [text(x, 20, title, "title"), text(x, 38, note, "small")]
    top = 54
    for number, (label, ratio, shown) in enumerate(rows):
        y = top + number * (BAR + GAP)
        parts += [text(x, y + 15, label),
                  f'<rect class="bar" x="{x + LABEL}" y="{y}" width="{ratio * scale:.1f}" height="{BAR}" rx="2"/>',
                  text(x + LABEL + ratio * scale + 7, y + 15, shown)]
    bottom = top + len(rows) * (BAR + GAP)
    line = x + LABEL + scale
    parts += [f'<line class="peer" x1="{line:.1f}" x2="{line:.1f}" y1="{top - 4}" y2="{bottom}"/>',
              text(line - 4, bottom + 14, peer, "small")]
    return parts, bottom + 24


def step_rows(results):
    rows = []
    for result in results:
        # The fastest form of PyTorch comes first; others are forms of ours.
        ratio = next(pair["ratio"] for pair in result["compared"] if pair["other"].startswith(PYTORCH_FORMS))
        rows.append((f"{NAMES[result['workload']]}, {result['precision']}", ratio, f"{ratio:.2f}"))
    return rows


def loading_rows(summary):
    names = {"cifar, folder": "32 x 32, from files", "cifar, tar": "32 x 32, from tar", "photos, folder": "500 x 375 to 224, files"}
    return [(label, summary[name]["of_data_loader"], f"{summary[name]['of_data_loader']:.1f}")
            for name, label in names.items()]


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    with open(sys.argv[1]) as step, open(sys.argv[2]) as loading:
        steps, summary = json.load(step)["results"], json.load(loading)["summary"]
    left, left_height = panel(8, "Training step", "speed, the best form of PyTorch = 1", step_rows(steps), "PyTorch")
    right, right_height = panel(WIDTH // 2 + 12, "Loading JPEG files", "images a second, DataLoader = 1",
                                loading_rows(summary), "DataLoader")
    height = max(left_height, right_height)
    body = "\n".join(left + right)
    with open(sys.argv[3], "w") as file:
        file.write(f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
                   f'role="img" aria-label="Speed of Gallop beside PyTorch">\n<style>{STYLE}</style>\n{body}\n</svg>\n')


main()
