#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// The name that other programs are given for a metric, in groups by a slash: "train/loss" for
/// `train.loss`, "evaluation/accuracy" for `accuracy`, which is of an evaluation.
std::string foreign_name(const std::string& metric);

/// Names for runs of other programs, one for each of those given: '-' for what a run's name may
/// not have, no dot at the beginning, and a number behind where another run has the name.
std::vector<std::string> run_names(const std::vector<std::string>& wanted);

/// What an import took of a run, and what is to be said about it, a line each.
struct Imported {
  int64_t points = 0;
  std::vector<std::string> notes{};
};

/// A run of another program, as it is put together here.
class ForeignRun {
 public:
  enum class Ending { kFinished, kStopped, kFailed, kUnknown };

  /// A number by the other program's name for it: the inverse of foreign_name(), where names
  /// without a group are taken for those of evaluations. All are kept, several of one step too.
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
