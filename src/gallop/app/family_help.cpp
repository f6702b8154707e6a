#include "gallop/app/family_help.h"

#include <fmt/format.h>

namespace gallop::app {

std::vector<config::FieldHelp> options_of(const std::string& section,
                                          const config::Catalog& catalog,
                                          const config::Catalog::Member& member) {
  const auto options = member.make_options(catalog);
  return config::describe_fields([&](config::Visitor& visitor) { options->visit_fields(visitor); },
                                 section);
}

void print_option(const config::FieldHelp& line) {
  fmt::print("  {:<34} {}  [{}; default {}]\n", line.key, line.help, line.type, line.initial);
}

void print_member(const std::string& section, const config::Catalog& catalog,
                  const config::Catalog::Member& member) {
  const bool is_ours = member.origin == "Gallop";
  fmt::print("{}: {}  {}{}\n", section, member.name, member.help,
             is_ours ? "" : fmt::format(" (by {})", member.origin));
  for (const auto& line : options_of(section, catalog, member)) print_option(line);
}

void print_members(const std::string& section, const config::Catalog& catalog) {
  for (const auto& member : catalog.members()) {
    fmt::print("\n");
    print_member(section, catalog, member);
  }
}

}  // namespace gallop::app
