#include "gallop/app/help_formatter.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/text.h"

namespace gallop::app {

namespace {

// "a,b" as {"a", "b"}.
std::vector<std::string> split_names(std::string_view text) {
  std::vector<std::string> names;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    names.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

// The names of a validator "{a,b}"; empty for others.
std::vector<std::string> names_of(std::string_view validator) {
  if (!validator.starts_with('{') || !validator.ends_with('}')) return {};
  return split_names(validator.substr(1, validator.size() - 2));
}

// A type, and the description of a validator: "INT" and "INT in [1 - 8]".
struct TypeName {
  std::string type, validator;
};

TypeName type_name_of(const CLI::Option& option) {
  const std::string name = option.get_type_name();
  const size_t colon = name.find(':');
  if (colon == std::string::npos) return {name, {}};
  return {name.substr(0, colon), name.substr(colon + 1)};
}

std::string names_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> names;
  for (const CLI::Option* option : options) names.push_back(option->get_name());
  std::sort(names.begin(), names.end());  // The set is in the order of addresses.
  return join_names(names);
}

}  // namespace

std::string allowed_values(const std::string& validator) {
  if (validator == "NONNEGATIVE") return "at least 0";
  if (validator == "POSITIVE") return "more than 0";
  if (const auto names = names_of(validator); !names.empty()) return join_names(names);
  const size_t begin = validator.find(" in [");
  if (begin == std::string::npos || !validator.ends_with(']')) return {};
  std::string range = validator.substr(begin + 5, validator.size() - begin - 6);
  const size_t dash = range.find(" - ");
  return dash == std::string::npos ? std::string() : range.replace(dash, 3, " to ");
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  if (!option->get_option_text().empty()) return " " + option->get_option_text();
  if (option->get_type_size() == 0) return {};
  const std::string type = type_name_of(*option).type;
  std::string text = type.empty() ? std::string() : " " + type;
  if (option->get_expected_max() == CLI::detail::expected_max_vector_size) text += " ...";
  return text;
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  const std::string& description = option->get_description();
  std::vector<std::string> facts;
  if (option->get_required()) facts.emplace_back("required");
  const std::string validator = type_name_of(*option).validator;
  const auto names = names_of(validator);
  const bool lists_names =
      !names.empty() && std::all_of(names.begin(), names.end(), [&](const std::string& name) {
        return description.find(name) != std::string::npos;
      });
  if (!lists_names) facts.push_back(allowed_values(validator));
  if (const auto& needs = option->get_needs(); !needs.empty()) {
    facts.push_back("only with " + names_of(needs));
  }
  if (const auto& excludes = option->get_excludes(); !excludes.empty()) {
    facts.push_back("not with " + names_of(excludes));
  }
  facts.erase(std::remove(facts.begin(), facts.end(), std::string()), facts.end());
  return facts.empty() ? description : fmt::format("{} ({})", description, fmt::join(facts, "; "));
}

}  // namespace gallop::app
