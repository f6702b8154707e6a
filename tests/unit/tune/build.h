#pragma once

#include <memory>
#include <string>

#include "gallop/base/error.h"
#include "gallop/tune/chosen.h"

namespace gallop::tune {

/// A pruner by what a study's file says, such as "{name: median, startup_trials: 3}".
inline std::unique_ptr<Pruner> build_pruner(const std::string& written, StudySettings settings) {
  settings.pruner = written;
  return make_pruner(TuneRegistries(), settings);
}

inline std::unique_ptr<Sampler> build_sampler(const std::string& written, StudySettings settings) {
  settings.sampler = written;
  return make_sampler(TuneRegistries(), settings);
}

/// The error of `build`; empty if it succeeds.
template <typename Build>
std::string refusal(const Build& build) {
  try {
    build();
    return {};
  } catch (const UsageError& error) {
    return error.what();
  }
}

}  // namespace gallop::tune
