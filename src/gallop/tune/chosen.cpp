#include "gallop/tune/chosen.h"

#include <string>

#include "gallop/config/resolve.h"

namespace gallop::tune {

namespace {

config::Component chosen(const config::Catalog& catalog, const char* at_default,
                         const std::string& written) {
  config::Component chosen(catalog, at_default);
  config::Problems problems;
  config::read_fields(
      config::parse_yaml(written, catalog.family()),
      [&](config::Visitor& visitor) {
        visitor.field({.name = "name", .help = "which one"}, chosen);
      },
      problems);
  problems.throw_if_any();
  return chosen;
}

}  // namespace

std::unique_ptr<Sampler> make_sampler(const StudySettings& settings) {
  const SamplerRegistry registry = built_in_samplers();
  return registry.build(chosen(registry, "tpe", settings.sampler), settings);
}

std::unique_ptr<Pruner> make_pruner(const StudySettings& settings) {
  const PrunerRegistry registry = built_in_pruners();
  return registry.build(chosen(registry, "none", settings.pruner), settings);
}

bool has_pruner(const StudySettings& settings) {
  return chosen(built_in_pruners(), "none", settings.pruner).name() != "none";
}

}  // namespace gallop::tune
