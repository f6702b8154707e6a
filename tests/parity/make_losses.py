"""Creates tests/fixtures/losses.safetensors: PyTorch's losses and their gradients for many options.

Run with Python, torch==2.11.0 and safetensors==0.8.0: make_losses.py tests/fixtures [SEED]

SEED draws the numbers (default: 1, with which the stored file is made).

All in fp64. IN/KIND are the outputs and the fields of a batch ("logits", "target", "weight", ...); KIND|LOSS|OPTIONS is
the mean loss [1], followed by its gradient with respect to the logits.
"""

import itertools
import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

N, C = 7, 5
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 1
generator = torch.Generator().manual_seed(SEED)


def randn(*sizes):
    return torch.randn(sizes, generator=generator, dtype=torch.float64)


def rand(*sizes):
    return torch.rand(sizes, generator=generator, dtype=torch.float64)


def labels(*sizes):
    return torch.randint(C, sizes, generator=generator)


def with_ignored(target, ignored):
    target = target.clone()
    target.view(-1)[::3] = ignored
    return target


WEIGHTS = [0.5, 1.0, 2.0, 0.0, 3.0]
IMAGE = labels(3, 2, 4)
KINDS = {
    "labels": {"logits": 2 * randn(N, C), "target": labels(N)},
    "ignored": {"logits": 2 * randn(N, C), "target": with_ignored(labels(N), -100)},
    "tokens": {"logits": 2 * randn(3, 4, C), "target": with_ignored(labels(3, 4), -100)},
    "image": {"logits": 2 * randn(3, C, 2, 4), "target": with_ignored(IMAGE, -100)},
    "soft": {"logits": 2 * randn(N, C), "target": torch.softmax(randn(N, C), 1)},
    "soft-image": {"logits": 2 * randn(3, C, 2, 4), "target": torch.softmax(randn(3, C, 2, 4), 1)},
    "binary": {"logits": 2 * randn(N, C), "target": (rand(N, C) > 0.6).double()},
    "numbers": {"logits": 2 * randn(N, 3), "target": 2 * randn(N, 3)},
    "weighted": {"logits": 2 * randn(N, 3), "target": 2 * randn(N, 3), "weight": rand(N)},
    "each-weighted": {"logits": 2 * randn(N, 3), "target": 2 * randn(N, 3), "weight": rand(N, 3)},
    "column": {"logits": randn(N, 1), "target": randn(N)},
    "counts": {"logits": randn(N, 2), "target": torch.poisson(3 * rand(N, 2), generator=generator)},
    "rates": {"logits": 0.1 + rand(N, 2), "target": torch.poisson(3 * rand(N, 2), generator=generator)},
    "pairs": {"logits": randn(N, 2, 6), "target": torch.tensor([1, -1, 1, 1, -1, -1, 1]).double()},
    "triplets": {"logits": randn(N, 3, 6), "target": torch.zeros(N, dtype=torch.long)},
    "keys": {"logits": randn(N, 5, 6), "target": torch.zeros(N, dtype=torch.long)},
    "sequences": {"logits": 2 * randn(4, 9, C),
                  "target": torch.tensor([[1, 2, 2, 3], [4, 1, -100, -100], [3, 3, 3, -100],
                                          [-100, -100, -100, -100]])},
    "lengths": {"logits": 2 * randn(3, 9, C), "target": torch.tensor([[1, 2, 2, 3], [4, 1, 2, 2], [3, 1, 3, 3]]),
                "target_lengths": torch.tensor([4, 1, 3]), "input_lengths": torch.tensor([9, 5, 6])},
    "too-long": {"logits": 2 * randn(2, 4, C), "target": torch.tensor([[2, 2, 2, -100], [1, 2, -100, -100]])},
}


def numbers(text):
    return torch.tensor(text, dtype=torch.float64) if text else None


def cross_entropy(x, batch, class_weights=(), label_smoothing=0.0, ignore_index=-100):
    last = x.movedim(-1, 1) if x.dim() == 3 else x
    return F.cross_entropy(last, batch["target"], numbers(class_weights), ignore_index=ignore_index,
                           label_smoothing=label_smoothing)


def focal(x, batch, gamma=2.0, class_weights=()):
    last = x.movedim(-1, 1) if x.dim() == 3 else x
    minus_log = F.cross_entropy(last, batch["target"], reduction="none")
    values = (1 - torch.exp(-minus_log)) ** gamma * minus_log
    if class_weights:
        values = values * numbers(class_weights)[batch["target"].clamp_min(0)]
    return values.sum() / (batch["target"] != -100).sum()


def sigmoid_focal(x, batch, gamma=2.0, alpha=0.25):
    """torchvision.ops.sigmoid_focal_loss, line by line."""
    targets = batch["target"]
    p = torch.sigmoid(x)
    ce_loss = F.binary_cross_entropy_with_logits(x, targets, reduction="none")
    p_t = p * targets + (1 - p) * (1 - targets)
    loss = ce_loss * ((1 - p_t) ** gamma)
    if alpha is not None:
        loss = (alpha * targets + (1 - alpha) * (1 - targets)) * loss
    return loss.mean()


def by(function):
    def loss(x, batch, **options):
        if "weight" in batch:
            weight = batch["weight"]
            options["weight"] = (weight.unsqueeze(1) if weight.dim() == 1 else weight).expand_as(batch["target"])
        return function(x.reshape(batch["target"].shape), batch["target"], **options)
    return loss


def weighted_mean(function):
    """Divides by the sum of the weights, as PyTorch does for mse_loss and l1_loss, and not for huber_loss."""
    def loss(x, batch, **options):
        values = function(x.reshape(batch["target"].shape), batch["target"], reduction="none", **options)
        if "weight" not in batch:
            return values.mean()
        weight = batch["weight"]
        weight = (weight.unsqueeze(1) if weight.dim() == 1 else weight).expand_as(values)
        return (values * weight).sum() / weight.sum()
    return loss


def quantile(x, batch, quantiles=(0.5,)):
    q = numbers(quantiles)
    away = batch["target"].unsqueeze(-1) - x.reshape(*batch["target"].shape, len(quantiles))
    return torch.maximum(q * away, (q - 1) * away).mean()


def gaussian_nll(x, batch, full=False, eps=1e-6):
    x = x.reshape(*batch["target"].shape, 2)
    return F.gaussian_nll_loss(x[..., 0], batch["target"], x[..., 1].exp(), full=full, eps=eps)


def bce(x, batch, pos_weight=()):
    return F.binary_cross_entropy_with_logits(x, batch["target"], pos_weight=numbers(pos_weight))


def kl_divergence(x, batch, log_target=False):
    return F.kl_div(F.log_softmax(x, -1), batch["target"], reduction="batchmean", log_target=log_target)


def cosine(x, batch, margin=0.0):
    return F.cosine_embedding_loss(x[:, 0], x[:, 1], batch["target"], margin=margin)


def triplet(x, batch, margin=1.0, p=2.0, eps=1e-6, swap=False):
    return F.triplet_margin_loss(x[:, 0], x[:, 1], x[:, 2], margin=margin, p=p, eps=eps, swap=swap)


def info_nce(x, batch, temperature=0.1, negatives="batch"):
    x = F.normalize(x, dim=-1)
    if negatives == "batch":
        return F.cross_entropy(x[:, 0] @ x[:, 1].T / temperature, torch.arange(len(x)))
    return F.cross_entropy(torch.einsum("nd,nkd->nk", x[:, 0], x[:, 1:]) / temperature,
                           torch.zeros(len(x), dtype=torch.long))


def dice(x, batch, smooth=1.0, squared=False, include_background=True):
    """monai.losses.DiceLoss with smooth_nr = smooth_dr = smooth, except for ignored labels."""
    target = batch["target"]
    if target.is_floating_point():
        p, t = torch.sigmoid(x), target
    else:
        counts = (target != -100).unsqueeze(1)
        p = torch.softmax(x, 1) * counts
        t = F.one_hot(target.clamp_min(0), C).movedim(-1, 1) * counts
    p, t = p.flatten(2), t.flatten(2)
    if not include_background:
        p, t = p[:, 1:], t[:, 1:]
    size = (p ** 2).sum(2) + (t ** 2).sum(2) if squared else p.sum(2) + t.sum(2)
    return (1 - (2 * (p * t).sum(2) + smooth) / (size + smooth)).mean()


def ctc(x, batch, blank=0, zero_infinity=False):
    target = batch["target"]
    target_lengths = batch.get("target_lengths", (target != -100).sum(1))
    input_lengths = batch.get("input_lengths", torch.full((len(x),), x.shape[1]))
    return F.ctc_loss(F.log_softmax(x, 2).transpose(0, 1), target.clamp_min(0), input_lengths, target_lengths,
                      blank=blank, zero_infinity=zero_infinity)


EVERY = {"class_weights": ((), WEIGHTS), "label_smoothing": (0.0, 0.1)}
CASES = [
    ("cross-entropy", cross_entropy, ["labels", "ignored", "tokens", "image", "soft", "soft-image"], EVERY),
    ("cross-entropy", cross_entropy, ["labels", "all-of-image"], EVERY | {"ignore_index": (2,)}),
    ("focal", focal, ["labels", "ignored", "tokens", "image"],
     {"gamma": (0.0, 0.5, 2.0), "class_weights": ((), WEIGHTS)}),
    ("focal", sigmoid_focal, ["binary"], {"gamma": (0.0, 0.5, 2.0), "alpha": (0.25, 0.6, None)}),
    ("bce-with-logits", bce, ["binary"], {"pos_weight": ((), [2.5], WEIGHTS)}),
    ("mse", by(F.mse_loss), ["numbers", "weighted", "each-weighted", "column"], {}),
    ("l1", by(F.l1_loss), ["numbers", "weighted", "each-weighted", "column"], {}),
    ("huber", weighted_mean(F.huber_loss), ["numbers", "weighted", "column"], {"delta": (1.0, 0.3)}),
    ("smooth-l1", weighted_mean(F.smooth_l1_loss), ["numbers", "weighted", "column"], {"beta": (1.0, 0.3, 0.0)}),
    ("quantile", quantile, ["numbers", "column"], {"quantiles": ([0.5], [0.1])}),
    ("quantile", quantile, ["column-of-three"], {"quantiles": ([0.1, 0.5, 0.9],)}),
    ("poisson-nll", by(F.poisson_nll_loss), ["counts"], {"log_input": (True,), "full": (False, True)}),
    ("poisson-nll", by(F.poisson_nll_loss), ["rates"],
     {"log_input": (False,), "full": (False, True), "eps": (1e-8, 1e-2)}),
    ("gaussian-nll", gaussian_nll, ["means-and-variances", "column-of-two"],
     {"full": (False, True), "eps": (1e-6, 0.5)}),
    ("kl-divergence", kl_divergence, ["soft"], {"log_target": (False,)}),
    ("kl-divergence", kl_divergence, ["log-soft"], {"log_target": (True,)}),
    ("cosine-embedding", cosine, ["pairs"], {"margin": (0.0, 0.4, -0.5)}),
    ("triplet-margin", triplet, ["triplets"],
     {"margin": (1.0, 0.2), "p": (2.0, 1.0), "eps": (1e-6, 1e-2), "swap": (False, True)}),
    ("info-nce", info_nce, ["pairs"], {"temperature": (0.1, 1.0), "negatives": ("batch",)}),
    ("info-nce", info_nce, ["keys"], {"temperature": (0.1, 1.0), "negatives": ("given",)}),
    ("dice", dice, ["image", "soft-image"],
     {"smooth": (1.0, 1e-3), "squared": (False, True), "include_background": (True, False)}),
    ("ctc", ctc, ["sequences", "lengths"], {"blank": (0,), "zero_infinity": (False, True)}),
    ("ctc", ctc, ["too-long"], {"blank": (0,), "zero_infinity": (True,)}),
    ("ctc", ctc, ["last-blank"], {"blank": (C - 1,), "zero_infinity": (False, True)}),
    ("ctc", ctc, ["middle-blank"], {"blank": (2,), "zero_infinity": (False, True)}),
]
KINDS["all-of-image"] = {"logits": 2 * randn(3, C, 2, 4), "target": IMAGE}
KINDS["column-of-three"] = {"logits": randn(N, 3), "target": randn(N)}
KINDS["log-soft"] = {"logits": 2 * randn(N, C), "target": torch.log_softmax(randn(N, C), 1)}
KINDS["column-of-two"] = {"logits": randn(N, 2), "target": randn(N)}
KINDS["means-and-variances"] = {"logits": randn(N, 6), "target": 2 * randn(N, 3)}
KINDS["last-blank"] = {"logits": 2 * randn(3, 9, C), "target": torch.tensor([[0, 2, 2, 3], [0, 1, -100, -100],
                                                                             [3, 3, 0, -100]])}
KINDS["middle-blank"] = {"logits": 2 * randn(3, 9, C), "target": torch.tensor([[1, 4, 4, 3], [0, 1, 0, -100],
                                                                               [3, 3, -100, -100]])}


def text_of(value):
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(str, value)) + "]"
    return "none" if value is None else str(value).lower()


stored = {}
for kind, fields in KINDS.items():
    stored.update({f"IN/{kind}/{name}": value for name, value in fields.items()})
for name, function, kinds, options in CASES:
    for kind in kinds:
        for values in itertools.product(*options.values()):
            chosen = dict(zip(options, values))
            x = KINDS[kind]["logits"].clone().requires_grad_()
            batch = {key: value for key, value in KINDS[kind].items() if key != "logits"}
            mean = function(x, batch, **chosen)
            mean.backward()
            text = " ".join([name] + [f"{key}={text_of(value)}" for key, value in chosen.items()])
            stored[f"{kind}|{text}"] = torch.cat([mean.detach().reshape(1), x.grad.flatten()])
path = pathlib.Path(sys.argv[1]) / "losses.safetensors"
save_file(stored, path, {"torch": torch.__version__.split("+")[0]})
path.chmod(0o644)
