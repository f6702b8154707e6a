// Creates folders of finished runs, and measures the cost of a log record.
//
//   bench_runs make FOLDER RUNS METRICS POINTS   creates runs with METRICS metrics of POINTS points
//   bench_runs log RECORDS METRICS               appends records of METRICS metrics; prints JSON
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/base/process_time.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/track/log.h"
#include "gallop/track/run_folder.h"

namespace {

using namespace gallop::track;
namespace fs = std::filesystem;

Record record_of(int64_t run, int64_t step, int64_t metrics, const char* kind) {
  Record record{.step = step, .kind = kind};
  for (int64_t i = 0; i < metrics; ++i) {
    const auto phase = static_cast<double>(run * 7 + i);
    record.values[fmt::format("metric_{}", i)] =
        std::sin(phase) + std::exp(-1e-3 * static_cast<double>(step));
  }
  return record;
}

void make(const fs::path& folder, int64_t runs, int64_t metrics, int64_t points) {
  constexpr double kBegin = 1.7e9, kSecondsOfRun = 600;
  for (int64_t run = 0; run < runs; ++run) {
    const RunFolder made = RunFolder::create(
        folder, fmt::format("run-{}", run),
        fmt::format("model: {{name: mlp, hidden: [{}]}}\noptimizer: {{name: sgd, lr: {}}}\n",
                    16 << (run % 6), 0.001 * static_cast<double>(1 + run % 100)),
        {.started = utc_now()});
    std::vector<Record> records;
    for (int64_t point = 1; point <= points; ++point) {
      // Half of the metrics are of evaluations, half of steps.
      for (const char* kind : {"evaluation", "step"}) {
        Record record = record_of(run, point * 100, metrics / 2, kind);
        record.time = kBegin + kSecondsOfRun * static_cast<double>(run) +
                      kSecondsOfRun * static_cast<double>(point) / static_cast<double>(points);
        records.push_back(std::move(record));
      }
    }
    records.push_back({.step = points * 100,
                       .time = records.back().time,
                       .kind = "end",
                       .texts = {{"how", "finished"}}});
    write_log(made.log(), records);
  }
}

void measure_log(int64_t records, int64_t metrics) {
  const gallop::TemporaryFolder folder(fs::temp_directory_path(), "gallop-bench-");
  LogWriter log(folder.path() / "metrics.log", 0, {});
  const Record record = record_of(1, 1, metrics, "step");
  const double begin = gallop::monotonic_seconds(), cpu = gallop::process_cpu_seconds();
  for (int64_t i = 0; i < records; ++i) log.append(record);
  const double seconds = gallop::monotonic_seconds() - begin;
  const auto count = static_cast<double>(records);
  fmt::print(
      "{{\"records\": {}, \"metrics\": {}, \"us_per_record\": {:.2f}, \"us_per_metric\": {:.3f}, "
      "\"cpu_us_per_record\": {:.2f}}}\n",
      records, metrics, 1e6 * seconds / count, 1e6 * seconds / count / static_cast<double>(metrics),
      1e6 * (gallop::process_cpu_seconds() - cpu) / count);
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> args(argv + 1, argv + argc);
  if (args.size() == 5 && args[0] == "make") {
    make(args[1], std::stoll(args[2]), std::stoll(args[3]), std::stoll(args[4]));
  } else if (args.size() == 3 && args[0] == "log") {
    measure_log(std::stoll(args[1]), std::stoll(args[2]));
  } else {
    fmt::print(stderr,
               "bench_runs make FOLDER RUNS METRICS POINTS | bench_runs log RECORDS METRICS\n");
    return EXIT_FAILURE;
  }
  return EXIT_SUCCESS;
}
