#include "gallop/app/step_recording.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace gallop::app {

namespace {

// In shorter times, the kernel's counters of the machine's load are too coarse.
constexpr double kLeastSecondsOfLoad = 0.5;

}  // namespace

void StepRecording::start() {
  meter_.read();
  counters_.emplace();
  recorder_.emplace();
}

RecordedSteps StepRecording::stop() {
  if (!recorder_) return {};
  ProcessCounts counts = counters_->read();
  RecordedSteps recorded{.trace = recorder_->stop(), .counts = std::move(counts)};
  recorder_.reset();
  counters_.reset();
  const double seconds =
      1e-9 * static_cast<double>(recorded.trace.end_ns - recorded.trace.begin_ns);
  if (seconds < kLeastSecondsOfLoad) return recorded;
  const auto load = meter_.read().values;
  const auto own = load.find("cpu"), all = load.find("machine_cpu");
  if (own == load.end() || all == load.end()) return recorded;
  const auto cores = static_cast<double>(std::thread::hardware_concurrency());
  recorded.other_cores = std::max(0.0, all->second * cores - own->second * processes_);
  return recorded;
}

}  // namespace gallop::app
