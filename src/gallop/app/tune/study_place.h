#pragma once

#include <functional>
#include <memory>
#include <string>

#include "gallop/base/file.h"
#include "gallop/tune/store.h"
#include "gallop/tune/sweep.h"
#include "gallop/tune/tuner.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace gallop::app {

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
  std::string store;  ///< As tune::open_store() takes it.

  std::unique_ptr<tune::StudyStore> open_store() const { return tune::open_store(store); }
  /// What is known of it now. Asks whoever leads it where that is a process on another host.
  tune::Study read() const;
  /// Where a process that leads it on this or another host can be found.
  fs::path address_file() const;
  bool is_in_database() const;
  /// To take part in it: by itself, or by the process that leads it.
  std::unique_ptr<tune::Broker> open_broker() const;
  /// To take part in a study that another process leads. Waits for one at most so long, now and in
  /// each call; `looking` is called whenever one is looked for.
  std::unique_ptr<tune::Broker> open_remote(double patience_seconds,
                                            const std::function<void()>& looking = {}) const;
  /// To lead it; nothing where another process does, or it is not there.
  std::unique_ptr<tune::Storage> open_unless_led() const;
  bool is_led() const;

 private:
  std::string leader_elsewhere() const;
};

/// Options of a command that is about one study.
struct WhichStudy {
  std::string study;
  std::string studies = "studies";

  void add_to(CLI::App& parser);
  StudyPlace find() const;
};

/// What is given on the command line to make a study of a sweep.
struct NewStudy {
  std::string sweep_file;
  fs::path studies = "studies";
  std::string name{};       ///< Empty: what the sweep says, or the name of its file.
  std::string store{};      ///< A database; empty: a file in the study's folder.
  std::string earlier{};    ///< A study whose trials a new one takes over, by name or folder.
  bool may_be_led = false;  ///< Another process may lead it already; nothing is changed then.
};

/// Reads the sweep and checks it, also what its trials are to run. Returns its text. Throws
/// UsageError.
std::string read_sweep(const NewStudy& wanted, tune::Sweep& sweep);

/// Reads the sweep and makes the study, or goes on with the one of this name; more trials than were
/// wanted are added then. Several processes may do so at once. Throws UsageError where a study of
/// this name searches something else.
StudyPlace make_study(const NewStudy& wanted, tune::Sweep& sweep);

/// Throws UsageError where a study that is there searches something else than is `wanted`.
void require_same(const StudyPlace& place, const tune::StudySettings& there,
                  const tune::StudySettings& wanted);

/// A study by its folder or by its name under `studies`. Throws UsageError with the names that
/// there are.
StudyPlace find_study(const fs::path& studies, const std::string& name);

}  // namespace gallop::app
