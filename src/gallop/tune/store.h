#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/base/error.h"
#include "gallop/tune/patience.h"
#include "gallop/tune/storage.h"

namespace gallop::tune {

/// Another process writes to a study to which only one may.
class StudyIsLed : public UsageError {
 public:
  using UsageError::UsageError;
};

/// There is a study of this name already.
class StudyExists : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A place that keeps studies by their names. Calls throw DeviceError where it cannot be reached or
/// written, DataError where it is damaged or was made by a newer Gallop, and UsageError where there
/// is no study of this name.
class StudyStore {
 public:
  virtual ~StudyStore() = default;

  /// Throws StudyExists where there is one of this name, UsageError where it cannot be a name:
  /// letters, digits,
  /// '.', '_' and '-', at most 100. `events` are its first; they are kept with it or nothing is.
  virtual void create(const StudySettings& settings, const std::vector<Event>& events = {}) = 0;
  /// To write to it. Throws StudyIsLed where another process does that only one may.
  virtual std::unique_ptr<Storage> open(const std::string& name) = 0;
  /// What is known of it now, whoever writes to it.
  virtual Study read(const std::string& name) = 0;
  /// All, in their order.
  virtual std::vector<std::string> names() = 0;
  /// With all that it knows. Throws StudyIsLed where a process writes to it that only one may.
  virtual void remove(const std::string& name) = 0;
};

/// The store at `postgresql://...`, or in the SQLite file of this path, which create() makes. A
/// server is waited for with `patience`, whose seconds are for looking at studies: to write to one,
/// minutes are taken. Where it is not there, calls throw StudyUnreachable.
std::unique_ptr<StudyStore> open_store(const std::string& where, const Patience& patience = {});

/// Whether this is the address of a database, "postgresql://...".
bool is_database(const std::string& where);

/// Whether this can be the name of a study.
bool is_study_name(const std::string& name);
/// Throws UsageError where it cannot.
void check_study_name(const std::string& name);

}  // namespace gallop::tune
