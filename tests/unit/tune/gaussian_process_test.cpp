// Against Optuna and SciPy: tests/parity/make_gp.py made the fixture.
#include <cmath>
#include <fstream>
#include <numbers>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/tune/gaussian_process/acquisition.h"
#include "gallop/tune/gaussian_process/expected_improvement.h"
#include "gallop/tune/gaussian_process/fit.h"
#include "gallop/tune/gaussian_process/lbfgs.h"
#include "gallop/tune/gaussian_process/model.h"
#include "gallop/tune/gaussian_process/posterior.h"
#include "gallop/tune/gaussian_process/time_varying.h"
#include "gallop/tune/pareto/pareto.h"
#include "gallop/tune/random.h"
#include "unit/fixtures.h"

namespace gallop::tune {
namespace {

using Json = nlohmann::json;
using Numbers = std::vector<double>;

const Json& stored() {
  static const Json fixture = [] {
    std::ifstream file(fixtures() / "gaussian_process.json");
    return Json::parse(file);
  }();
  return fixture;
}

Matrix matrix_of(const std::vector<Numbers>& rows) {
  Matrix matrix(rows.size(), rows.empty() ? 0 : rows[0].size());
  for (size_t i = 0; i < rows.size(); ++i) std::copy(rows[i].begin(), rows[i].end(), matrix.row(i));
  return matrix;
}

void expect_near(const Numbers& got, const Numbers& wanted, double tolerance) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], wanted[i], tolerance * std::max(1.0, std::abs(wanted[i]))) << i;
  }
}

void expect_row_near(const Matrix& matrix, size_t row, const Numbers& wanted, double tolerance) {
  expect_near(Numbers(matrix.row(row), matrix.row(row) + matrix.columns()), wanted, tolerance);
}

Kernel kernel_of(const Json& json) {
  return {
      .inverse_squared_lengths = json["lengths"], .scale = json["scale"], .noise = json["noise"]};
}

Inputs inputs_of(const Json& json) {
  Inputs inputs(json["categorical"].get<std::vector<bool>>());
  for (const Numbers point : json["points"]) inputs.append(point);
  return inputs;
}

Posterior posterior_of(const Json& json, const Numbers& values) {
  Posterior posterior(kernel_of(json["kernel"]), inputs_of(json));
  posterior.set_values(values);
  return posterior;
}

Numbers kernel_numbers(const Kernel& kernel) {
  Numbers numbers = kernel.inverse_squared_lengths;
  numbers.push_back(kernel.scale);
  numbers.push_back(kernel.noise);
  numbers.push_back(kernel.forgetting);
  return numbers;
}

TEST(ScaledErfc, MatchesSciPy) {
  for (const auto& [x, wanted] :
       stored()["scaled_erfc"].get<std::vector<std::pair<double, double>>>()) {
    EXPECT_NEAR(scaled_erfc(x) / wanted, 1, 4e-15) << x;
  }
}

TEST(LogImprovement, MatchesOptuna) {
  for (const auto& [z, wanted] :
       stored()["log_improvement"].get<std::vector<std::pair<double, double>>>()) {
    double slope = 0;
    EXPECT_NEAR(log_improvement(z, &slope), wanted, 1e-9 * std::max(1.0, std::abs(wanted))) << z;
    const double step = 1e-5 * std::max(1.0, std::abs(z));
    const double change = log_improvement(z + step, nullptr) - log_improvement(z - step, nullptr);
    EXPECT_NEAR(slope, change / (2 * step), 1e-5 * std::max(1.0, slope)) << z;
  }
}

TEST(LogNormalCdf, MatchesSciPy) {
  for (const auto& [z, wanted] :
       stored()["log_normal_cdf"].get<std::vector<std::pair<double, double>>>()) {
    double slope = 0;
    EXPECT_NEAR(log_normal_cdf(z, &slope), wanted, 1e-13 * std::max(1.0, std::abs(wanted))) << z;
    const double step = 1e-5 * std::max(1.0, std::abs(z));
    const double change = log_normal_cdf(z + step, nullptr) - log_normal_cdf(z - step, nullptr);
    EXPECT_NEAR(slope, change / (2 * step), 1e-5 * std::max(1.0, slope)) << z;
  }
}

TEST(Kernel, CovariancesMatchOptuna) {
  for (const Json& json : stored()["cases"]) {
    const Inputs inputs = inputs_of(json);
    const Kernel kernel = kernel_of(json["kernel"]);
    Matrix row(1, inputs.size());
    for (size_t i = 0; i < json["covariances"].size(); ++i) {
      covariances(kernel, inputs, inputs.size(), inputs.point(i), row.row(0), nullptr);
      expect_row_near(row, 0, json["covariances"][i], 1e-14);
    }
  }
}

TEST(LogLikelihood, MatchesOptunaWithItsGradient) {
  for (const Json& json : stored()["cases"]) {
    const Kernel kernel = kernel_of(json["kernel"]);
    Numbers gradient;
    LikelihoodMemory memory;
    // Optuna leaves out the same constant.
    const double got =
        log_likelihood(kernel, inputs_of(json), json["values"].get<Numbers>(), &gradient, memory);
    expect_near({got}, {json["log_likelihood"]}, 1e-9);
    gradient.pop_back();  // Without the derivative of the time parameter.
    expect_near(gradient, json["log_likelihood_by_kernel"], 1e-6);
    expect_near({log_prior(kernel, &gradient)}, {json["log_prior"]}, 1e-12);
    gradient.pop_back();
    expect_near(gradient, json["log_prior_by_kernel"], 1e-12);
  }
}

TEST(LogLikelihood, HasAGradientWithTimes) {
  Inputs inputs({false, true}, true);
  Numbers values;
  for (int64_t i = 0; i < 20; ++i) {
    Random random(2, i);
    inputs.append(Numbers{random.uniform(), std::floor(random.uniform(0, 3)), std::floor(i / 4.0)});
    values.push_back(random.uniform(-1, 1));
  }
  const Kernel kernel{
      .inverse_squared_lengths = {2, 0.5}, .scale = 1.2, .noise = 0.1, .forgetting = 0.2};
  LikelihoodMemory memory;
  Numbers gradient;
  log_likelihood(kernel, inputs, values, &gradient, memory);
  ASSERT_EQ(gradient.size(), 5);
  for (size_t k = 0; k < gradient.size(); ++k) {
    const auto moved = [&](double step) {
      Kernel other = kernel;
      double* const numbers[] = {&other.inverse_squared_lengths[0],
                                 &other.inverse_squared_lengths[1], &other.scale, &other.noise,
                                 &other.forgetting};
      *numbers[k] += step;
      return log_likelihood(other, inputs, values, nullptr, memory);
    };
    EXPECT_NEAR(gradient[k], (moved(1e-6) - moved(-1e-6)) / 2e-6, 1e-6) << k;
  }
}

TEST(Kernel, DecaysWithTime) {
  Inputs inputs({false}, true);
  inputs.append(Numbers{0.3, 2});
  const Kernel kernel{.inverse_squared_lengths = {1}, .scale = 2, .noise = 1, .forgetting = 0.36};
  double same = 0, later = 0;
  covariances(kernel, inputs, 1, Numbers{0.3, 2}, &same, nullptr);
  covariances(kernel, inputs, 1, Numbers{0.3, 5}, &later, nullptr);
  EXPECT_NEAR(same, 2, 1e-14);
  EXPECT_NEAR(later, 2 * std::pow(0.8, 3), 1e-14);
}

TEST(LowestBoundAt, FollowsAMovingMinimum) {
  const Coordinates coordinates(Space({{"x", Interval{}}, {"z", Choices{{"1", "2"}}}}, {}));
  std::vector<TimedMeasurement> measured;
  for (int64_t i = 0; i < 60; ++i) {
    Random random(9, i);
    const double x = random.uniform(), time = std::floor(i / 6.0);
    measured.push_back({{x, static_cast<double>(i % 2)}, time, std::abs(x - 0.08 * time)});
  }
  const Point chosen = lowest_bound_at(coordinates, measured, {}, 10, Random(1, 0));
  EXPECT_NEAR(chosen[0], 0.8, 0.15);
  const Point another = lowest_bound_at(coordinates, measured, {chosen}, 10, Random(1, 0));
  EXPECT_NE(another, chosen);
  EXPECT_NEAR(bound_width(100), std::sqrt(0.2 + std::log(40)), 1e-15);
}

TEST(KernelFit, FindsAKernelAsLikelyAsOptunas) {
  for (const Json& json : stored()["cases"]) {
    const Inputs inputs = inputs_of(json);
    const Numbers values = json["values"];
    KernelFit fit(inputs, values, KernelFit::default_kernel(inputs.dimensions()), false);
    while (!fit.is_done()) fit.step();
    LikelihoodMemory memory;
    const auto probability = [&](const Kernel& kernel) {
      return log_likelihood(kernel, inputs, values, nullptr, memory) + log_prior(kernel, nullptr);
    };
    const Kernel wanted = kernel_of(json["fitted"]);
    EXPECT_NEAR(probability(fit.kernel()), probability(wanted), 1e-3);
    const Numbers got = kernel_numbers(fit.kernel()), other = kernel_numbers(wanted);
    for (size_t i = 0; i + 1 < got.size(); ++i) {
      EXPECT_NEAR(std::log(got[i] / other[i]), 0, 0.05) << i;
    }
  }
}

TEST(Posterior, PredictionsMatchOptuna) {
  for (const Json& json : stored()["cases"]) {
    const Posterior posterior = posterior_of(json, json["values"]);
    Predictions predictions;
    posterior.predict(matrix_of(json["asked"]), false, predictions);
    expect_near(predictions.means, json["means"], 1e-7);
    expect_near(predictions.variances, json["variances"], 1e-7);
  }
}

TEST(Posterior, IncrementalUpdatesMatchAFullFit) {
  for (const Json& json : stored()["cases"]) {
    const Posterior at_once = posterior_of(json, json["values"]);
    Inputs some = inputs_of(json);
    some.shrink(3);
    Posterior grown(kernel_of(json["kernel"]), some);
    const std::vector<Numbers> points = json["points"], pending = json["pending"];
    grown.set_pending(pending);
    grown.set_pending({pending[0], points[4]});
    grown.set_pending({});
    for (size_t i = 3; i < points.size(); ++i) grown.append(points[i]);
    grown.set_values(json["values"]);
    Predictions wanted, got;
    at_once.predict(matrix_of(json["asked"]), false, wanted);
    grown.predict(matrix_of(json["asked"]), false, got);
    expect_near(got.means, wanted.means, 1e-8);
    expect_near(got.variances, wanted.variances, 1e-8);
  }
}

TEST(Posterior, PendingTrialsMatchOptuna) {
  for (const Json& json : stored()["cases"]) {
    Posterior posterior = posterior_of(json, json["values"]);
    const std::vector<Numbers> pending = json["pending"], normals = json["normals"];
    posterior.set_pending(pending);
    Predictions predictions;
    posterior.predict(matrix_of(json["asked"]), false, predictions);
    for (size_t s = 0; s < normals.size(); ++s) {
      expect_near(posterior.drawn(normals[s]), json["drawn"][s], 1e-6);
      const double last = json["last_normals"][s];
      for (size_t i = 0; i < predictions.means.size(); ++i) {
        double sum = predictions.means[i] + std::sqrt(predictions.variances[i]) * last;
        for (size_t r = 0; r < pending.size(); ++r) {
          sum += normals[s][r] * predictions.shares.at(i, r);
        }
        EXPECT_NEAR(sum, json["sampled"][i][s].get<double>(), 1e-5);
      }
    }
  }
}

TEST(Posterior, HandlesDuplicatePoints) {
  Inputs inputs({false});
  Numbers values;
  for (int i = 0; i < 40; ++i) {
    inputs.append(Numbers{i % 2 == 0 ? 0.25 : 0.75});
    values.push_back(i % 2 == 0 ? -1 : 1);
  }
  Posterior posterior({.inverse_squared_lengths = {1e-4}, .scale = 1e3, .noise = 1e-9}, inputs);
  posterior.append(Numbers{0.25});
  values.push_back(-1);
  posterior.set_values(values);
  posterior.set_pending({{0.25}, {0.25}, {0.5}});
  Predictions predictions;
  posterior.predict(matrix_of({{0.25}, {0.75}, {0.5}}), false, predictions);
  expect_near(predictions.means, {-1, 1, 0}, 1e-2);
  for (const double variance : predictions.variances) EXPECT_LT(variance, 1e-2);
}

const Matrix& nothing_drawn() {
  static const Matrix one(1, 0);
  return one;
}

TEST(Acquisition, MatchesOptunasLogExpectedImprovement) {
  for (const Json& json : stored()["cases"]) {
    const Posterior posterior = posterior_of(json, json["values"]);
    const Posterior limit = posterior_of(json, json["limit_values"]);
    const Modeled loss{&posterior, &nothing_drawn()};
    for (const bool is_limited : {false, true}) {
      std::vector<ModeledLimit> limits;
      if (is_limited) limits.push_back({{&limit, &nothing_drawn()}, json["limit"]});
      const auto acquisition = log_expected_improvement(loss, json["best"].get<double>(), limits);
      const auto& wanted = json[is_limited ? "allowed_improvement" : "improvement"];
      Matrix gradients;
      expect_near(acquisition->evaluate(matrix_of(json["asked"]), &gradients), wanted["values"],
                  1e-6);
      for (size_t i = 0; i < gradients.rows(); ++i) {
        if (wanted["gradients"][i].is_null()) continue;
        Numbers by_point = wanted["gradients"][i];
        for (size_t d = 0; d < by_point.size(); ++d) {
          if (json["categorical"][d]) by_point[d] = 0;
        }
        expect_row_near(gradients, i, by_point, 1e-4);
      }
    }
  }
}

TEST(Acquisition, MatchesOptunasExpectedHypervolumeImprovement) {
  for (const Json& json : stored()["cases"]) {
    const Posterior posteriors[] = {posterior_of(json, json["values"]),
                                    posterior_of(json, json["second_values"]),
                                    posterior_of(json, json["limit_values"])};
    for (const auto& wanted : json["volumes"]) {
      const LossRows losses = wanted["losses"];
      std::vector<Modeled> modeled;
      for (size_t k = 0; k < losses[0].size(); ++k)
        modeled.push_back({&posteriors[k], &nothing_drawn()});
      LossRows front;
      for (const size_t index : nondominated(losses)) front.push_back(losses[index]);
      const auto acquisition =
          log_expected_hypervolume_improvement(modeled, front, wanted["reference"], {});
      const Numbers got = acquisition->evaluate(matrix_of(json["asked"]), nullptr);
      for (size_t i = 0; i < got.size(); ++i) {
        const double value = wanted["values"][i];
        // If few samples improve, Optuna's Monte Carlo estimate is inaccurate.
        if (value > -4) {
          EXPECT_NEAR(got[i], value, 0.02) << i;
        } else {
          EXPECT_LT(got[i], -3.5) << i;
        }
      }
    }
  }
}

// By finite differences.
void expect_gradient(const Acquisition& acquisition, const Numbers& point,
                     const std::vector<bool>& categorical) {
  Matrix gradient, ignored;
  acquisition.evaluate(matrix_of({point}), &gradient);
  for (size_t d = 0; d < point.size(); ++d) {
    if (categorical[d]) continue;
    constexpr double kStep = 1e-6;
    Numbers left = point, right = point;
    left[d] -= kStep;
    right[d] += kStep;
    const Numbers values = acquisition.evaluate(matrix_of({left, right}), nullptr);
    const double wanted = (values[1] - values[0]) / (2 * kStep);
    EXPECT_NEAR(gradient.at(0, d), wanted, 1e-3 * std::max(1.0, std::abs(wanted))) << d;
  }
}

TEST(Acquisition, HasGradientsWhileTrialsArePending) {
  for (const Json& json : stored()["cases"]) {
    Posterior posteriors[] = {posterior_of(json, json["values"]),
                              posterior_of(json, json["second_values"]),
                              posterior_of(json, json["limit_values"])};
    for (Posterior& posterior : posteriors) posterior.set_pending(json["pending"]);
    const Matrix normals = matrix_of(json["normals"]);
    const std::vector<ModeledLimit> limits{{{&posteriors[2], &normals}, 0.3}};
    const auto improvement = log_expected_improvement({&posteriors[0], &normals}, -1.0, limits);
    const auto volume = log_expected_hypervolume_improvement(
        {{&posteriors[0], &normals}, {&posteriors[1], &normals}}, {{-1, 0.5}, {0, 0}}, {1.5, 2.5},
        limits);
    for (const Numbers point : json["asked"]) {
      expect_gradient(*improvement, point, json["categorical"]);
      expect_gradient(*volume, point, json["categorical"]);
    }
  }
}

TEST(UndominatedBoxes, CoverTheUndominatedRegion) {
  for (const size_t objectives : {2, 3}) {
    for (int64_t draw = 0; draw < 50; ++draw) {
      Random random(3, draw);
      LossRows losses(random.below(12), Numbers(objectives));
      for (Numbers& row : losses) {
        for (double& loss : row) loss = std::floor(random.uniform(0, 11)) / 10;
      }
      const Numbers reference(objectives, 0.95), floor(objectives, -0.25);
      const UndominatedBoxes region = undominated_boxes(losses, reference);
      double volume = 0;
      for (const auto& box : region.boxes) {
        double product = 1;
        for (size_t k = 0; k < objectives; ++k) {
          product *=
              region.levels[k][box.upper[k]] - std::max(region.levels[k][box.lower[k]], floor[k]);
        }
        volume += product;
      }
      const double all = std::pow(1.2, objectives);
      EXPECT_NEAR(volume, all - hypervolume(losses, reference), 1e-12);
      EXPECT_LE(region.boxes.size(), 4 * losses.size() + 1);
    }
  }
}

double rosenbrock(const Numbers& x, Numbers& gradient) {
  gradient.assign(x.size(), 0.0);
  double sum = 0;
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    const double rise = x[i + 1] - x[i] * x[i], left = 1 - x[i];
    sum += 100 * rise * rise + left * left;
    gradient[i] += -400 * rise * x[i] - 2 * left;
    gradient[i + 1] += 200 * rise;
  }
  return sum;
}

TEST(Lbfgs, MatchesSciPy) {
  for (const Json& json : stored()["minimized"]) {
    Numbers lower, upper;
    if (!json["bounds"].is_null()) {
      for (const auto& [low, high] : json["bounds"].get<std::vector<std::pair<double, double>>>()) {
        lower.push_back(low);
        upper.push_back(high);
      }
    }
    Lbfgs search(json["start"], lower, upper,
                 {.evaluations = 1000, .gradient = 1e-8, .relative_decrease = 1e-16});
    Numbers gradient;
    while (!search.is_done()) {
      for (size_t i = 0; i < lower.size(); ++i) {
        ASSERT_GE(search.wanted()[i], lower[i]);
        ASSERT_LE(search.wanted()[i], upper[i]);
      }
      const double value = rosenbrock(search.wanted(), gradient);
      search.tell(value, gradient);
    }
    EXPECT_NEAR(search.best_value(), json["value"].get<double>(), 1e-9);
    EXPECT_LE(search.evaluations(), 3 * json["evaluations"].get<int>());
  }
}

TEST(Lbfgs, AvoidsNonFiniteRegions) {
  Lbfgs search({3}, {}, {});
  Numbers gradient(1);
  while (!search.is_done()) {
    const double x = search.wanted()[0];
    gradient[0] = 2 * (x + 1);
    search.tell(x < 1 ? std::numeric_limits<double>::infinity() : (x + 1) * (x + 1), gradient);
  }
  EXPECT_GE(search.best()[0], 1);
  EXPECT_LT(search.best()[0], 1.5);
  Lbfgs nowhere({0}, {}, {});
  nowhere.tell(std::numeric_limits<double>::quiet_NaN(), gradient);
  EXPECT_TRUE(nowhere.is_done());
  EXPECT_EQ(nowhere.best(), Numbers{0});
}

TEST(Matrix, CholeskyFactorsOfAnySizeAreCorrect) {
  for (const size_t size : {1, 7, 31, 32, 33, 64, 100, 129}) {
    Random random(5, static_cast<int64_t>(size));
    Matrix root(size, size), wanted(size, size);
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j <= i; ++j) root.at(i, j) = random.uniform(-1, 1);
      root.at(i, i) = random.uniform(1, 2) * std::sqrt(static_cast<double>(size));
    }
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j < size; ++j) {
        for (size_t k = 0; k < size; ++k) wanted.at(i, j) += root.at(i, k) * root.at(j, k);
      }
    }
    Matrix factor = wanted, inverse_transposed, inverse;
    ASSERT_TRUE(factor_cholesky(factor, inverse_transposed));
    multiply_by_transposed(inverse_transposed, inverse);
    for (size_t i = 0; i < size; ++i) {
      for (size_t j = 0; j <= i; ++j) {
        ASSERT_NEAR(factor.at(i, j), root.at(i, j), 1e-10);
        double product = 0;
        for (size_t k = 0; k < size; ++k) {
          product += wanted.at(i, k) * (k <= j ? inverse.at(j, k) : inverse.at(k, j));
        }
        ASSERT_NEAR(product, i == j ? 1 : 0, 1e-9);
      }
    }
  }
  Matrix indefinite(2, 2), inverse;
  indefinite.at(0, 0) = indefinite.at(1, 1) = 1;
  indefinite.at(1, 0) = 2;
  EXPECT_FALSE(factor_cholesky(indefinite, inverse));
}

TEST(Standardized, ClipsNonFiniteValues) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Standardized some = standardized({1, infinity, 3, -infinity, std::nan("")});
  EXPECT_EQ(some.values[1], some.values[2]);
  EXPECT_EQ(some.values[4], some.values[2]);
  EXPECT_EQ(some.values[3], some.values[0]);
  EXPECT_EQ(standardized({infinity, infinity}).values, (Numbers{0, 0}));
  EXPECT_EQ(standardized({4, 4, 4}).values, (Numbers{0, 0, 0}));
}

TEST(Standardized, CompressesValuesAboveTheMedian) {
  const Standardized some = standardized({0, 1, 2, 3, 1e30});
  double sum = 0, squares = 0;
  for (const double value : some.values) {
    sum += value;
    squares += value * value / 5;
  }
  EXPECT_NEAR(sum, 0, 1e-12);
  EXPECT_NEAR(squares, 1, 1e-12);
  const double unit = some.values[1] - some.values[0];
  EXPECT_NEAR(some.values[2] - some.values[1], unit, 1e-12);
  EXPECT_NEAR(some.values[3] - some.values[2], 2 * unit * std::log1p(0.5), 1e-12);
  EXPECT_NEAR(some.values[4] - some.values[2], 2 * unit * std::log1p(1e30 / 2), 1e-9);
  for (const size_t i : {0, 3, 4}) {
    EXPECT_NEAR(some.of(std::vector<double>{0, 1, 2, 3, 1e30}[i]), some.values[i], 1e-12);
  }
}

TEST(Standardized, KeepsLargeValuesOnRequest) {
  const std::vector<double> values{0, 1, 2, 3, 14};
  const Standardized some = standardized(values, LargeValues::kKept);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(some.values[i], (values[i] - 4) / std::sqrt(26.0), 1e-12);
    EXPECT_EQ(some.of(values[i]), some.values[i]);
  }
}

// A model that was updated incrementally, and newly created ones.
TEST(Model, DependsOnlyOnTheMeasurements) {
  const std::vector<bool> categorical{false, false, true};
  std::vector<Numbers> points;
  Numbers values;
  Model old(categorical, false);
  for (int64_t i = 0; i < 200; ++i) {
    Random random(11, i);
    points.push_back({random.uniform(), random.uniform(), std::floor(random.uniform(0, 3))});
    values.push_back(std::sin(7 * points.back()[0]) + points.back()[1] * points.back()[2]);
    if (i < 10 || (i > 50 && i % 3 == 0)) continue;
    old.update(points, values);
    if (i % 37 != 0) continue;
    Model made_now(categorical, false);
    made_now.update(points, values);
    for (Model* const model : {&old, &made_now}) {
      model->posterior().set_pending({{0.1, 0.2, 0}, {0.9, 0.4, 2}});
    }
    Predictions wanted, got;
    const Matrix asked = matrix_of({{0.3, 0.3, 1}, {0.6, 0.9, 0}});
    old.posterior().predict(asked, false, wanted);
    made_now.posterior().predict(asked, false, got);
    EXPECT_EQ(got.means, wanted.means);
    EXPECT_EQ(got.variances, wanted.variances);
    EXPECT_EQ(made_now.posterior().drawn(Numbers{1, -1}), old.posterior().drawn(Numbers{1, -1}));
  }
  values[20] = 3;  // As if a trial was continued.
  old.update(points, values);
  Model made_now(categorical, false);
  made_now.update(points, values);
  EXPECT_EQ(kernel_numbers(made_now.posterior().kernel()),
            kernel_numbers(old.posterior().kernel()));
}

}  // namespace
}  // namespace gallop::tune
