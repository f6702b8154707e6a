#include "gallop/tune/chosen.h"

#include <string>

#include "gallop/config/resolve.h"

namespace gallop::tune {

namespace {

template <typename T>
std::unique_ptr<T> make(const config::Registry<T, const StudySettings&>& registry,
                        const char* at_default, const std::string& written,
                        const StudySettings& settings) {
  config::Component chosen(registry, at_default);
  config::Problems problems;
  config::read_fields(
      config::parse_yaml(written, registry.family()),
      [&](config::Visitor& visitor) {
        visitor.field({.name = "name", .help = "which one"}, chosen);
      },
      problems);
  problems.throw_if_any();
  return registry.build(chosen, settings);
}

}  // namespace

std::unique_ptr<Sampler> make_sampler(const StudySettings& settings) {
  return make(built_in_samplers(), "tpe", settings.sampler, settings);
}

std::unique_ptr<Pruner> make_pruner(const StudySettings& settings) {
  return make(built_in_pruners(), "none", settings.pruner, settings);
}

}  // namespace gallop::tune
