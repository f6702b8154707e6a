#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::ui {

/// The searches of 'gallop optimize' in a folder, which it may write at the same time.
class Searches {
 public:
  enum class State { kRunning, kStopped, kFinished };

  /// An empty or missing folder has no searches.
  explicit Searches(fs::path folder) : folder_(std::move(folder)) {}

  /// Sorted.
  std::vector<std::string> names() const;

  /// The folder of a search. Throws UsageError if there is none of this name.
  fs::path find(const std::string& name) const;

  /// The state of the search in a folder.
  static State state_of(const fs::path& search);

  /// The file with its report, or with the part of it that is known so far.
  static fs::path report_of(const fs::path& search);

  /// The searches that were changed, added or removed since the last call; at first all, as a page
  /// may have read their list just before.
  std::set<std::string> take_changes();

 private:
  fs::path folder_;
  std::map<std::string, std::string> stamps_;  ///< As of the last check for changes.
};

/// "running", "stopped", "finished".
const char* name_of(Searches::State state);

}  // namespace gallop::ui
