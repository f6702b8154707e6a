#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// The name of a metric for other programs, grouped by a slash: "train/loss" for `train.loss`,
/// "evaluation/accuracy" for `accuracy` (of an evaluation).
std::string foreign_name(const std::string& metric);

/// Unique run names for runs of other programs: invalid characters become '-', leading dots are
/// removed, and duplicates get a number.
std::vector<std::string> run_names(const std::vector<std::string>& wanted);

/// The result of importing a run, with notes for the user, one per line.
struct Imported {
  int64_t points = 0;
  std::vector<std::string> notes{};
};

/// A run of another program, assembled for import.
class ForeignRun {
 public:
  enum class Ending { kFinished, kStopped, kFailed, kUnknown };

  /// Adds a value by the other program's name: the inverse of foreign_name(); names without a group
  /// belong to evaluations. All values are kept, even several of one step.
  void add(const std::string& name, int64_t step, double time, double value);
  /// Numbers the points of each metric that was logged without steps, which are all 0 then, from 0
  /// on in the order of their times.
  void number_points_without_step();
  void set_option(const std::string& name, const std::string& text) { options_[name] = text; }
  void set_tag(const std::string& name, const std::string& text) { tags_[name] = text; }
  void set_ending(Ending ending) { ending_ = ending; }
  /// When it began and ended, in seconds since 1970, where that is known: 0 where not. Without it
  /// its points tell.
  void set_times(double began, double ended) {
    began_ = began;
    ended_ = ended;
  }

  /// How many points it has, and a note where they were numbered, where steps occur more than once,
  /// and for each metric that could not keep its name.
  Imported summary() const;

  /// Makes RUNS/NAME of it, with a tag `imported` that says from where. Throws UsageError where
  /// there is such a run, DeviceError where it cannot be written; no run is left then.
  void make(const fs::path& runs, const std::string& name, const std::string& from) const;

 private:
  struct Metric {
    std::string kind, value;  ///< Of records.
    bool is_numbered = false;
  };
  struct Point {
    size_t metric = 0;
    int64_t step = 0;
    double time = 0, value = 0;
  };

  size_t metric_of(const std::string& name);
  int64_t repeated_points() const;

  std::vector<Point> points_;
  std::vector<Metric> metrics_;
  std::map<std::string, size_t> metric_by_name_, metric_by_own_name_;
  std::map<std::string, std::string> options_, tags_;
  std::vector<std::string> renamed_;
  Ending ending_ = Ending::kUnknown;
  double began_ = 0, ended_ = 0;
};

}  // namespace gallop::track
