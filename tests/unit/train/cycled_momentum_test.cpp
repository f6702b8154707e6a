// Scheduled momentum, as PyTorch's OneCycleLR and CyclicLR set it in SGD and Adam at each step.
// tests/parity/make_schedules.py stored their learning rates and momenta; the updates are PyTorch's
// formulas as plain loops in fp64.
#include <cmath>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "unit/fixtures.h"
#include "unit/schedule/build.h"
#include "unit/train/trainee.h"

namespace gallop::train {
namespace {

using nlohmann::json;

constexpr size_t kNumbers = 37;
constexpr double kLr = 0.05, kBeta2 = 0.97, kEps = 1e-6, kDecay = 0.02;

// One parameter, updated like torch.optim.SGD (without dampening) and Adam.
struct Reference {
  std::string optimizer;
  std::vector<double> p, m, v;

  void step(double number, double lr, double momentum, const std::vector<float>& gradient) {
    for (size_t i = 0; i < p.size(); ++i) {
      const double g = static_cast<double>(gradient[i]) + kDecay * p[i];
      if (optimizer != "adam") {
        m[i] = momentum * m[i] + g;
        p[i] -= lr * (optimizer == "nesterov" ? g + momentum * m[i] : m[i]);
        continue;
      }
      m[i] = momentum * m[i] + (1 - momentum) * g;
      v[i] = kBeta2 * v[i] + (1 - kBeta2) * g * g;
      const double mean = m[i] / (1 - std::pow(momentum, number));
      p[i] -= lr * mean / (std::sqrt(v[i] / (1 - std::pow(kBeta2, number))) + kEps);
    }
  }
};

at::Tensor tensor_of(const std::vector<float>& numbers) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(numbers.size())});
  std::copy(numbers.begin(), numbers.end(), tensor.mutable_data_ptr<float>());
  return tensor;
}

std::string options_of(const std::string& optimizer) {
  if (optimizer == "adam") return "adam beta2=0.97 eps=1e-6 weight_decay=0.02";
  return "sgd weight_decay=0.02" + std::string(optimizer == "nesterov" ? " nesterov=true" : "");
}

// The largest difference over a run of the case.
double largest_difference(const json& wanted, const schedule::RunLength& length,
                          const std::string& name) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> start(kNumbers), gradient(kNumbers);
  for (float& number : start) number = normal(random);
  const NamedTensors parameters = {{"p", tensor_of(start)}};
  const auto optimizer = built(optim::built_in_optimizers(), options_of(name), parameters);
  const auto schedule = schedule::build(wanted["recipe"].dump(), length);
  Reference reference{name,
                      {start.begin(), start.end()},
                      std::vector<double>(kNumbers),
                      std::vector<double>(kNumbers)};
  double largest = 0;
  for (size_t step = 0; step < wanted["factor"].size(); ++step) {
    for (float& number : gradient) number = normal(random);
    parameters[0].tensor.mutable_grad() = tensor_of(gradient);
    const double progress = static_cast<double>(step) / wanted["last"].get<double>();
    const double momentum = schedule->momentum(progress).value();
    optimizer->step(at::scalar_tensor(kLr * schedule->factor(progress), at::kFloat), {}, {},
                    {.momentum = at::scalar_tensor(momentum, at::kDouble)});
    reference.step(static_cast<double>(step + 1), kLr * wanted["factor"][step].get<double>(),
                   wanted["momentum"][step].get<double>(), gradient);
    for (size_t i = 0; i < kNumbers; ++i) {
      const double found = parameters[0].tensor.const_data_ptr<float>()[i];
      largest = std::fmax(largest, std::abs(found - reference.p[i]));
    }
  }
  return largest;
}

TEST(CycledMomentum, IsThatOfPyTorchsSchedulesInEveryStep) {
  const at::NoGradGuard no_grad;
  std::ifstream file(fixtures() / "schedules.json");
  const json all = json::parse(file);
  const double steps = all["steps"], per_epoch = all["steps_per_epoch"];
  const schedule::RunLength length{.samples = 3 * steps,
                                   .samples_per_epoch = 3 * per_epoch,
                                   .batch = 3,
                                   .batches_per_epoch = per_epoch};
  int cases = 0;
  for (const json& wanted : all["cases"]) {
    if (!wanted.contains("momentum")) continue;
    cases += 1;
    for (const std::string name : {"sgd", "nesterov", "adam"}) {
      EXPECT_LT(largest_difference(wanted, length, name), 3e-6) << name << wanted["recipe"];
    }
  }
  EXPECT_EQ(cases, 7);  // Three of CyclicLR, four of OneCycleLR.
}

}  // namespace
}  // namespace gallop::train
