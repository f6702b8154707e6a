#pragma once

#include <string>

#include "gallop/app/command.h"
#include "gallop/tune/study_place.h"
#include "gallop/tune/sweep.h"

namespace gallop::app {

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
std::string read_sweep(const Registries& registries, const NewStudy& wanted, tune::Sweep& sweep);

/// Makes the study of a sweep that was read, or goes on with the one of this name; more trials than
/// were wanted are added then, and points to begin with that no trial has had. Several processes
/// may do so at once. Throws UsageError where a study of this name searches something else, or is
/// to take over trials now.
tune::StudyPlace make_study(const tune::TuneRegistries& registries, const NewStudy& wanted,
                            const tune::Sweep& sweep, const std::string& text);

/// Throws UsageError where a study that is there searches something else than is `wanted`.
void require_same(const tune::StudyPlace& place, const tune::StudySettings& there,
                  const tune::StudySettings& wanted);

}  // namespace gallop::app
