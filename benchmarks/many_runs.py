"""Common code of the benchmarks on folders of many runs: arguments, the folders, and output."""

import argparse
import json
import statistics
import subprocess

from results_file import write_results


def parser(description, repeat):
    arguments = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--bench", required=True, help="path of bench_runs, which creates the runs")
    arguments.add_argument("--runs", type=int, default=5000)
    arguments.add_argument("--metrics", type=int, default=100)
    arguments.add_argument("--points", type=int, default=10)
    arguments.add_argument("--repeat", type=int, default=repeat)
    arguments.add_argument("--out", help="file for the results")
    return arguments


def make(bench, folder, runs, metrics, points):
    subprocess.run([bench, "make", folder, str(runs), str(metrics), str(points)], check=True)


def spread(times):
    return {"median": round(statistics.median(times), 4), "min": round(min(times), 4), "max": round(max(times), 4)}


def tell(result, out):
    print(json.dumps(result, indent=1))
    write_results(out, result)
