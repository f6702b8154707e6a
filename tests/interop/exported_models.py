#!/usr/bin/env python3
"""Exports about 100 models of torchvision, timm, transformers and diffusers, and a few written here, and lets `gallop`
run their training and evaluation programs.

    exported_models.py GALLOP [--only REGEX] [--json FILE]

Needs torch, torchvision, timm, transformers and diffusers. Each model is exported by tools/gallop_export.py, which
compares the export with the model in Python; `gallop model` then compares outputs and the gradients of all parameters
with those of Python. Prints a line per model:

    equal    bit for bit
    close    within 1e-5 of the largest number, which is printed
    rejected the reason, by torch.export, by the helper or by gallop
    wrong    anything else

Exit code: 0 if at least 95 % of the models that can be exported are equal, 1 otherwise.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import warnings

import torch
from torch import nn
from torch.export import Dim
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tools")]
import gallop_export  # noqa: E402

CLOSE = 1e-5
BATCH = Dim("batch", min=2, max=4096)


def images(size=64, channels=3):
    return {"args": (torch.randn(2, channels, size, size),)}


def tokens(vocabulary=99, length=12):
    return torch.arange(2 * length).reshape(2, length) % vocabulary


def torchvision_cases():
    import torchvision.models as zoo
    small = ["resnet18", "resnet50", "resnext50_32x4d", "densenet121", "vgg11_bn", "squeezenet1_1", "mobilenet_v2",
             "mobilenet_v3_small", "efficientnet_b0", "efficientnet_v2_s", "regnet_y_400mf", "mnasnet0_5",
             "shufflenet_v2_x0_5", "convnext_tiny", "swin_t"]
    for name in small:
        yield f"torchvision/{name}", lambda name=name: (getattr(zoo, name)(num_classes=10), images())
    yield "torchvision/alexnet", lambda: (zoo.alexnet(num_classes=10), images(96))
    yield "torchvision/vit_b_16", lambda: (zoo.VisionTransformer(64, 16, 2, 3, 48, 96, num_classes=10), images())
    yield "torchvision/maxvit", lambda: (zoo.maxvit.MaxVit((64, 64), 16, 2, [16, 32], [1, 1], 8, 0.0, num_classes=10), images())
    yield "torchvision/googlenet", lambda: (zoo.googlenet(num_classes=10, aux_logits=False, init_weights=False), images())
    yield "torchvision/inception_v3", lambda: (
        zoo.inception_v3(num_classes=10, aux_logits=False, init_weights=False), images(96))
    yield "torchvision/deeplabv3", lambda: (
        zoo.segmentation.deeplabv3_mobilenet_v3_large(weights_backbone=None, num_classes=5), images())
    yield "torchvision/lraspp", lambda: (
        zoo.segmentation.lraspp_mobilenet_v3_large(weights_backbone=None, num_classes=5), images())
    yield "torchvision/fcn", lambda: (
        zoo.segmentation.fcn_resnet50(weights_backbone=None, num_classes=5, aux_loss=False), images())
    yield "torchvision/r3d_18", lambda: (zoo.video.r3d_18(num_classes=5), {"args": (torch.randn(2, 3, 4, 32, 32),)})


def timm_cases():
    import timm
    for name, size in (("resnet26d", 64), ("resnetv2_50", 64), ("convnext_atto", 64), ("convnextv2_atto", 64),
                       ("efficientnet_lite0", 64), ("mobilenetv3_small_050", 64), ("mobilenetv4_conv_small", 64),
                       ("ghostnet_050", 64), ("mobilevit_xxs", 64), ("vit_tiny_patch16_224", 64),
                       ("deit_tiny_patch16_224", 64), ("swin_tiny_patch4_window7_224", 224), ("coat_lite_tiny", 64),
                       ("cait_xxs24_224", 64), ("mixer_s32_224", 224), ("resmlp_12_224", 224), ("poolformer_s12", 64),
                       ("pit_ti_224", 224), ("levit_128s", 224), ("regnety_002", 64), ("rexnet_100", 64),
                       ("xcit_nano_12_p16_224", 64), ("edgenext_xx_small", 64), ("repvgg_a0", 64), ("nfnet_f0", 64),
                       ("res2net50_14w_8s", 64), ("hrnet_w18_small", 64), ("dla34", 64)):
        sized = {"img_size": size} if re.match("vit|deit|cait|xcit|coat", name) else {}
        if re.match("convnext|vit|deit", name):
            sized["drop_path_rate"] = 0.1
        yield f"timm/{name}", lambda name=name, size=size, sized=sized: (
            timm.create_model(name, num_classes=10, **sized), images(size))


class Head(nn.Module):
    """A model of transformers as positional tensors to one tensor."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, *tensors):
        result = self.model(**dict(zip(self.names, tensors)))
        return next(result[k] for k in ("logits", "last_hidden_state", "logits_per_image") if k in result)

    def train(self, mode=True):
        super().train(mode)
        # In training, encoders with LayerDrop branch on a random number, which torch.export cannot trace, also if its
        # probability is 0.
        for module in self.modules():
            if getattr(module, "layerdrop", None) == 0:
                module.training = False
        return self


def of_transformers(make, names, inputs, strict=None):
    def build():
        model = make()
        if hasattr(model, "config"):
            model.config.use_cache = False
        shapes = {"tensors": tuple({0: BATCH} for _ in names)}
        return Head(model, names), {"args": tuple(inputs()), "dynamic_shapes": shapes, "strict": strict}
    return build


def transformers_cases():
    import transformers as hf
    text = {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
            "intermediate_size": 64, "max_position_embeddings": 64}
    decoder = text | {"num_key_value_heads": 2, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}

    def masked():
        return tokens(), torch.ones(2, 12, dtype=torch.long)

    encoders = {"bert": ("BertConfig", "BertForSequenceClassification", {}),
                "roberta": ("RobertaConfig", "RobertaForSequenceClassification", {}),
                "electra": ("ElectraConfig", "ElectraForSequenceClassification", {"embedding_size": 16}),
                "albert": ("AlbertConfig", "AlbertForSequenceClassification", {"embedding_size": 16}),
                "xlm-roberta": ("XLMRobertaConfig", "XLMRobertaForTokenClassification", {}),
                "deberta-v2": ("DebertaV2Config", "DebertaV2ForSequenceClassification", {}),
                "mpnet": ("MPNetConfig", "MPNetForSequenceClassification", {}),
                "bert-mlm": ("BertConfig", "BertForMaskedLM", {})}
    for name, (config, model, more) in encoders.items():
        yield f"transformers/{name}", of_transformers(
            lambda c=config, m=model, more=more: getattr(hf, m)(getattr(hf, c)(**text, **more)),
            ("input_ids", "attention_mask"), masked)
    yield "transformers/distilbert", of_transformers(
        lambda: hf.DistilBertForSequenceClassification(hf.DistilBertConfig(
            vocab_size=99, dim=32, n_layers=2, n_heads=4, hidden_dim=64, max_position_embeddings=64)),
        ("input_ids", "attention_mask"), masked)
    decoders = {"llama": ("LlamaConfig", "LlamaForCausalLM", {}), "mistral": ("MistralConfig", "MistralForCausalLM", {}),
                "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", {}), "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", {}),
                "gemma": ("GemmaConfig", "GemmaForCausalLM", {"head_dim": 8}),
                "gemma2": ("Gemma2Config", "Gemma2ForCausalLM", {"head_dim": 8}),
                "phi": ("PhiConfig", "PhiForCausalLM", {}), "stablelm": ("StableLmConfig", "StableLmForCausalLM", {}),
                "olmo": ("OlmoConfig", "OlmoForCausalLM", {}), "cohere": ("CohereConfig", "CohereForCausalLM", {}),
                "granite": ("GraniteConfig", "GraniteForCausalLM", {}),
                "starcoder2": ("Starcoder2Config", "Starcoder2ForCausalLM", {})}
    for name, (config, model, more) in decoders.items():
        yield f"transformers/{name}", of_transformers(
            lambda c=config, m=model, more=more: getattr(hf, m)(getattr(hf, c)(**decoder, **more)),
            ("input_ids",), lambda: (tokens(),), strict=True)
    yield "transformers/mixtral", of_transformers(mixtral, ("input_ids",), lambda: (tokens(),), strict=True)
    yield "transformers/gpt2", of_transformers(
        lambda: hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=99, n_embd=32, n_layer=2, n_head=4, n_positions=64)),
        ("input_ids",), lambda: (tokens(),))
    yield "transformers/gpt-neox", of_transformers(
        lambda: hf.GPTNeoXForCausalLM(hf.GPTNeoXConfig(**text)), ("input_ids",), lambda: (tokens(),))
    yield "transformers/opt", of_transformers(
        lambda: hf.OPTForCausalLM(hf.OPTConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2, ffn_dim=64,
                                               num_attention_heads=4, max_position_embeddings=64,
                                               word_embed_proj_dim=32)), ("input_ids",), lambda: (tokens(),))
    yield "transformers/bloom", of_transformers(
        lambda: hf.BloomForCausalLM(hf.BloomConfig(vocab_size=99, hidden_size=32, n_layer=2, n_head=4)),
        ("input_ids",), lambda: (tokens(),))
    yield "transformers/falcon", of_transformers(
        lambda: hf.FalconForCausalLM(hf.FalconConfig(vocab_size=99, hidden_size=32, num_hidden_layers=2,
                                                     num_attention_heads=4)), ("input_ids",), lambda: (tokens(),))
    pair = ("input_ids", "decoder_input_ids")
    yield "transformers/t5", of_transformers(
        lambda: hf.T5ForConditionalGeneration(hf.T5Config(vocab_size=99, d_model=32, d_kv=8, d_ff=64, num_layers=2,
                                                          num_heads=4)), pair, lambda: (tokens(), tokens()))
    yield "transformers/bart", of_transformers(
        lambda: hf.BartForConditionalGeneration(hf.BartConfig(
            vocab_size=99, d_model=32, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=64, decoder_ffn_dim=64,
            encoder_attention_heads=4, decoder_attention_heads=4, max_position_embeddings=64, encoder_layerdrop=0.0,
            decoder_layerdrop=0.0)), pair, lambda: (tokens(), tokens()))
    yield "transformers/whisper", of_transformers(
        lambda: hf.WhisperForConditionalGeneration(hf.WhisperConfig(
            vocab_size=99, num_mel_bins=16, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, max_source_positions=20,
            max_target_positions=20, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1)),
        ("input_features", "decoder_input_ids"), lambda: (torch.randn(2, 16, 40), tokens()))
    vision = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
              "image_size": 32, "patch_size": 8}
    for name, config, model in (("vit", "ViTConfig", "ViTForImageClassification"),
                                ("deit", "DeiTConfig", "DeiTForImageClassification"),
                                ("dinov2", "Dinov2Config", "Dinov2ForImageClassification"),
                                ("beit", "BeitConfig", "BeitForImageClassification")):
        yield f"transformers/{name}", of_transformers(
            lambda c=config, m=model: getattr(hf, m)(getattr(hf, c)(**vision)), ("pixel_values",),
            lambda: (torch.randn(2, 3, 32, 32),))
    yield "transformers/segformer", of_transformers(
        lambda: hf.SegformerForSemanticSegmentation(hf.SegformerConfig(
            hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], decoder_hidden_size=16, num_labels=3)),
        ("pixel_values",), lambda: (torch.randn(2, 3, 64, 64),))
    yield "transformers/convnextv2", of_transformers(
        lambda: hf.ConvNextV2ForImageClassification(hf.ConvNextV2Config(hidden_sizes=[8, 16, 24, 32],
                                                                        depths=[1, 1, 1, 1])),
        ("pixel_values",), lambda: (torch.randn(2, 3, 64, 64),))


def mixtral():
    import transformers as hf
    model = hf.MixtralForCausalLM(hf.MixtralConfig(
        vocab_size=99, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, num_local_experts=4, max_position_embeddings=64, pad_token_id=0))
    model.set_experts_implementation("batched_mm")
    return model


class First(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, *tensors):
        return self.model(*tensors, return_dict=False)[0]


def diffusers_cases():
    import diffusers
    steps = torch.tensor([3, 7])
    few = Dim("batch", min=2, max=63)  # Larger batches are upsampled by other code.
    every = {"dynamic_shapes": {"tensors": ({0: few}, {0: few})}}
    yield "diffusers/unet2d", lambda: (
        First(diffusers.UNet2DModel(sample_size=16, block_out_channels=(8, 16), norm_num_groups=4, layers_per_block=1,
                                    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                                    up_block_types=("AttnUpBlock2D", "UpBlock2D"))),
        {"args": (torch.randn(2, 3, 16, 16), steps)} | every)
    yield "diffusers/unet2d-condition", lambda: (
        First(diffusers.UNet2DConditionModel(
            sample_size=16, block_out_channels=(8, 16), norm_num_groups=4, layers_per_block=1, cross_attention_dim=8,
            attention_head_dim=4, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))),
        {"args": (torch.randn(2, 4, 16, 16), steps, torch.randn(2, 5, 8)),
         "dynamic_shapes": {"tensors": ({0: few}, {0: few}, {0: few})}})
    yield "diffusers/autoencoder", lambda: (
        First(diffusers.AutoencoderKL(block_out_channels=(8, 16), norm_num_groups=4, layers_per_block=1,
                                      down_block_types=("DownEncoderBlock2D",) * 2,
                                      up_block_types=("UpDecoderBlock2D",) * 2)), {"args": (torch.randn(2, 3, 16, 16),)})


class WaveNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(1, 16, 1)
        self.layers = nn.ModuleList(nn.Conv1d(16, 32, 2, dilation=2**i) for i in range(4))
        self.last = nn.Conv1d(16, 8, 1)

    def forward(self, x):
        x = self.first(x)
        for i, layer in enumerate(self.layers):
            a, b = layer(F.pad(x, (2**i, 0))).chunk(2, 1)
            x = x + torch.tanh(a) * torch.sigmoid(b)
        return self.last(x)


class Recurrent(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.layers = kind(16, 24, num_layers=2, batch_first=True, dropout=0.1, bidirectional=True)
        self.head = nn.Linear(48, 5)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens))[0].mean(1))


class PointNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(3, 32, 1), nn.BatchNorm1d(32), nn.ReLU(), nn.Conv1d(32, 64, 1))
        self.head = nn.Linear(64, 10)

    def forward(self, points):
        return self.head(self.layers(points).amax(2))


class Recommender(nn.Module):
    def __init__(self):
        super().__init__()
        self.bottom = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 16))
        self.tables = nn.ModuleList(nn.Embedding(100, 16) for _ in range(4))
        self.top = nn.Sequential(nn.Linear(16 + 10, 32), nn.ReLU(), nn.Linear(32, 1))
        self.register_buffer("pairs", torch.tril_indices(5, 5, -1), persistent=False)

    def forward(self, numbers, categories):
        dense = self.bottom(numbers)
        all = torch.stack([dense, *(table(categories[:, i]) for i, table in enumerate(self.tables))], 1)
        products = all @ all.transpose(1, 2)
        return self.top(torch.cat([dense, products[:, self.pairs[0], self.pairs[1]]], 1))


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        return x.round()

    @staticmethod
    def backward(context, gradient):
        return gradient


class Quantized(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, x):
        return self.last(StraightThrough.apply(self.first(x) * 4))


class Conditional(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 3)

    def forward(self, x):
        return self.linear(x) if x.sum() > 0 else self.linear(-x)


def own_cases():
    yield "own/mlp", lambda: (nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 5)),
                              {"args": (torch.randn(4, 20),)})
    for kind in (nn.LSTM, nn.GRU, nn.RNN):
        yield f"own/{kind.__name__.lower()}", lambda kind=kind: (Recurrent(kind), {"args": (tokens(50),)})
    yield "own/wavenet", lambda: (WaveNet(), {"args": (torch.randn(2, 1, 40),)})
    yield "own/pointnet", lambda: (PointNet(), {"args": (torch.randn(2, 3, 30),)})
    yield "own/dlrm", lambda: (Recommender(), {"args": (torch.randn(4, 13), torch.randint(0, 100, (4, 4)))})
    yield "own/transformer", lambda: (nn.TransformerEncoderLayer(32, 4, 64, batch_first=True),
                                      {"args": (torch.randn(2, 10, 32),)})
    yield "own/multihead", lambda: (nn.TransformerEncoder(nn.TransformerEncoderLayer(
        32, 4, 64, batch_first=True, norm_first=True), 2, enable_nested_tensor=False), {"args": (torch.randn(2, 10, 32),)})
    yield "own/straight-through", lambda: (Quantized(), {"args": (torch.randn(4, 8),)})
    yield "own/conditional", lambda: (Conditional(), {"args": (torch.randn(4, 8),)})


def cases():
    for group in (own_cases, torchvision_cases, timm_cases, transformers_cases, diffusers_cases):
        yield from group()


def try_case(gallop, build, folder):
    torch.manual_seed(1)
    model, options = build()
    file = folder / "net.pt2"
    file.unlink(missing_ok=True)
    try:
        gallop_export.save(model, options.pop("args"), file, **options)
    except gallop_export.ExportError as error:
        return "rejected", "export: " + " ".join(str(error).split())
    result = subprocess.run([gallop, "model", str(file), "--json"], capture_output=True, text=True)
    if result.returncode not in (0, 3) or not result.stdout:
        return "wrong", f"exit code {result.returncode}: {result.stderr}"
    report = json.loads(result.stdout)
    if report["errors"]:
        return "rejected", "gallop: " + report["errors"][0]
    errors = [(run["error"], run["mode"], run.get("worst", "")) for run in report["sample"] if "error" in run]
    if len(errors) != 2:
        return "wrong", "no comparison"
    worst = max(errors)
    if worst[0] == 0:
        return "equal", f"{len(report['sample'][0]['gradient_norms'])} gradients"
    return "close" if worst[0] < CLOSE else "wrong", f"{worst[0]:.1e} in {worst[1]}: {worst[2]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gallop")
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    counts, lines = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for name, build in cases():
            if not re.search(arguments.only, name):
                continue
            begin = time.monotonic()
            try:
                kind, text = try_case(arguments.gallop, build, pathlib.Path(folder))
            except Exception as error:  # An error of the packages, before the export.
                kind, text = "skipped", f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            counts[kind] = counts.get(kind, 0) + 1
            lines.append({"name": name, "result": kind, "text": text})
            print(f"{kind:<9} {name:<32} {text[:200]}  ({time.monotonic() - begin:.1f} s)", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    if arguments.json:
        pathlib.Path(arguments.json).write_text(json.dumps(lines, indent=1) + "\n")
    exported = sum(counts.get(kind, 0) for kind in ("equal", "close", "wrong"))
    return 0 if exported and counts.get("equal", 0) >= 0.95 * exported and not counts.get("wrong") else 1


if __name__ == "__main__":
    sys.exit(main())
