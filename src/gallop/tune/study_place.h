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
///     sweep.yaml       what it was made from
///     study.db         all that is known of it, or
///     store            the database where that is, "postgresql://..."
///     runs/0007        the run of trial 7, or what its command keeps
///     output/0007.log  what it printed
struct StudyPlace {
  fs::path folder;
  std::string name;
  std::string store;  ///< As open_store() takes it.

  /// That of a folder, which need not be there yet.
  static StudyPlace at(const fs::path& folder);
  /// Where a new study of this folder is kept; empty: in a file there.
  static void set_store(const fs::path& folder, const std::string& store);

  std::unique_ptr<StudyStore> open_store(const Patience& patience = {}) const {
    return tune::open_store(store, patience);
  }
  /// What is known of it now. Asks whoever leads it where that is a process on another host. Waits
  /// at most `patience_seconds`, about, for those who are asked; 0: as long as one who takes part.
  Study read(double patience_seconds = 0) const;
  /// Where a process that leads it on this or another host can be found.
  fs::path address_file() const;
  bool is_in_database() const { return is_database(store); }
  /// To take part in it: by itself, or by the process that leads it. One that does not answer, as
  /// it takes part for a moment, is waited for for seconds; throws StudyUnreachable then. A
  /// database is waited for as `goes_on` says (Patience).
  std::unique_ptr<StudyClient> open_study_client(const TuneRegistries& registries,
                                                 const std::function<bool()>& goes_on = {}) const;
  /// To take part in a study that another process leads. Waits for one so long, now and in each
  /// call; `looking` is called whenever one is looked for. Throws StudyUnreachable.
  std::unique_ptr<StudyClient> open_remote(const Patience& patience,
                                           const std::function<void()>& looking = {}) const;
  /// To lead it; nothing where another process does, or it is not there.
  std::unique_ptr<Storage> open_unless_led() const;
  bool is_led() const;

 private:
  std::string leader_elsewhere() const;
  bool is_answered(double patience_seconds) const;
};

/// Whether a folder is that of a study.
bool is_study(const fs::path& folder);
/// Also true of a folder that may not be read, which cannot be told.
bool may_be_study(const fs::path& folder);

/// The names of the studies in a folder, in order, with those of folders that may not be read; none
/// where it cannot be listed.
std::vector<std::string> study_names(const fs::path& studies);

/// A study by its folder or by its name under `studies`. Throws UsageError with the names that
/// there are.
StudyPlace find_study(const fs::path& studies, const std::string& name);

}  // namespace gallop::tune
