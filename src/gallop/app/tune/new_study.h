#pragma once

#include <string>

#include "gallop/app/command.h"
#include "gallop/tune/study_place.h"
#include "gallop/tune/sweep.h"

namespace gallop::app {

/// The arguments for creating a study from a sweep.
struct NewStudy {
  std::string sweep_file;
  fs::path studies = "studies";
  std::string name{};       ///< Empty: from the sweep, or the name of its file.
  std::string store{};      ///< A database address; empty: a file in the study's folder.
  std::string earlier{};    ///< The study to warm-start from, by name or folder.
  bool may_be_led = false;  ///< If another process already leads it, it is not changed.
};

/// Reads and checks the sweep, including the program of its trials. Returns its text. Throws
/// UsageError.
std::string read_sweep(const Registries& registries, const NewStudy& wanted, tune::Sweep& sweep);

/// Creates the study of a parsed sweep, or resumes an existing one of this name, to which
/// additional trials and untried start points are added. Several processes may call this at once.
/// Throws UsageError if an existing study differs, or cannot be warm-started any more.
tune::StudyPlace make_study(const tune::TuneRegistries& registries, const NewStudy& wanted,
                            const tune::Sweep& sweep, const std::string& text);

/// Throws UsageError if an existing study differs from `wanted`.
void require_same(const tune::StudyPlace& place, const tune::StudySettings& there,
                  const tune::StudySettings& wanted);

}  // namespace gallop::app
