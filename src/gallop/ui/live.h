#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gallop/track/run_locations.h"

namespace gallop::ui {

/// The changes in a folder of runs.
struct RunChanges {
  std::set<std::string> changed;  ///< Including new ones.
  std::set<std::string> removed;

  bool is_empty() const { return changed.empty() && removed.empty(); }
  void add(const RunChanges& later);
};

/// Polls folders of runs for changes. Needs three system calls for a run that is not training.
class RunWatch {
 public:
  explicit RunWatch(track::RunLocations locations) : locations_(std::move(locations)) {}

  /// The changes since the last call; at first, all runs are new. Throws UsageError if a folder
  /// cannot be read.
  RunChanges look();

 private:
  struct Seen {
    std::string state;        ///< Of its folder, its log and its report.
    bool is_trained = false;  ///< A killed training leaves no trace in its files.
  };

  track::RunLocations locations_;
  std::map<std::string, Seen> seen_;
};

}  // namespace gallop::ui
