#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/base/error.h"
#include "gallop/tune/patience.h"
#include "gallop/tune/storage.h"

namespace gallop::tune {

/// Another process has exclusive write access to a study.
class StudyIsLed : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A study of this name already exists.
class StudyExists : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A collection of studies by name. Calls throw DeviceError if it cannot be reached or written,
/// DataError if it is damaged or has a newer format, and UsageError if there is no study of this
/// name.
class StudyStore {
 public:
  virtual ~StudyStore() = default;

  /// Creates a study with its first events, atomically. Throws StudyExists if there already is one
  /// of this name, UsageError for an invalid name: letters, digits, '.', '_' and '-', at most 100.
  virtual void create(const StudySettings& settings, const std::vector<Event>& events = {}) = 0;
  /// Opens a study for writing. Throws StudyIsLed if another process has exclusive write access.
  virtual std::unique_ptr<Storage> open(const std::string& name) = 0;
  /// The current state of a study.
  virtual Study read(const std::string& name) = 0;
  /// The names of all studies, sorted.
  virtual std::vector<std::string> names() = 0;
  /// Deletes a study with its history. Throws StudyIsLed if a process has exclusive write access to
  /// it.
  virtual void remove(const std::string& name) = 0;
};

/// The store at `postgresql://...`, or in an SQLite file at this path, which create() creates.
/// `patience` limits the wait for a server when reading studies; writing waits for minutes. Calls
/// then throw StudyUnreachable.
std::unique_ptr<StudyStore> open_store(const std::string& where, const Patience& patience = {});

/// Whether this is a database address, "postgresql://...".
bool is_database(const std::string& where);

/// Whether this is a valid study name.
bool is_study_name(const std::string& name);
/// Throws UsageError for an invalid study name.
void check_study_name(const std::string& name);

}  // namespace gallop::tune
