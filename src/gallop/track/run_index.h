#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/track/run_places.h"
#include "gallop/track/run_reader.h"
#include "gallop/track/run_summary.h"

namespace gallop::track {

/// What is known of one run in a table, without its metrics and options.
struct RunRow {
  std::string name;
  RunState state = RunState::kDied;
  double created = 0, seconds = 0;
  int64_t steps = 0;
  std::string note, trouble;
};

/// One number or text of many runs, by the run's name.
using Column = std::map<std::string, std::string>;

/// All runs of a folder, and of sweeps where they are asked for: those have a tag `sweep`, unless
/// they were given another. Summaries are kept in RUNS/.index.db, with sweeps in
/// .index.sweeps.db, which may be removed at any time: only runs whose files have changed are read
/// again. Where it cannot be written or is damaged, it is made again, in memory if need be.
class RunIndex {
 public:
  /// Brings the index up to date with the folders; a `reader` that has read their runs before knows
  /// what is new in the logs of those that train. Throws UsageError where there is no folder.
  explicit RunIndex(RunPlaces places,
                    std::shared_ptr<RunReader> reader = std::make_shared<RunReader>());
  explicit RunIndex(fs::path runs) : RunIndex(RunPlaces{std::move(runs)}) {}
  ~RunIndex();
  RunIndex(RunIndex&&) noexcept;
  RunIndex& operator=(RunIndex&&) noexcept;

  const RunPlaces& places() const { return places_; }
  /// By name.
  const std::vector<RunRow>& rows() const { return rows_; }

  /// The last value of a metric, the text of an option or of a tag of all runs that have it; where
  /// any are named in `runs`, of those alone, and as fast as they are few.
  std::map<std::string, double> metric(const std::string& name,
                                       const std::vector<std::string>& runs = {}) const;
  Column param(const std::string& name, const std::vector<std::string>& runs = {}) const;
  Column tag(const std::string& name, const std::vector<std::string>& runs = {}) const;

  /// The names of all metrics, options and tags that any run has.
  std::vector<std::string> metric_names() const;
  std::vector<std::string> param_names() const;
  std::vector<std::string> tag_names() const;

  /// All that the index knows of a run; its files are not read. Throws UsageError where there is
  /// none of this name.
  RunSummary summary(const std::string& name) const;

 private:
  class Tables;
  std::unique_ptr<Tables> open() const;
  void remove_file() const;
  void update(Tables& tables) const;
  template <typename Read>
  auto read(const Read& read) const;
  RunSummary read_summary(const std::string& name) const;

  RunPlaces places_;
  std::shared_ptr<RunReader> reader_;
  fs::path file_;
  mutable std::unique_ptr<Tables> tables_;  ///< Made again where they turn out to be damaged.
  std::vector<RunRow> rows_;
};

}  // namespace gallop::track
