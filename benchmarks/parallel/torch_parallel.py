"""One process of a training of PyTorch or DeepSpeed, for `run.py`: torch_parallel.py FORM LAYERS WIDTH CONTEXT ROWS STEPS

FORM: torch-ddp (DistributedDataParallel), torch-zero-1 (ZeroRedundancyOptimizer), torch-fsdp (fully_shard of each layer and
of the model), torch-tensor (parallelize_module of attention and feed-forward layers), torch-pipeline (Schedule1F1B of two
stages and four micro-batches), deepspeed-zero-1, -2 and -3. The model is the GPT of benchmarks/step/torch_step.py on random
tokens, the optimizer AdamW; ROWS are those of one process. Started by torch.distributed.run. Rank 0 prints the seconds of
each step as JSON.
"""

import contextlib
import json
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "step"))
from torch_step import Gpt  # noqa: E402

VOCABULARY = 65
MICRO_BATCHES = 4
OPTIONS = {"lr": 1e-3, "weight_decay": 0.1}


def loss_of(logits, targets):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Trained:
    """A model and its optimizer. Each process has its own rows of a batch."""

    same_batch = False

    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer

    def step(self, inputs, targets):
        loss_of(self.model(inputs), targets).backward()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


def ddp(model):
    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(model)
    return Trained(model, torch.optim.AdamW(model.parameters(), **OPTIONS))


def zero_1(model):
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel

    model = DistributedDataParallel(model)
    return Trained(model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, **OPTIONS))


def fsdp(model):
    from torch.distributed.fsdp import fully_shard

    for layer in model.layers:
        fully_shard(layer)
    fully_shard(model)
    return Trained(model, torch.optim.AdamW(model.parameters(), **OPTIONS))


class DividedAttention(nn.Module):
    """The attention of torch_step.py with a linear layer each for queries, keys and values."""

    def __init__(self, width, heads):
        super().__init__()
        self.head = width // heads
        self.q, self.k, self.v, self.c_proj = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        batch, tokens, _ = x.shape
        q, k, v = (layer(x).view(batch, tokens, -1, self.head).transpose(1, 2) for layer in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).reshape(batch, tokens, -1))


class Tensor(Trained):
    same_batch = True

    def __init__(self, model, width):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for layer in model.layers:
            layer.attn = DividedAttention(width, width // 64)
            columns = {name: ColwiseParallel() for name in ("attn.q", "attn.k", "attn.v", "c_fc")}
            parallelize_module(layer, mesh, {**columns, "attn.c_proj": RowwiseParallel(), "c_proj": RowwiseParallel()})
        super().__init__(model, torch.optim.AdamW(model.parameters(), **OPTIONS))


class Stage(nn.Module):
    def __init__(self, model, rank, stages):
        super().__init__()
        each = len(model.layers) // stages
        self.layers = model.layers[rank * each:(rank + 1) * each]
        self.wte, self.wpe = (model.wte, model.wpe) if rank == 0 else (None, None)
        is_last = rank == stages - 1
        self.ln_f = model.ln_f if is_last else None
        self.lm_head = nn.Linear(*model.wte.weight.shape[::-1], bias=False) if is_last else None

    def forward(self, x):
        if self.wte is not None:
            x = self.wte(x) + self.wpe.weight[:x.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return x if self.lm_head is None else self.lm_head(self.ln_f(x))


class Pipeline(Trained):
    same_batch = True

    def __init__(self, model):
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B

        rank, stages = dist.get_rank(), dist.get_world_size()
        stage = Stage(model, rank, stages)
        super().__init__(stage, torch.optim.AdamW(stage.parameters(), **OPTIONS))
        self.schedule = Schedule1F1B(PipelineStage(stage, rank, stages, torch.device("cpu")), MICRO_BATCHES, loss_fn=loss_of)

    def step(self, inputs, targets):
        if dist.get_rank() == 0:
            self.schedule.step(inputs)
        else:
            self.schedule.step(target=targets, losses=[])
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)


class DeepSpeed(Trained):
    def __init__(self, model, stage, rows):
        import deepspeed

        config = {"train_micro_batch_size_per_gpu": rows, "gradient_accumulation_steps": 1,
                  "zero_allow_untested_optimizer": True, "zero_optimization": {"stage": stage, "overlap_comm": False}}
        optimizer = torch.optim.AdamW(model.parameters(), **OPTIONS)
        engine, *_ = deepspeed.initialize(model=model, optimizer=optimizer, config=config)
        super().__init__(engine, engine)

    def step(self, inputs, targets):
        self.model.backward(loss_of(self.model(inputs), targets))
        self.model.step()


def trained_as(form, model, width, rows):
    if form.startswith("deepspeed-zero-"):
        return DeepSpeed(model, int(form[-1]), rows)
    if form == "torch-tensor":
        return Tensor(model, width)
    return {"torch-ddp": ddp, "torch-zero-1": zero_1, "torch-fsdp": fsdp, "torch-pipeline": Pipeline}[form](model)


def main():
    form = sys.argv[1]
    layers, width, context, rows, steps = map(int, sys.argv[2:])
    # DeepSpeed logs to standard output.
    with contextlib.redirect_stdout(sys.stderr):
        if form.startswith("deepspeed"):
            import deepspeed

            deepspeed.init_distributed("gloo")
        else:
            dist.init_process_group("gloo")
        torch.manual_seed(1)
        trained = trained_as(form, Gpt(False, layers, width, width // 64, context, VOCABULARY), width, rows)
        torch.manual_seed(0 if trained.same_batch else dist.get_rank())
        seconds = []
        for _ in range(steps):
            tokens = torch.randint(VOCABULARY, (2 * rows if trained.same_batch else rows, context + 1))
            inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()
            begin = time.perf_counter()
            trained.step(inputs, targets)
            seconds.append(time.perf_counter() - begin)
    if dist.get_rank() == 0:
        print(json.dumps(seconds), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
