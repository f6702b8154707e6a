#pragma once

#include <map>
#include <string>
#include <string_view>

namespace gallop::ui::http {

/// The target of a request, "/api/runs?limit=20", in parts.
struct Target {
  std::string path;
  std::map<std::string, std::string> query;
};

/// Percent-decodes each part exactly once; '+' in the query is a blank. Throws UsageError where it
/// does not begin with '/', has letters that must be escaped, '#', backslashes, control characters
/// (also escaped ones, unless in a value, which may have all but zero bytes), dots as a folder's
/// name, a name twice or a value above 8 KiB.
Target parse_target(std::string_view text);

}  // namespace gallop::ui::http
