#include "fronts.h"

#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "gallop/tune/pareto/pareto.h"
#include "simulation.h"

namespace gallop::tune {

namespace {

double zdt_distance(const Point& x) {
  double sum = 0;
  for (size_t i = 1; i < x.size(); ++i) sum += x[i];
  return 1 + 9 * sum / static_cast<double>(x.size() - 1);
}

std::vector<double> zdt1(const Point& x) {
  const double g = zdt_distance(x);
  return {x[0], g * (1 - std::sqrt(x[0] / g))};
}

std::vector<double> zdt2(const Point& x) {
  const double g = zdt_distance(x);
  return {x[0], g * (1 - x[0] * x[0] / (g * g))};
}

std::vector<double> dtlz2(const Point& x) {
  double radius = 1;
  for (size_t i = 2; i < x.size(); ++i) radius += (x[i] - 0.5) * (x[i] - 0.5);
  const double a = x[0] * std::numbers::pi / 2, b = x[1] * std::numbers::pi / 2;
  return {radius * std::cos(a) * std::cos(b), radius * std::cos(a) * std::sin(b),
          radius * std::sin(a)};
}

}  // namespace

const std::vector<FrontProblem>& front_problems() {
  static const std::vector<FrontProblem> kProblems = {
      {"zdt1", 10, {1, 10}, 10 - 1.0 / 3, zdt1},
      {"zdt2", 10, {1, 10}, 10 - 2.0 / 3, zdt2},
      {"dtlz2", 7, {2.25, 2.25, 2.25}, std::pow(2.25, 3) - std::numbers::pi / 6, dtlz2},
  };
  return kProblems;
}

StudySettings front_settings(const FrontProblem& problem, uint64_t seed) {
  std::vector<Parameter> parameters;
  for (size_t i = 0; i < problem.parameters; ++i) {
    parameters.push_back({fmt::format("x{}", i), Interval{}});
  }
  return {.name = "benchmark",
          .seed = seed,
          .space = Space(std::move(parameters), {}),
          .objectives = std::vector<Objective>(problem.reference.size(), {.metric = "loss"})};
}

std::vector<double> missing_volumes(const FrontProblem& problem, int64_t trials, int64_t every,
                                    Sampler& sampler, Study study) {
  std::vector<double> missing;
  LossRows losses;
  for (int64_t number = 0; number < trials; ++number) {
    const auto proposal = sampler.ask(study, number);
    if (!proposal) break;
    losses.push_back(problem.values(proposal->point));
    queue_and_start(study, proposal->point, 0);
    finish(study, number, losses.back(), 0);
    if ((number + 1) % every == 0) {
      missing.push_back(problem.volume - hypervolume(losses, problem.reference));
    }
  }
  return missing;
}

}  // namespace gallop::tune
