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

/// The sweeps of a folder, as all that ask at once share them.
class Sweeps {
 public:
  /// Empty, or a folder that is not there: none.
  explicit Sweeps(fs::path studies) : studies_(std::move(studies)) {}

  /// In order.
  std::vector<std::string> names() const;

  /// What is known of one now. It is read again where its files have changed, but no more than once
  /// a second, or where that costs much, each time that so much has passed; by one thread, while
  /// others get what was known before. So is what could not be read. Throws UsageError where there
  /// is none of this name, and as tune::StudyPlace::read() does.
  std::shared_ptr<const tune::Study> study(const std::string& name);

  /// Those that have changed since the last call, and new ones; at the first none. Also those that
  /// study() did not read again although they had changed, once it would. One in a database counts
  /// as changed at each call until all its trials are finished, also while it cannot be read.
  std::set<std::string> take_changes();

 private:
  struct Known {
    std::shared_ptr<const tune::Study> study;
    std::exception_ptr trouble;  ///< Why it could not be read, in place of it.
    std::string stamp;           ///< Of its files when it was read.
    double read = 0, seconds = 0;
    bool is_being_read = false;
    /// A reader got it as it was although its files had changed, and is to be notified.
    bool is_behind = false;
  };

  static Known read(const fs::path& folder);
  static bool is_told(const Known& known);
  static bool is_over(const Known& known);
  static bool may_be_read_anew(const Known& known);
  [[noreturn]] void refuse(const std::string& name) const;

  fs::path studies_;
  std::mutex mutex_;
  std::condition_variable is_read_;
  std::map<std::string, Known> known_;
  std::map<std::string, std::string> stamps_;  ///< At the last look for changes.
  bool has_looked_ = false;
};

}  // namespace gallop::ui
