// Optimizers that PyTorch does not have against their papers' formulas, number by number in fp64.
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>

#include "gallop/optim/large_batch.h"
#include "gallop/optim/lion.h"
#include "gallop/optim/schedule_free.h"
#include "gallop/optim/sgd.h"

namespace gallop::optim {
namespace {

using Numbers = std::vector<double>;

constexpr int64_t kSteps = 50;

double start_of(int64_t i) { return std::sin(0.7 * static_cast<double>(i) + 0.3); }
double gradient_of(int64_t i, int64_t step) {
  return std::cos(1.3 * static_cast<double>(i * step) + 0.2 * static_cast<double>(i)) * 0.7;
}
double lr_of(int64_t step) { return 0.02 + 0.01 * static_cast<double>(step % 5); }

double norm_of(const Numbers& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number * number;
  return std::sqrt(sum);
}
double sign_of(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }

/// One parameter of the reference.
struct Reference {
  Numbers p, g, m, v;
  std::map<std::string, double> number{};

  explicit Reference(int64_t size) : g(size), m(size), v(size) {
    for (int64_t i = 0; i < size; ++i) p.push_back(start_of(i));
  }
  void each(const std::function<void(size_t)>& body) {
    for (size_t i = 0; i < p.size(); ++i) body(i);
  }
};

using ReferenceStep = std::function<void(Reference&, double lr, double t)>;

// A matrix of 7 x 10 numbers and a bias of 5 after 50 steps, against the formula.
void expect_follows(const std::function<std::unique_ptr<Optimizer>(const NamedTensors&)>& make,
                    const ReferenceStep& of_matrix, const ReferenceStep& of_bias) {
  std::vector<Reference> references = {Reference(70), Reference(5)};
  NamedTensors parameters;
  const std::vector<std::vector<int64_t>> shapes = {{7, 10}, {5}};
  for (size_t k = 0; k < 2; ++k) {
    parameters.push_back(
        {k == 0 ? "weight" : "bias",
         at::from_blob(references[k].p.data(), shapes[k], at::kDouble).to(at::kFloat).clone()});
    references[k].each([&](size_t i) {
      references[k].p[i] = parameters[k].tensor.view(-1)[static_cast<int64_t>(i)].item<float>();
    });
  }
  const auto optimizer = make(parameters);
  for (int64_t step = 1; step <= kSteps; ++step) {
    const at::Tensor lr = at::scalar_tensor(lr_of(step), at::kFloat);
    for (size_t k = 0; k < 2; ++k) {
      Reference& reference = references[k];
      reference.each([&](size_t i) {
        reference.g[i] = static_cast<float>(gradient_of(static_cast<int64_t>(i), step));
      });
      parameters[k].tensor.mutable_grad() =
          at::from_blob(reference.g.data(), shapes[k], at::kDouble).to(at::kFloat);
      (k == 0 ? of_matrix : of_bias)(reference, lr.item<float>(), static_cast<double>(step));
    }
    optimizer->step(lr);
  }
  optimizer->use_averaged_weights(true);
  for (size_t k = 0; k < 2; ++k) {
    const at::Tensor wanted = at::from_blob(references[k].p.data(), shapes[k], at::kDouble);
    EXPECT_LE((parameters[k].tensor - wanted).abs().max().item<double>(), 3e-6) << k;
  }
}

TEST(Papers, SgdwIsLoshchilovAndHuttersAlgorithm1) {
  const ReferenceStep step = [](Reference& r, double lr, double t) {
    r.each([&](size_t i) {
      r.m[i] = 0.9 * r.m[i] + (t == 1 ? 1 : 0.75) * r.g[i];
      r.p[i] = r.p[i] - lr * 0.1 * r.p[i] - lr * r.m[i];
    });
  };
  expect_follows(
      [](const NamedTensors& p) {
        return make_sgdw({.momentum = 0.9, .dampening = 0.25, .weight_decay = 0.1}, p);
      },
      step, step);
  const ReferenceStep nesterov = [](Reference& r, double lr, double) {
    r.each([&](size_t i) {
      r.m[i] = 0.9 * r.m[i] + r.g[i];
      r.p[i] = r.p[i] - lr * 0.1 * r.p[i] - lr * (r.g[i] + 0.9 * r.m[i]);
    });
  };
  expect_follows(
      [](const NamedTensors& p) {
        return make_sgdw({.momentum = 0.9, .nesterov = true, .weight_decay = 0.1}, p);
      },
      nesterov, nesterov);
  const ReferenceStep plain = [](Reference& r, double lr, double) {
    r.each([&](size_t i) { r.p[i] = r.p[i] - lr * 0.1 * r.p[i] - lr * r.g[i]; });
  };
  expect_follows(
      [](const NamedTensors& p) { return make_sgdw({.momentum = 0, .weight_decay = 0.1}, p); },
      plain, plain);
}

TEST(Papers, LionIsChensAlgorithm2) {
  for (const double decay : {0.0, 0.1}) {
    const ReferenceStep step = [decay](Reference& r, double lr, double) {
      r.each([&](size_t i) {
        const double c = 0.9 * r.m[i] + (1 - 0.9) * r.g[i];
        r.p[i] = r.p[i] - lr * (sign_of(c) + decay * r.p[i]);
        r.m[i] = 0.99 * r.m[i] + (1 - 0.99) * r.g[i];
      });
    };
    expect_follows([&](const NamedTensors& p) { return make_lion({.weight_decay = decay}, p); },
                   step, step);
  }
}

ReferenceStep lars(double decay, bool adapts) {
  return [=](Reference& r, double lr, double) {
    const double p = norm_of(r.p), g = norm_of(r.g);
    const double ratio = adapts && p > 0 && g > 0 ? 0.02 * p / (g + decay * p + 1e-8) : 1;
    r.each([&](size_t i) {
      r.m[i] = 0.9 * r.m[i] + lr * ratio * (r.g[i] + decay * r.p[i]);
      r.p[i] -= r.m[i];
    });
  };
}

TEST(Papers, LarsIsYousAlgorithm1) {
  const auto make = [](bool always, double decay) {
    return [=](const NamedTensors& p) {
      return make_lars({.trust_coefficient = 0.02, .always_adapt = always, .weight_decay = decay},
                       p);
    };
  };
  expect_follows(make(false, 0.1), lars(0.1, true), lars(0, false));
  expect_follows(make(true, 0.1), lars(0.1, true), lars(0, true));
  expect_follows(make(false, 0), lars(0, false), lars(0, false));
}

// A weight decay that a schedule has at 0 does not change which parameters the ratio is for.
TEST(Papers, TrustRatiosRemainWhereTheWeightDecayIsScheduledToBe0) {
  const std::vector<std::function<std::unique_ptr<Optimizer>(const NamedTensors&, double)>> kMade =
      {[](const NamedTensors& p, double decay) {
         return make_lars({.trust_coefficient = 0.02, .weight_decay = decay}, p);
       },
       [](const NamedTensors& p, double decay) { return make_lamb({.weight_decay = decay}, p); }};
  for (const auto& make : kMade) {
    const auto stepped = [&](double decay, std::optional<double> scheduled) {
      const NamedTensors parameters = {{"weight", at::arange(1.0, 13.0, at::kFloat).view({3, 4})}};
      parameters[0].tensor.mutable_grad() = at::arange(12.0, 0.0, -1.0, at::kFloat).view({3, 4});
      ScheduledOptions options;
      if (scheduled) options.weight_decay = at::scalar_tensor(*scheduled, at::kDouble);
      make(parameters, decay)->step(at::scalar_tensor(0.1, at::kFloat), {}, {}, options);
      return parameters[0].tensor;
    };
    const at::Tensor none = stepped(0.1, 0.0), little = stepped(1e-12, std::nullopt);
    EXPECT_TRUE(at::allclose(none, little, 1e-6, 0));
    EXPECT_FALSE(at::allclose(none, stepped(0, std::nullopt), 1e-3, 0));
  }
}

ReferenceStep lamb(double decay, bool adapts) {
  return [=](Reference& r, double lr, double t) {
    Numbers u(r.p.size());
    r.each([&](size_t i) {
      r.m[i] = 0.9 * r.m[i] + (1 - 0.9) * r.g[i];
      r.v[i] = 0.99 * r.v[i] + (1 - 0.99) * r.g[i] * r.g[i];
      u[i] =
          r.m[i] / (1 - std::pow(0.9, t)) / (std::sqrt(r.v[i] / (1 - std::pow(0.99, t))) + 1e-6) +
          decay * r.p[i];
    });
    const double ratio = adapts ? norm_of(r.p) / norm_of(u) : 1;
    r.each([&](size_t i) { r.p[i] -= lr * ratio * u[i]; });
  };
}

TEST(Papers, LambIsYousAlgorithm2) {
  const auto make = [](bool always, double decay) {
    return [=](const NamedTensors& p) {
      return make_lamb({.beta2 = 0.99, .always_adapt = always, .weight_decay = decay}, p);
    };
  };
  expect_follows(make(false, 0.1), lamb(0.1, true), lamb(0, false));
  expect_follows(make(true, 0.1), lamb(0.1, true), lamb(0, true));
  expect_follows(make(false, 0), lamb(0, false), lamb(0, false));
}

TEST(Papers, AZeroParameterHasNoTrustRatio) {
  for (const bool is_lars : {true, false}) {
    NamedTensors zeros = {{"w", at::scalar_tensor(0.0, at::kFloat).expand({3, 3}).clone()}};
    const auto optimizer = is_lars ? make_lars({.momentum = 0}, zeros) : make_lamb({}, zeros);
    zeros[0].tensor.mutable_grad() = at::scalar_tensor(2.0, at::kFloat).expand({3, 3}).clone();
    optimizer->step(at::scalar_tensor(0.5, at::kFloat));
    EXPECT_NEAR(zeros[0].tensor[1][1].item<float>(), is_lars ? -1 : -0.5, 1e-6);
  }
}

// Equations 3 to 5 of the paper, with z, x and y apart; p is y before the step and x in the end.
ReferenceStep schedule_free(double beta, double decay, double r_power, bool adam) {
  return [=](Reference& r, double lr, double t) {
    static constexpr const char *kSum = "sum", *kLargest = "largest";
    if (t == 1) {
      r.m = r.p;  // x
      for (size_t i = 0; i < r.p.size(); ++i) r.number["z" + std::to_string(i)] = r.p[i];
    }
    double& largest = r.number[kLargest];
    largest = std::max(largest, lr);
    const double weight = std::pow(t, r_power) * largest * largest;
    r.number[kSum] += weight;
    const double c = weight / r.number[kSum];
    r.each([&](size_t i) {
      double& z = r.number["z" + std::to_string(i)];
      const double y = (1 - beta) * z + beta * r.m[i];
      double d = r.g[i];
      if (adam) {
        r.v[i] = 0.99 * r.v[i] + (1 - 0.99) * d * d;
        d /= std::sqrt(r.v[i] / (1 - std::pow(0.99, t))) + 1e-8;
      }
      z -= lr * (d + decay * y);
      r.m[i] = (1 - c) * r.m[i] + c * z;
      r.p[i] = r.m[i];
    });
  };
}

TEST(Papers, ScheduleFreeIsDefaziosAlgorithm) {
  for (const double beta : {0.9, 0.5}) {
    for (const double decay : {0.0, 0.1}) {
      for (const double r : {0.0, 1.0}) {
        const auto sgd = schedule_free(beta, decay, r, false);
        expect_follows(
            [&](const NamedTensors& p) {
              return make_schedule_free_sgd({.momentum = beta, .r = r, .weight_decay = decay}, p);
            },
            sgd, sgd);
        const auto adamw = schedule_free(beta, decay, r, true);
        expect_follows(
            [&](const NamedTensors& p) {
              return make_schedule_free_adamw(
                  {.beta1 = beta, .beta2 = 0.99, .r = r, .weight_decay = decay}, p);
            },
            adamw, adamw);
      }
    }
  }
}

TEST(ScheduleFree, RestoresTheTrainingWeightsBitForBit) {
  NamedTensors parameters = {{"w", at::scalar_tensor(1.7, at::kFloat).expand({40}).clone()}};
  const auto optimizer = make_schedule_free_sgd({}, parameters);
  const at::Tensor w = parameters[0].tensor;
  for (int step = 0; step < 3; ++step) {
    w.mutable_grad() = w.sin();
    optimizer->step(at::scalar_tensor(0.1, at::kFloat));
  }
  const at::Tensor y = w.clone();
  const size_t usual = optimizer->state().size();
  optimizer->use_averaged_weights(true);
  optimizer->use_averaged_weights(true);
  EXPECT_FALSE(w.equal(y));
  EXPECT_EQ(optimizer->state().size(), usual + 1);
  EXPECT_EQ(optimizer->state().back().name, "training.w");
  optimizer->use_averaged_weights(false);
  EXPECT_TRUE(w.equal(y));
  EXPECT_EQ(optimizer->state().size(), usual);
}

}  // namespace
}  // namespace gallop::optim
