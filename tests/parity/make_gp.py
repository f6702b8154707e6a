"""Creates tests/fixtures/gaussian_process.json: results of Optuna's Gaussian processes for random measurements.

    PYTHON tests/parity/make_gp.py tests/fixtures

PYTHON needs optuna, scipy and torch (the versions are recorded in the file). Optuna maximizes; the file has values with
the opposite sign, for minimization. A case has a kernel and measurements; their log-likelihood, with derivatives with
respect to the kernel parameters; predictions and the acquisition function at some points, with derivatives with respect
to the points; and the kernel that Optuna fits, to a gradient of 1e-5.
"""

import json
import pathlib
import sys

import numpy as np
import optuna
import scipy
import torch
from optuna._gp import acqf, gp, prior, search_space
from scipy.optimize import minimize, rosen, rosen_der
from scipy.special import erfcx, log_ndtr

DRAW = np.random.RandomState(7)
# Measurements, dimensions, number of (last) dimensions with three categories, and the noise.
CASES = [(6, 2, 0, 1e-3), (12, 3, 1, 0.1), (40, 5, 2, 1e-6), (70, 4, 0, 0.5)]


def points(count, dimensions, categories):
    drawn = DRAW.rand(count, dimensions)
    if categories:
        drawn[:, -categories:] = np.floor(3 * drawn[:, -categories:])
    return drawn


def space(dimensions, categories):
    floats = {f"x{i}": optuna.distributions.FloatDistribution(0, 1) for i in range(dimensions - categories)}
    return search_space.SearchSpace({**floats, **{f"z{i}": optuna.distributions.CategoricalDistribution([0, 1, 2])
                                                  for i in range(categories)}})


def regressor(measured, values, is_categorical, lengths, scale, noise):
    made = gp.GPRegressor(torch.tensor(is_categorical), torch.tensor(measured), torch.tensor(values),
                          torch.tensor(lengths), torch.tensor(scale, dtype=torch.float64),
                          torch.tensor(noise, dtype=torch.float64))
    made._cache_matrix()
    return made


def with_gradient(function, numbers):
    tensor = torch.tensor(numbers, dtype=torch.float64, requires_grad=True)
    value = function(tensor)
    value.backward()
    return value.item(), tensor.grad.tolist()


def likelihood(measured, values, is_categorical, numbers):
    def of(tensor):
        made = gp.GPRegressor(torch.tensor(is_categorical), torch.tensor(measured), torch.tensor(values), tensor[:-2],
                              tensor[-2], tensor[-1])
        return made.marginal_log_likelihood()

    def prior_of(tensor):
        made = gp.GPRegressor(torch.tensor(is_categorical), torch.tensor(measured), torch.tensor(values), tensor[:-2],
                              tensor[-2], tensor[-1])
        return prior.default_log_prior(made)

    return with_gradient(of, numbers), with_gradient(prior_of, numbers)


def promised(acquisition, asked):
    found = [with_gradient(acquisition.eval_acqf, point) for point in asked]
    # Far from any improvement Optuna's derivatives are NaN.
    return {"values": [value for value, _ in found],
            "gradients": [gradient if np.isfinite(gradient).all() else None for _, gradient in found]}


def case(count, dimensions, categories, noise):
    is_categorical = np.array([False] * (dimensions - categories) + [True] * categories)
    measured = points(count, dimensions, categories)
    values = np.sin(5 * measured).sum(axis=1) + 0.1 * DRAW.randn(count)
    values = (values - values.mean()) / values.std()
    lengths, scale = np.exp(DRAW.randn(dimensions)), float(np.exp(0.3 * DRAW.randn()))
    asked = points(5, dimensions, categories)
    pending = points(3, dimensions, categories)
    (log_likelihood, by_kernel), (log_prior, prior_by_kernel) = likelihood(measured, values, is_categorical,
                                                                          [*lengths, scale, noise])
    made = regressor(measured, values, is_categorical, lengths, scale, noise)
    mean, variance = made.posterior(torch.tensor(asked))
    where = space(dimensions, categories)
    limits = [regressor(measured, values[::-1].copy(), is_categorical, lengths, scale, noise)]
    conditional = gp.ConditionalGPRegressor(made, torch.tensor(pending), 8, 1, 1e-12)
    normals = torch.linalg.solve_triangular(
        conditional._cov_rr_post_chol,
        (conditional.get_fantasy_samples() - made.posterior(torch.tensor(pending))[0]).T, upper=False).T
    sampled = conditional.sample_joint_posterior(torch.tensor(asked), return_fantasy=False)
    second = regressor(measured, np.cos(3 * measured).sum(axis=1) - 2, is_categorical, lengths, scale, noise)
    both = np.stack([values, np.cos(3 * measured).sum(axis=1) - 2], axis=1)
    three = np.concatenate([both, values[:, None][::-1]], axis=1)
    samples = 1 << 14
    volumes = []
    for losses, models in [(both, [made, second]), (three, [made, second, *limits])]:
        reference = acqf._get_reference_point(torch.tensor(losses))
        acquisition = acqf.LogEHVI(models, where, torch.tensor(losses), samples, 1)
        volumes.append({"losses": (-losses).tolist(), "reference": list(reference),
                        "values": [acquisition.eval_acqf(torch.tensor(point)).item() for point in asked]})
    fitted = gp.fit_kernel_params(measured, values, is_categorical, prior.default_log_prior, 1e-6, False, gtol=1e-5)
    return {
        "categorical": is_categorical.tolist(), "points": measured.tolist(), "values": (-values).tolist(),
        "kernel": {"lengths": list(lengths), "scale": scale, "noise": noise},
        "covariances": made.kernel().tolist() if count < 20 else [],
        "log_likelihood": log_likelihood, "log_likelihood_by_kernel": by_kernel,
        "log_prior": log_prior, "log_prior_by_kernel": prior_by_kernel,
        "asked": asked.tolist(), "means": (-mean).tolist(), "variances": variance.tolist(),
        "pending": pending.tolist(), "normals": (-normals).tolist(), "last_normals": (-conditional._fixed_samples_x).tolist(),
        "drawn": (-conditional.get_fantasy_samples()).tolist(), "sampled": (-sampled).tolist(),
        "best": -values.max(), "improvement": promised(acqf.LogEI(made, where, values.max()), asked),
        "limit_values": (-values[::-1]).tolist(), "limit": 0.3,
        "allowed_improvement": promised(acqf.LogCEI(made, where, values.max(), limits, [-0.3]), asked),
        "second_values": (2 - np.cos(3 * measured).sum(axis=1)).tolist(), "volumes": volumes,
        "fitted": {"lengths": fitted.inverse_squared_lengthscales.tolist(), "scale": fitted.kernel_scale.item(),
                   "noise": fitted.noise_var.item()},
    }


def minimized(name, function, gradient, start, bounds):
    found = minimize(function, start, jac=gradient, method="l-bfgs-b", bounds=bounds, options={"gtol": 1e-8, "ftol": 1e-15})
    return {"function": name, "start": list(start), "bounds": bounds, "value": found.fun, "evaluations": found.nfev}


def main():
    z = [-1e4, -300.0, -40.0, -25.0, -10.0, -5.0, -3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 10.0, 100.0]
    x = [0.0, 0.1, 0.5, 1.0, 1.99, 2.01, 3.0, 4.99, 5.01, 10.0, 26.0, 100.0, 1e6]
    fixture = {
        "made_with": f"optuna {optuna.__version__}, scipy {scipy.__version__}, torch {torch.__version__}",
        "log_improvement": [[value, acqf.standard_logei(torch.tensor([value], dtype=torch.float64)).item()]
                            for value in z],
        "log_normal_cdf": [[value, log_ndtr(value)] for value in z],
        "scaled_erfc": [[value, erfcx(value)] for value in x],
        "cases": [case(*numbers) for numbers in CASES],
        "minimized": [minimized("rosenbrock", rosen, rosen_der, [-1.2, 1, -1.2, 1, 0.5, 2], None),
                      minimized("rosenbrock", rosen, rosen_der, [-1.2, 1, -1.2, 1, 0.5, 2], [[-2, 0.5]] * 6),
                      minimized("rosenbrock", rosen, rosen_der, [3, -3, 3], [[1.5, 4], [-4, 4], [-4, 2]])],
    }
    (pathlib.Path(sys.argv[1]) / "gaussian_process.json").write_text(json.dumps(fixture, allow_nan=False) + "\n")


main()
