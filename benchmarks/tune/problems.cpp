#include "problems.h"

#include <array>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

namespace gallop::tune {

namespace {

using std::numbers::pi;

double square(double x) { return x * x; }

double branin(const Point& x) {
  return square(x[1] - 5.1 / (4 * pi * pi) * x[0] * x[0] + 5 / pi * x[0] - 6) +
         10 * (1 - 1 / (8 * pi)) * std::cos(x[0]) + 10;
}

double hartmann6(const Point& x) {
  constexpr std::array<double, 4> kHeights = {1, 1.2, 3, 3.2};
  constexpr double kScales[4][6] = {{10, 3, 17, 3.5, 1.7, 8},
                                    {0.05, 10, 17, 0.1, 8, 14},
                                    {3, 3.5, 1.7, 10, 17, 8},
                                    {17, 8, 0.05, 10, 0.1, 14}};
  constexpr double kCenters[4][6] = {{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
                                     {0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
                                     {0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
                                     {0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381}};
  double sum = 0;
  for (size_t i = 0; i < 4; ++i) {
    double distance = 0;
    for (size_t j = 0; j < 6; ++j) distance += kScales[i][j] * square(x[j] - kCenters[i][j]);
    sum -= kHeights[i] * std::exp(-distance);
  }
  return sum;
}

double ackley(const Point& x) {
  double squares = 0, cosines = 0;
  for (const double at : x) {
    squares += at * at;
    cosines += std::cos(2 * pi * at);
  }
  const auto count = static_cast<double>(x.size());
  return -20 * std::exp(-0.2 * std::sqrt(squares / count)) - std::exp(cosines / count) + 20 +
         std::numbers::e;
}

double rosenbrock(const Point& x) {
  double sum = 0;
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    sum += 100 * square(x[i + 1] - x[i] * x[i]) + square(1 - x[i]);
  }
  return sum;
}

// Similar to a training: the best value of a parameter depends on others.
Space mixed_space() {
  using enum Scale;
  return Space(
      {{"model", Choices{{R"("linear")", R"("mlp")", R"("conv")"}}},
       {"optimizer", Choices{{R"("sgd")", R"("adam")"}}},
       {"lr", Interval{.low = 1e-5, .high = 1, .scale = kLog}},
       {"momentum", Interval{.low = 0, .high = 0.99}, Condition{1, {0}}},
       {"gap", Interval{.low = 1e-4, .high = 0.5, .scale = kLog}, Condition{1, {1}}},
       {"depth", Interval{.low = 1, .high = 8, .step = 1, .integer = true}, Condition{0, {1}}},
       {"width", Interval{.low = 16, .high = 1024, .scale = kLog, .step = 1, .integer = true},
        Condition{0, {1, 2}}},
       {"kernel", Interval{.low = 1, .high = 7, .step = 2, .integer = true}, Condition{0, {2}}},
       {"dropout", Interval{.low = 0, .high = 0.6, .step = 0.05}},
       {"activation", Choices{{R"("relu")", R"("gelu")", R"("tanh")"}}, Condition{0, {1}}}},
      {});
}

double mixed(const Point& x) {
  constexpr std::array<double, 3> kActivations = {0.05, 0, 0.15};
  enum { kModel, kOptimizer, kRate, kMomentum, kGap, kDepth, kWidth, kKernel, kDropout, kKind };
  const bool is_mlp = x[kModel] == 1, is_sgd = x[kOptimizer] == 0;
  double best_rate = is_sgd ? -1 : -3;
  double sum = 2 * square(x[kDropout] - 0.2);
  if (x[kModel] == 0) sum += 1;
  if (is_mlp) {
    best_rate -= 0.2 * (x[kDepth] - 4);
    sum += 0.05 * square(x[kDepth] - 4) + 0.1 * square(std::log2(x[kWidth]) - 8) +
           kActivations[static_cast<size_t>(x[kKind])];
  } else if (x[kModel] == 2) {
    sum += 0.2 + 0.1 * square((x[kKernel] - 3) / 2) + 0.1 * square(std::log2(x[kWidth]) - 6);
  }
  sum += is_sgd ? 0.1 + square(x[kMomentum] - 0.9) : 0.2 * square(std::log10(x[kGap]) + 2);
  return sum + 0.3 * square(std::log10(x[kRate]) - best_rate);
}

Space box(size_t size, double low, double high) {
  std::vector<Parameter> parameters;
  for (size_t i = 0; i < size; ++i) {
    parameters.push_back({fmt::format("x{}", i), Interval{.low = low, .high = high}});
  }
  return Space(std::move(parameters), {});
}

}  // namespace

std::vector<Problem> problems() {
  constexpr double kHartmann = -3.3223680114155147;
  const Space plane(
      {{"x0", Interval{.low = -5, .high = 10}}, {"x1", Interval{.low = 0, .high = 15}}}, {});
  return {
      {.name = "branin", .space = plane, .smallest = 0.39788735772973816, .value = branin},
      {.name = "hartmann6", .space = box(6, 0, 1), .smallest = kHartmann, .value = hartmann6},
      {.name = "ackley10", .space = box(10, -32.768, 32.768), .smallest = 0, .value = ackley},
      {.name = "rosenbrock4", .space = box(4, -5, 10), .smallest = 0, .value = rosenbrock},
      {.name = "mixed", .space = mixed_space(), .smallest = 0, .value = mixed},
      {.name = "noisy-hartmann6",
       .space = box(6, 0, 1),
       .smallest = kHartmann,
       .noise = 0.1,
       .value = hartmann6},
  };
}

}  // namespace gallop::tune
