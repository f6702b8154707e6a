// Measures the cost of a trial in a storage: one ask, one report and one tell by one worker, with a
// random sampler over 10 parameters. Prints JSON.
//
//   bench_tune_storage [WHERE [TRIALS]]     WHERE: "memory" (default), the path of a new SQLite
//   file, or postgresql://...
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/tune/storage/memory.h"
#include "gallop/tune/store.h"
#include "gallop/tune/tuner.h"

namespace {

using namespace gallop::tune;

constexpr const char* kName = "bench";

StudySettings settings(int64_t trials) {
  std::vector<Parameter> parameters;
  for (int i = 0; i < 10; ++i) parameters.push_back({fmt::format("x{}", i), Interval{}});
  return {.name = kName,
          .space = Space(parameters, {}),
          .objectives = {{"loss", false}},
          .sampler = R"({"name": "random"})",
          .trials = trials};
}

int64_t resident_bytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

std::unique_ptr<Storage> make_storage(const std::string& where, int64_t trials) {
  if (where == "memory") return std::make_unique<MemoryStorage>(settings(trials));
  const auto store = open_store(where);
  store->create(settings(trials));
  return store->open(kName);
}

nlohmann::ordered_json measure(const std::string& where, int64_t trials) {
  Tuner tuner(make_storage(where, trials));
  const int64_t bytes = resident_bytes();
  const double begin = gallop::monotonic_seconds();
  while (true) {
    const Assignment assignment = tuner.ask("bench");
    if (assignment.kind != Assignment::Kind::kTrial) break;
    tuner.report(assignment.trial, 1, 0.5);
    tuner.tell(assignment.trial, {.values = {0.5}});
  }
  const double seconds = gallop::monotonic_seconds() - begin;
  const auto finished = static_cast<int64_t>(tuner.study().finished().size());
  return {{"where", where == "memory" ? where : where.substr(0, where.find(':'))},
          {"trials", finished},
          {"seconds", seconds},
          {"ms_per_trial", 1000 * seconds / static_cast<double>(finished)},
          {"bytes_per_trial", (resident_bytes() - bytes) / finished}};
}

// The time to reopen the storage and load the study.
double seconds_to_open(const std::string& where) {
  const double begin = gallop::monotonic_seconds();
  const Tuner tuner(open_store(where)->open(kName));
  return gallop::monotonic_seconds() - begin;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::string where = argc > 1 ? argv[1] : "memory";
    if (where.starts_with("-")) {
      throw gallop::UsageError(
          "usage: bench_tune_storage [WHERE [TRIALS]], WHERE: memory, a new file or "
          "postgresql://...");
    }
    auto result = measure(where, argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 10'000);
    if (where != "memory") result["seconds_to_open"] = seconds_to_open(where);
    fmt::print("{}\n", result.dump(2));
    return 0;
  } catch (const gallop::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}
