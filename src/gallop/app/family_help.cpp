#include "gallop/app/family_help.h"

#include <string_view>

#include <fmt/format.h>

#include "gallop/app/terminal.h"

namespace gallop::app {

namespace {

constexpr size_t kKeyColumns = 34;
constexpr size_t kOptionHelpColumn = 2 + kKeyColumns + 1;
}  // namespace

std::vector<config::FieldHelp> options_of(const std::string& section,
                                          const config::Catalog& catalog,
                                          const config::Catalog::Member& member) {
  const auto options = member.make_options(catalog);
  return config::describe_fields([&](config::Visitor& visitor) { options->visit_fields(visitor); },
                                 section);
}

OptionPrinter::OptionPrinter() : columns_(static_cast<size_t>(text_columns())) {}

std::string OptionPrinter::type_of(const config::FieldHelp& line) {
  constexpr size_t kLong = 80;
  constexpr std::string_view kList = "list of ";
  const bool is_list = line.type.starts_with(kList);
  const std::string values = is_list ? line.type.substr(kList.size()) : line.type;
  if (values.size() < kLong) return line.type;
  const auto [place, is_new] = keys_.emplace(values, line.key);
  if (is_new || place->second == line.key) return line.type;
  return fmt::format("{}the values of {}", is_list ? kList : "one of ", place->second);
}

void OptionPrinter::print(const config::FieldHelp& line) {
  if (line.key.size() > kKeyColumns) {
    fmt::print("  {}\n{:{}}", line.key, "", kOptionHelpColumn);
  } else {
    fmt::print("  {:<{}} ", line.key, kKeyColumns);
  }
  const std::string type = fmt::format("[{}; default {}]", type_of(line), line.initial);
  const std::string whole = fmt::format("{}  {}", line.help, type);
  if (line.help.empty() || kOptionHelpColumn + whole.size() <= columns_) {
    fmt::print("{}", wrapped_at(kOptionHelpColumn, line.help.empty() ? type : whole, columns_));
    return;
  }
  fmt::print("{}{:{}}{}", wrapped_at(kOptionHelpColumn, line.help, columns_), "", kOptionHelpColumn,
             wrapped_at(kOptionHelpColumn, type, columns_));
}

void OptionPrinter::print_member(const std::string& section, const config::Catalog& catalog,
                                 const config::Catalog::Member& member) {
  const bool is_ours = member.origin == "Gallop";
  const std::string title = fmt::format("{}: {}  ", section, member.name);
  const std::string help = member.help + (is_ours ? "" : fmt::format(" (by {})", member.origin));
  fmt::print("{}{}", title, wrapped_at(title.size(), help, columns_));
  for (const auto& line : options_of(section, catalog, member)) print(line);
}

void OptionPrinter::print_members(const std::string& section, const config::Catalog& catalog) {
  for (const auto& member : catalog.members()) {
    fmt::print("\n");
    print_member(section, catalog, member);
  }
}

}  // namespace gallop::app
