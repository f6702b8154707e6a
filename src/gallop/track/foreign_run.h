#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "gallop/base/file.h"
#include "gallop/track/log.h"

namespace gallop::track {

/// The name that other programs are given for a metric, in groups by a slash: "train/loss" for
/// `train.loss`, "evaluation/accuracy" for `accuracy`, which is of an evaluation.
std::string foreign_name(const std::string& metric);

/// A run of another program, as it is put together here.
class ForeignRun {
 public:
  enum class Ending { kFinished, kStopped, kFailed, kUnknown };

  /// A number by the other program's name for it: the inverse of foreign_name(), where names
  /// without a group are taken for those of evaluations. The last of two of the same step counts.
  void add(const std::string& name, int64_t step, double time, double value);
  void set_option(const std::string& name, const std::string& text) { options_[name] = text; }
  void set_tag(const std::string& name, const std::string& text) { tags_[name] = text; }
  void set_ending(Ending ending) { ending_ = ending; }
  /// When it began and ended, in seconds since 1970, where that is known: 0 where not. Without it
  /// its points tell.
  void set_times(double began, double ended) {
    began_ = began;
    ended_ = ended;
  }

  int64_t points() const { return points_; }

  /// Makes RUNS/NAME of it, with a tag `imported` that says from where. Throws UsageError where
  /// there is such a run, DeviceError where it cannot be written.
  void make(const fs::path& runs, const std::string& name, const std::string& from) const;

 private:
  std::map<std::pair<int64_t, std::string>, Record> records_;  // By step and kind.
  std::map<std::string, std::string> options_, tags_;
  Ending ending_ = Ending::kUnknown;
  double began_ = 0, ended_ = 0;
  int64_t points_ = 0;
};

}  // namespace gallop::track
