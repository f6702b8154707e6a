#include "gallop/ui/api/query.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::ui::api {

static constexpr size_t kMostNameBytes = 1024;  // Names may contain commas.

std::string Query::text(const std::string& name) const {
  const auto found = values_.find(name);
  return found != values_.end() ? found->second : std::string();
}

std::string Query::needed(const std::string& name) const {
  std::string value = text(name);
  if (value.empty()) throw UsageError(fmt::format("'{}' is required", name));
  return value;
}

bool Query::flag(const std::string& name) const {
  const std::string value = text(name);
  if (value.empty() || value == "0") return false;
  if (value == "1") return true;
  throw UsageError(fmt::format("'{}' must be 1 or 0, not '{}'", name, printable(value)));
}

std::optional<double> Query::number(const std::string& name) const {
  const std::string value = text(name);
  if (value.empty()) return std::nullopt;
  const auto number = parse_number<double>(value);
  if (number) return number;
  throw UsageError(fmt::format("'{}' must be a number, not '{}'", name, printable(value)));
}

int64_t Query::count(const std::string& name, int64_t least, int64_t most,
                     int64_t otherwise) const {
  const std::string value = text(name);
  if (value.empty()) return otherwise;
  const auto number = parse_number<int64_t>(value);
  if (number && *number >= least && *number <= most) return *number;
  throw UsageError(fmt::format("'{}' must be an integer from {} to {}, not '{}'", name, least, most,
                               printable(value)));
}

std::vector<std::string> Query::names(
    const std::string& name, const std::function<bool(const std::string&)>& is_known) const {
  std::vector<std::string> names;
  std::string rest = text(name);
  while (!rest.empty()) {
    // The longest known name; otherwise everything up to the next comma.
    size_t end = rest.size() <= kMostNameBytes ? rest.size() : rest.rfind(',', kMostNameBytes);
    while (end != std::string::npos && !is_known(rest.substr(0, end))) {
      end = end > 0 ? rest.rfind(',', end - 1) : std::string::npos;
    }
    if (end == std::string::npos) end = std::min(rest.find(','), rest.size());
    if (end > 0) names.push_back(rest.substr(0, end));
    rest.erase(0, std::min(end + 1, rest.size()));
  }
  return names;
}

}  // namespace gallop::ui::api
