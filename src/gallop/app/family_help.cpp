#include "gallop/app/family_help.h"

#include <fmt/format.h>

#include "gallop/config/resolve.h"

namespace gallop::app {

void print_members(const std::string& section, const config::Catalog& catalog) {
  for (const auto& member : catalog.members()) {
    fmt::print("\n{}: {}  {}\n", section, member.name, member.help);
    const auto options = member.make_options(catalog);
    const auto visit_fields = [&](config::Visitor& visitor) { options->visit_fields(visitor); };
    for (const auto& line : config::describe_fields(visit_fields, section)) {
      fmt::print("  {:<34} {}  [{}; default {}]\n", line.key, line.help, line.type, line.initial);
    }
  }
}

}  // namespace gallop::app
