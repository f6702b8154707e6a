"""Creates tests/fixtures/pipeline_schedules.json: the orders of passes of PyTorch's pipeline schedules.

Run with Python and torch==2.11.0: make_pipeline_schedules.py tests/fixtures

A case has the name of the schedule in Gallop, the numbers of ranks, stages per rank and micro-batches, and the actions of
each rank, separated by spaces.
"""

import json
import pathlib
import re
import sys
import types

from torch.distributed.pipelining import schedules

MULTIPLE = {"interleaved-1f1b": schedules.ScheduleInterleaved1F1B, "zero-bubble": schedules.ScheduleInterleavedZeroBubble,
            "zbv": schedules.ScheduleZBVZeroBubble, "dualpipev": schedules.ScheduleDualPipeV}
SINGLE = {"gpipe": schedules.ScheduleGPipe, "1f1b": None}


def actions_of(action):
    if action is None:
        return []
    if action.sub_actions is not None:
        return [text for part in action.sub_actions for text in actions_of(part)]
    return [str(action)] if re.fullmatch(r"\d+[FBIW]\d+", str(action)) else []


def order_of(name, ranks, stages, micro_batches):
    """PyTorch computes these orders from numbers only, without process groups."""
    if name == "1f1b":  # PyTorch's list of it begins with micro-batch 1 on the last rank, unlike what it runs.
        split = [text.split() for text in order_of("zero-bubble", ranks, 1, micro_batches)]
        return [" ".join(text.replace("I", "B") for text in rank if "W" not in text) for rank in split]
    if name in SINGLE:
        schedule = SINGLE[name].__new__(SINGLE[name])
        schedule._num_stages, schedule._n_microbatches = ranks, micro_batches
        order = schedule._get_pipeline_order()
    else:
        schedule = MULTIPLE[name].__new__(MULTIPLE[name])
        schedule.pp_group_size, schedule.n_local_stages = ranks, stages
        schedule.num_stages, schedule._num_stages = ranks * stages, ranks * stages
        schedule._n_microbatches = micro_batches
        schedule._stages = [types.SimpleNamespace()] * stages
        schedule.number_of_rounds = max(1, micro_batches // ranks)
        schedule.microbatches_per_round = micro_batches // schedule.number_of_rounds
        order = {rank: schedule._calculate_single_rank_operations(rank) for rank in range(ranks)}
    return [" ".join(text for action in order[rank] for text in actions_of(action)) for rank in range(ranks)]


def main():
    cases = []
    for ranks, micro_batches in ((1, 2), (2, 4), (2, 6), (3, 6), (4, 8), (4, 12)):
        for name in (*SINGLE, *MULTIPLE):
            for stages in {"interleaved-1f1b": (2, 3), "zero-bubble": (1, 2), "zbv": (2,), "dualpipev": (2,)}.get(name, (1,)):
                cases.append({"name": name, "ranks": ranks, "stages_per_rank": stages, "micro_batches": micro_batches,
                              "actions": order_of(name, ranks, stages, micro_batches)})
    # Fewer micro-batches than fill the pipeline, and rounds that are larger than the number of ranks.
    for name, ranks, stages, micro_batches in (("zbv", 3, 2, 2), ("gpipe", 4, 1, 2), ("interleaved-1f1b", 4, 2, 2),
                                               ("interleaved-1f1b", 4, 2, 10), ("zero-bubble", 3, 1, 5)):
        cases.append({"name": name, "ranks": ranks, "stages_per_rank": stages, "micro_batches": micro_batches,
                      "actions": order_of(name, ranks, stages, micro_batches)})
    with open(pathlib.Path(sys.argv[1]) / "pipeline_schedules.json", "w", encoding="utf-8") as file:
        file.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")


if __name__ == "__main__":
    main()
