#!/usr/bin/env python3
"""Creates tests/fixtures/tables.json: the preprocessing of tables by scikit-learn and pandas, and embeddings and
networks for tables by rtdl_num_embeddings and tabm.

    python3 -m venv /tmp/venv
    /tmp/venv/bin/pip install scikit-learn pandas torch rtdl_num_embeddings tabm
    /tmp/venv/bin/python tests/parity/make_tables.py tests/fixtures/tables.json
"""

import json
import sys

import numpy
import pandas
import rtdl_num_embeddings
import sklearn
import tabm
import torch
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, QuantileTransformer, StandardScaler


def columns(rng):
    """Training and further values of one column each: skewed, with ties, wide, and few."""
    return {
        "skewed": (rng.lognormal(0, 1, 200), numpy.array([-1, 0.01, 0.5, 1, 3, 20, 1000.0])),
        "ties": (rng.integers(0, 6, 150).astype(float), numpy.array([-1, 0, 1, 2.5, 3, 5, 6.0])),
        "wide": (1e9 + rng.normal(0, 5, 120), numpy.array([1e9 - 20, 1e9 - 3, 1e9, 1e9 + 3, 1e9 + 20])),
        "few": (numpy.array([3.0, 1.0, 2.0, 2.0]), numpy.array([0.5, 1.0, 1.2, 2.0, 2.7, 3.0])),
    }


def scaled(train, more):
    column, further = train[:, None], more[:, None]
    count = max(min(len(train) // 30, 1000), 10)
    quantile = QuantileTransformer(n_quantiles=count, output_distribution="normal", subsample=None)
    # scikit-learn takes no more quantiles than rows; Gallop takes ten of fewer than ten rows as well.
    result = {"train": train.tolist(), "more": more.tolist(),
              "standard": StandardScaler().fit(column).transform(further)[:, 0].tolist(),
              "bins": rtdl_num_embeddings.compute_bins(torch.tensor(column, dtype=torch.float64), n_bins=3)[0].tolist()}
    if count <= len(train):
        quantile.fit(column)
        result |= {"quantiles": quantile.quantiles_[:, 0].tolist(), "count": count,
                   "quantile": quantile.transform(further)[:, 0].tolist()}
    return result


def mixed():
    """A table of all kinds of columns with missing values, and its encoding."""
    text = ("size,rooms,kind,garden,built,code\n10.5,1,flat,yes,2020-01-31,007\n,2,house,no,2021-06-01,012\n"
            "30,NA,flat,no,2019-12-24,007\n22,4,?,yes,2020-02-29,099\n18.25,3,castle,no,2020-07-15,012\n")
    frame = pandas.read_csv(__import__("io").StringIO(text), na_values=["?"], dtype={"code": str})
    numbers = frame[["size", "rooms"]]
    filled = SimpleImputer(strategy="median").fit_transform(numbers)
    dates = pandas.to_datetime(frame["built"])
    days = (dates - pandas.Timestamp("1970-01-01")) / pandas.Timedelta(days=1)
    parts = pandas.DataFrame({"days": days, "month": dates.dt.month, "day": dates.dt.day,
                              "weekday": (dates.dt.weekday + 1) % 7})  # Sunday is 0.
    hot = OneHotEncoder(sparse_output=False)
    return {"text": text, "numbers": StandardScaler().fit_transform(filled).tolist(),
            "missing": numbers.isna().astype(int).values.tolist(),
            "garden": (frame["garden"] == "yes").astype(int).tolist(),
            "parts": StandardScaler().fit_transform(parts).tolist(),
            "kind": hot.fit_transform(frame[["kind"]].fillna("")).tolist(),  # "", castle, flat, house
            "code": hot.fit_transform(frame[["code"]]).tolist()}


def parameters(module):
    return {name: {"sizes": list(tensor.shape), "values": tensor.detach().flatten().tolist()}
            for name, tensor in module.named_parameters()}


def randomize(module, generator):
    with torch.no_grad():
        for tensor in module.parameters():
            tensor.copy_(torch.randn(tensor.shape, generator=generator, dtype=tensor.dtype) * 0.5)


def networks():
    generator = torch.Generator().manual_seed(5)
    bins = [torch.tensor([-1.0, -0.2, 0.3, 2.0]), torch.tensor([0.0, 1.0]), torch.tensor([-2.0, 0.5, 1.0])]
    x = torch.tensor([[-3.0, 0.0, 0.7], [0.1, 1.0, -4.0], [0.3, 1.0, 3.0], [5.0, 0.0, 0.5]])
    piecewise = rtdl_num_embeddings.PiecewiseLinearEmbeddings(bins, 4, activation=False, version="B")
    randomize(piecewise, generator)
    periodic = rtdl_num_embeddings.PeriodicEmbeddings(3, 4, n_frequencies=5, activation=True, lite=False)
    randomize(periodic, generator)
    result = {"bins": [one.tolist() for one in bins], "x": x.tolist(),
              "piecewise": {"parameters": parameters(piecewise), "y": piecewise(x).flatten().tolist()},
              "periodic": {"parameters": parameters(periodic), "y": periodic(x).flatten().tolist()}}
    for name in ("tabm", "tabm-mini"):
        net = tabm.TabM.make(n_num_features=3, d_out=2, arch_type=name, k=3, n_blocks=2, d_block=6, dropout=0.0,
                             start_scaling_init="normal")
        randomize(net, generator)
        y = net(x)
        target = torch.tensor([0, 1, 1, 0])
        losses = torch.nn.functional.cross_entropy(y.flatten(0, 1), target.repeat_interleave(3))
        result[name] = {"parameters": parameters(net), "y": y.flatten().tolist(), "loss": losses.item(),
                        "probabilities": y.softmax(-1).mean(1).flatten().tolist()}
    return result


def main():
    rng = numpy.random.default_rng(4)
    torch.set_default_dtype(torch.float32)
    content = {"versions": {"scikit-learn": sklearn.__version__, "pandas": pandas.__version__, "torch": torch.__version__},
               "columns": {name: scaled(*values) for name, values in columns(rng).items()},
               "mixed": mixed(), "networks": networks()}
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
