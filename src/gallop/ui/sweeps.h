#pragma once

#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/tune/study.h"

namespace gallop::ui {

/// The sweeps of a folder, shared by all requests.
class Sweeps {
 public:
  /// An empty or missing folder has no sweeps.
  explicit Sweeps(fs::path studies) : studies_(std::move(studies)) {}

  /// Sorted.
  std::vector<std::string> names() const;

  /// The current state of a sweep. It is reloaded if its files have changed, but at most once per
  /// second, or less often if that is slow; one thread reloads while others get the old state. Read
  /// errors are cached in the same way. Throws UsageError if there is none of this name, and the
  /// errors of tune::StudyPlace::read().
  std::shared_ptr<const tune::Study> study(const std::string& name);

  /// The sweeps that were changed or added since the last call; at first all. Includes those whose
  /// changes study() postponed, once it would reload them. One in a database counts as changed at
  /// each call until all its trials are finished, even while it cannot be read.
  std::set<std::string> take_changes();

 private:
  struct Known {
    std::shared_ptr<const tune::Study> study;
    std::exception_ptr trouble;  ///< The cached read error.
    std::string stamp;           ///< Stamp of its files when it was read.
    double read = 0, seconds = 0;
    bool is_being_read = false;
    /// A reader got the old state although its files had changed, and is to be notified.
    bool is_behind = false;
  };

  static Known read(const fs::path& folder);
  static bool is_loaded(const Known& known);
  static bool is_over(const Known& known);
  static bool may_reload(const Known& known);
  [[noreturn]] void refuse(const std::string& name) const;

  fs::path studies_;
  std::mutex mutex_;
  std::condition_variable is_read_;
  std::map<std::string, Known> known_;
  std::map<std::string, std::string> stamps_;  ///< As of the last check for changes.
};

}  // namespace gallop::ui
