"""One process of a training of PyTorch, for `run.py`: torch_parallel.py FORM LAYERS WIDTH CONTEXT ROWS STEPS

FORM: ddp (DistributedDataParallel), zero-1 (ZeroRedundancyOptimizer) or fsdp (fully_shard of each layer and of the model).
The model is the GPT of benchmarks/step/torch_step.py on random tokens, the optimizer AdamW. Started by
torch.distributed.run. Rank 0 prints the seconds of each step as JSON.
"""

import json
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "step"))
from torch_step import Gpt  # noqa: E402

VOCABULARY = 65


def main():
    form = sys.argv[1]
    layers, width, context, rows, steps = map(int, sys.argv[2:])
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = Gpt(False, layers, width, width // 64, context, VOCABULARY)
    if form == "fsdp":
        for layer in model.layers:
            fully_shard(layer)
        fully_shard(model)
    else:
        model = DistributedDataParallel(model)
    options = {"lr": 1e-3, "weight_decay": 0.1}
    if form == "zero-1":
        optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, **options)
    else:
        optimizer = torch.optim.AdamW(model.parameters(), **options)
    torch.manual_seed(dist.get_rank())
    seconds = []
    for _ in range(steps):
        tokens = torch.randint(VOCABULARY, (rows, context + 1))
        begin = time.perf_counter()
        logits = model(tokens[:, :-1])
        F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - begin)
    if dist.get_rank() == 0:
        print(json.dumps(seconds))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
