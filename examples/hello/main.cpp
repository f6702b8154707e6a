// Fits a line with LibTorch, as a recipe says: Gallop reads and checks the recipe, draws the points
// and gives the learning rate's schedule. A mistake in the recipe is told with its place.
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/philox.h"
#include "gallop/config/component.h"
#include "gallop/config/resolve.h"
#include "gallop/schedule/schedule.h"

namespace {

const gallop::schedule::ScheduleRegistry schedules = gallop::schedule::built_in_schedules();

struct Recipe {
  int64_t points = 100;
  double noise = 0;
  int64_t seed = 0;
  int64_t steps = 100;
  double lr = 0.1;
  gallop::config::Component schedule{schedules, "constant"};
};

// What a recipe may say, once for reading, checking and help.
void visit(gallop::config::Visitor& visitor, Recipe& recipe) {
  visitor.field({.name = "points", .help = "points to fit", .min = 2}, recipe.points);
  visitor.field({.name = "noise", .help = "largest error of a point", .min = 0}, recipe.noise);
  visitor.field({.name = "seed", .help = "of the points", .min = 0}, recipe.seed);
  visitor.field({.name = "steps", .help = "updates", .min = 1}, recipe.steps);
  visitor.field({.name = "lr", .help = "learning rate", .min = 0, .above_min = true}, recipe.lr);
  visitor.field({.name = "schedule", .help = "of the learning rate"}, recipe.schedule);
}

Recipe read_recipe(const std::string& path) {
  Recipe recipe;
  gallop::config::Problems problems;
  const auto root = gallop::config::parse_yaml(gallop::read_file(path), path);
  gallop::config::read_fields(
      root, [&](auto& visitor) { visit(visitor, recipe); }, problems);
  problems.throw_if_any();
  return recipe;
}

// x in [-1, 1) and y = 3x - 1 with noise, each of shape [points].
std::pair<at::Tensor, at::Tensor> draw_points(const Recipe& recipe) {
  std::vector<float> x, y;
  for (int64_t i = 0; i < recipe.points; ++i) {
    gallop::Philox random(recipe.seed, gallop::Purpose::kSample, 0, i);
    x.push_back(2 * random.uniform() - 1);
    const double error = recipe.noise * (2 * random.uniform() - 1);
    y.push_back(static_cast<float>(3 * x.back() - 1 + error));
  }
  return {at::tensor(x), at::tensor(y)};
}

void fit(const Recipe& recipe) {
  const auto [x, y] = draw_points(recipe);
  const auto schedule =
      schedules.build(recipe.schedule, {.samples = static_cast<double>(recipe.steps), .batch = 1});
  auto line = at::zeros({2}).set_requires_grad(true);
  double loss = 0;
  for (int64_t step = 0; step < recipe.steps; ++step) {
    const auto error = at::mse_loss(line[0] * x + line[1], y);
    loss = error.item<double>();
    error.backward();
    const c10::NoGradGuard no_grad;
    const double progress = static_cast<double>(step) / static_cast<double>(recipe.steps);
    line.sub_(line.grad(), recipe.lr * schedule->factor(progress));
    line.mutable_grad().reset();
  }
  fmt::print("{} steps with schedule {}: y = {:.2f}x {:+.2f}, loss {:.4f}\n", recipe.steps,
             recipe.schedule.name(), line[0].item<double>(), line[1].item<double>(), loss);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "usage: hello RECIPE\n");
    return static_cast<int>(gallop::ExitCode::kUsage);
  }
  try {
    fit(read_recipe(argv[1]));
    return 0;
  } catch (const gallop::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}
