#include "gallop/tune/chosen.h"

#include <string>

#include "gallop/config/resolve.h"
#include "gallop/tune/study_text.h"

namespace gallop::tune {

namespace {

struct Choice {
  config::Component member;
};

void visit(config::Visitor& visitor, Choice& choice) {
  visitor.field({.name = "name", .help = "name of the method"}, choice.member);
}

config::Component chosen(const config::Catalog& catalog, const char* at_default,
                         const std::string& written) {
  Choice choice{config::Component(catalog, at_default)};
  config::Problems problems;
  config::read_fields(
      config::parse_yaml(written, catalog.family()),
      [&](config::Visitor& visitor) { visit(visitor, choice); }, problems);
  problems.throw_if_any();
  return choice.member;
}

}  // namespace

std::unique_ptr<Sampler> make_sampler(const TuneRegistries& registries,
                                      const StudySettings& settings) {
  const SamplerRegistry& samplers = registries.samplers;
  return samplers.build(chosen(samplers, "tpe", settings.sampler), settings);
}

std::unique_ptr<Pruner> make_pruner(const TuneRegistries& registries,
                                    const StudySettings& settings) {
  const PrunerRegistry& pruners = registries.pruners;
  return pruners.build(chosen(pruners, "none", settings.pruner), settings);
}

void check_chosen(const TuneRegistries& registries, const std::string& key, const config::Node& map,
                  config::Problems& problems) {
  const auto check = [&](const config::Catalog& catalog, const char* at_default) {
    Choice choice{config::Component(catalog, at_default)};
    config::Node file;
    file.at_or_add(key, map.origin) = map;
    config::read_fields(
        file,
        [&](config::Visitor& visitor) {
          visitor.section({.name = key.c_str(), .help = ""}, choice);
        },
        problems);
  };
  if (key == "sampler") {
    check(registries.samplers, "tpe");
  } else {
    check(registries.pruners, "none");
  }
}

bool has_pruner(const StudySettings& settings) {
  const std::string name = name_in(settings.pruner);
  return !name.empty() && name != "none";
}

}  // namespace gallop::tune
