#include "gallop/track/run_reader.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/track/log_follower.h"
#include "gallop/track/log_line.h"
#include "gallop/track/points.h"
#include "gallop/track/run_folder.h"
#include "gallop/track/run_locations.h"

namespace gallop::track {

/// The summary of a run's log, updated incrementally.
class RunReader::LogSummary {
 public:
  explicit LogSummary(fs::path log) : log_(std::move(log)), follower_(log_) {}

  /// Throws DataError where the log cannot be read.
  const RunSummary& read() {
    if (!is_begun_ || !read_on()) read_all();
    is_begun_ = true;
    const int64_t damaged = follower_.damaged_lines();
    summary_.trouble =
        damaged == 0 ? ""
                     : fmt::format("{} {} of its log {} damaged and skipped", damaged,
                                   damaged == 1 ? "line" : "lines", damaged == 1 ? "is" : "are");
    return summary_;
  }

 private:
  // False if earlier records were superseded, or a record precedes them.
  bool read_on() {
    bool is_on = true;
    follower_.read({.restart = [&] { is_on = false; },
                    .record =
                        [&](const Record& record, int64_t) {
                          is_on = is_on && record.kind != kSession && record.step >= summary_.steps;
                          if (!is_on) return;
                          count(record);
                          end_with(record);
                        }});
    return is_on;
  }

  void read_all() {
    Log log;
    follower_ = LogFollower(log_);
    follower_.read({.restart = [&] { log = {}; },
                    .record = [&](Record record, int64_t) { log.add(std::move(record)); }});
    summary_ = {};
    if (log.records.empty()) return;
    summary_.created = log.records.front().time;
    for (const Record& record : log.current()) count(record);
    end_with(log.records.back());
  }

  void count(const Record& record) {
    summary_.steps = std::max(summary_.steps, record.step);
    for_each_point(record, [this](const Point& point) {
      summary_.metrics[point.metric].add(point.step, point.value);
    });
  }

  void end_with(const Record& last) {
    summary_.seconds = std::max(0.0, last.time - summary_.created);
    const bool is_end = last.kind == "end";
    summary_.state = is_end ? state_of_end(last) : RunState::kDied;
    summary_.end = is_end ? end_text(last) : "";
  }

  fs::path log_;
  LogFollower follower_;
  RunSummary summary_;
  bool is_begun_ = false;
};

RunReader::RunReader() = default;
RunReader::~RunReader() = default;

RunSummary RunReader::read(const fs::path& folder) {
  const std::lock_guard lock(mutex_);
  RunSummary run;
  std::string trouble;
  try {
    read_into(run, folder);
  } catch (const Error& error) {
    trouble = error.what();
  } catch (const fs::filesystem_error& error) {
    trouble = printable(error.what());
  }
  if (!trouble.empty()) {
    run.state = RunState::kUnreadable;
    run.trouble = trouble;
  }
  if (run.state != RunState::kTraining) growing_.erase(folder);
  run.name = run_name_of(folder);
  return run;
}

void RunReader::read_into(RunSummary& run, const fs::path& folder) {
  run.params = recipe_options(folder);
  const fs::path log = folder / "metrics.log";
  std::error_code error;
  if (fs::exists(log, error)) {
    auto& summary = growing_[folder];
    if (!summary) summary = std::make_unique<LogSummary>(log);
    RunSummary of_log = summary->read();
    of_log.params = std::move(run.params);
    run = std::move(of_log);
  }
  if (RunFolder::is_trained(folder)) run.state = RunState::kTraining;
  run.labels = read_labels(folder);
}

RunSummary summarize_run(const fs::path& folder) { return RunReader().read(folder); }

}  // namespace gallop::track
