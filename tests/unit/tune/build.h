#pragma once

#include <memory>
#include <string>

#include "gallop/base/error.h"
#include "gallop/config/resolve.h"
#include "gallop/tune/pruner.h"
#include "gallop/tune/sampler.h"

namespace gallop::tune {

/// A section of a study's file, such as "{name: median, startup_trials: 3}".
template <typename Registry>
config::Component component(const Registry& registry, const char* usual, const std::string& yaml) {
  config::Component component(registry, usual);
  config::Problems problems;
  config::read_fields(
      config::parse_yaml(yaml, "study"),
      [&](config::Visitor& visitor) {
        visitor.field({.name = "name", .help = "of a member"}, component);
      },
      problems);
  problems.throw_if_any();
  return component;
}

inline std::unique_ptr<Pruner> build_pruner(const std::string& yaml,
                                            const StudySettings& settings) {
  static const PrunerRegistry registry = built_in_pruners();
  return registry.build(component(registry, "none", yaml), settings);
}

inline std::unique_ptr<Sampler> build_sampler(const std::string& yaml,
                                              const StudySettings& settings) {
  static const SamplerRegistry registry = built_in_samplers();
  return registry.build(component(registry, "random", yaml), settings);
}

/// What is said against what `build` builds; empty where it is built.
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
