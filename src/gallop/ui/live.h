#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::ui {

/// What has happened to the runs of a folder.
struct RunChanges {
  std::set<std::string> changed;  ///< New ones, too.
  std::set<std::string> removed;

  bool is_empty() const { return changed.empty() && removed.empty(); }
  void add(const RunChanges& later);
};

/// Looks at a folder of runs again and again. Asks the system twice for a run that nobody trains.
class RunWatch {
 public:
  explicit RunWatch(fs::path runs) : runs_(std::move(runs)) {}

  /// What has changed since the last look; at the first all is new. Throws UsageError where the
  /// folder cannot be read.
  RunChanges look();

 private:
  struct Seen {
    std::string state;        ///< Of its folder and its log.
    bool is_trained = false;  ///< Its end leaves no trace in its files where it is killed.
  };

  fs::path runs_;
  std::map<std::string, Seen> seen_;
};

}  // namespace gallop::ui
