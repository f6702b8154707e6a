#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/track/run_locations.h"
#include "gallop/track/run_reader.h"
#include "gallop/track/run_summary.h"

namespace gallop::track {

/// The row of a run in a table, without its metrics and options.
struct RunRow {
  std::string name;
  RunState state = RunState::kDied;
  double created = 0, seconds = 0;
  int64_t steps = 0;
  std::string note, trouble;
};

/// One value of many runs, by run name.
using Column = std::map<std::string, std::string>;

/// The index of all runs in a folder, and of sweeps if requested: their runs get a tag `sweep`
/// unless they have one. Summaries are cached in RUNS/.index.db, with sweeps in .index.sweeps.db,
/// which can be deleted at any time: only changed runs are read again. An index that is damaged or
/// not writable is rebuilt, in memory if necessary.
class RunIndex {
 public:
  /// Updates the index; a `reader` that has read the runs before only reads new log records of
  /// those in training. Throws UsageError if there is no folder.
  explicit RunIndex(RunLocations locations,
                    std::shared_ptr<RunReader> reader = std::make_shared<RunReader>());
  explicit RunIndex(fs::path runs) : RunIndex(RunLocations{std::move(runs)}) {}
  ~RunIndex();
  RunIndex(RunIndex&&) noexcept;
  RunIndex& operator=(RunIndex&&) noexcept;

  const RunLocations& locations() const { return locations_; }
  /// Sorted by name.
  const std::vector<RunRow>& rows() const { return rows_; }

  /// The last value of a metric, or the text of an option or tag, of all runs that have it, or only
  /// of those in `runs`, at a cost proportional to their number.
  std::map<std::string, double> metric(const std::string& name,
                                       const std::vector<std::string>& runs = {}) const;
  Column param(const std::string& name, const std::vector<std::string>& runs = {}) const;
  Column tag(const std::string& name, const std::vector<std::string>& runs = {}) const;

  /// The names of all metrics, options and tags of any run.
  std::vector<std::string> metric_names() const;
  std::vector<std::string> param_names() const;
  std::vector<std::string> tag_names() const;

  /// The indexed summary of a run; its files are not read. Throws UsageError for an unknown run.
  RunSummary summary(const std::string& name) const;

 private:
  class Tables;
  std::unique_ptr<Tables> open() const;
  void remove_file() const;
  void update(Tables& tables) const;
  template <typename Read>
  auto read(const Read& read) const;
  RunSummary read_summary(const std::string& name) const;

  RunLocations locations_;
  std::shared_ptr<RunReader> reader_;
  fs::path file_;
  mutable std::unique_ptr<Tables> tables_;  ///< Rebuilt if they turn out to be damaged.
  std::vector<RunRow> rows_;
};

}  // namespace gallop::track
