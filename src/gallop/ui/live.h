#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gallop/track/run_places.h"

namespace gallop::ui {

/// What has happened to the runs of a folder.
struct RunChanges {
  std::set<std::string> changed;  ///< New ones, too.
  std::set<std::string> removed;

  bool is_empty() const { return changed.empty() && removed.empty(); }
  void add(const RunChanges& later);
};

/// Looks at folders of runs again and again. Asks the system twice for a run that is not in
/// training.
class RunWatch {
 public:
  explicit RunWatch(track::RunPlaces places) : places_(std::move(places)) {}

  /// What has changed since the last look; at the first all is new. Throws UsageError where a
  /// folder cannot be read.
  RunChanges look();

 private:
  struct Seen {
    std::string state;        ///< Of its folder and its log.
    bool is_trained = false;  ///< Its end leaves no trace in its files where it is killed.
  };

  track::RunPlaces places_;
  std::map<std::string, Seen> seen_;
};

}  // namespace gallop::ui
