#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/tune/registries.h"
#include "gallop/tune/remote/remote_study_client.h"
#include "gallop/tune/store.h"
#include "gallop/tune/study_client.h"

namespace gallop::tune {

/// A study and its folder:
///
///     sweep.yaml       its definition
///     study.db         its state, or
///     store            the address of the database with its state, "postgresql://..."
///     runs/0007        the run of trial 7, or the files of its command
///     output/0007.log  the output of trial 7
struct StudyPlace {
  fs::path folder;
  std::string name;
  std::string store;  ///< See open_store().

  /// The place of a folder, which may not exist yet.
  static StudyPlace at(const fs::path& folder);
  /// Sets where a new study in this folder is stored; empty: in a file there.
  static void set_store(const fs::path& folder, const std::string& store);

  std::unique_ptr<StudyStore> open_store(const Patience& patience = {}) const {
    return tune::open_store(store, patience);
  }
  /// The current state of the study, from its leader if that is a process on another host. Waits
  /// for about `patience_seconds`; 0: as long as a worker.
  Study read(double patience_seconds = 0) const;
  /// The file with the address of its coordinator, on this or another host.
  fs::path address_file() const;
  bool is_in_database() const { return is_database(store); }
  /// A client of the study: direct, or via the process that leads it. Waits some seconds for a
  /// leader that does not answer, as it may hold the lock only for a moment; then throws
  /// StudyUnreachable. `goes_on` limits the wait for a database (Patience).
  std::unique_ptr<StudyClient> open_study_client(const TuneRegistries& registries,
                                                 const std::function<bool()>& goes_on = {}) const;
  /// A client of a study that another process leads. `patience` limits the wait for a leader, now
  /// and in each call; `looking` is called whenever a leader is looked for. Throws
  /// StudyUnreachable.
  std::unique_ptr<StudyClient> open_remote(const Patience& patience,
                                           const std::function<void()>& looking = {}) const;
  /// Opens the study for writing; null if another process leads it, or it does not exist.
  std::unique_ptr<Storage> open_unless_led() const;
  bool is_led() const;

 private:
  std::string leader_elsewhere() const;
  bool is_answered(double patience_seconds) const;
};

/// Whether a folder contains a study.
bool is_study(const fs::path& folder);
/// Whether a folder contains a study or is unreadable, so that this cannot be determined.
bool may_be_study(const fs::path& folder);

/// The names of the studies in a folder, sorted, including unreadable folders; empty if it cannot
/// be listed.
std::vector<std::string> study_names(const fs::path& studies);

/// Finds a study by its folder or by its name under `studies`. Throws UsageError with the names of
/// the existing studies.
StudyPlace find_study(const fs::path& studies, const std::string& name);

}  // namespace gallop::tune
