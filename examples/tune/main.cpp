// Searches for the best learning rate and momentum of gradient descent in a narrow valley. With a
// file path as argument the study is stored there: a second call continues where the first ended,
// also if it was killed.
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/tune/optimize.h"
#include "gallop/tune/store.h"
#include "gallop/tune/tuner.h"

namespace {

using namespace gallop::tune;

StudySettings settings() {
  return {.name = "valley",
          .seed = 1,
          .space = Space({{"lr", Interval{.low = 1e-4, .high = 1, .scale = Scale::kLog}},
                          {"momentum", Interval{.low = 0, .high = 0.99}}},
                         {}),
          .objectives = {{"loss", /*maximize=*/false}},
          .sampler = R"({"name": "random"})",
          .trials = 100};
}

// f(x, y) = x^2 / 2 + 10 y^2 after 50 steps from (5, 1).
std::vector<double> descend(Evaluation& trial) {
  const double lr = trial.number("lr"), momentum = trial.number("momentum");
  double x = 5, y = 1, x_speed = 0, y_speed = 0, loss = 0;
  for (int step = 1; step <= 50; ++step) {
    x_speed = momentum * x_speed - lr * x;
    y_speed = momentum * y_speed - lr * 20 * y;
    x += x_speed;
    y += y_speed;
    loss = x * x / 2 + 10 * y * y;
    // False if the pruner stops the trial.
    if (step % 10 == 0 && !trial.report(step, loss)) break;
  }
  return {loss};
}

std::unique_ptr<Storage> open(const char* path) {
  if (path == nullptr) return memory_storage(settings());
  const auto store = open_store(path);
  if (!gallop::fs::exists(path)) store->create(settings());
  return store->open("valley");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Tuner tuner(open(argc > 1 ? argv[1] : nullptr));
    optimize(tuner, descend);
    const Study& study = tuner.study();
    const auto best = study.best();
    if (!best) throw gallop::DataError("no trial was completed");
    const Trial& trial = study.trials()[static_cast<size_t>(*best)];
    fmt::print("{} trials; the best, {}: lr {:.3f}, momentum {:.2f}, loss {:.2g}\n",
               study.finished().size(), trial.number, trial.point[0], trial.point[1],
               trial.losses[0]);
    return 0;
  } catch (const gallop::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}
