#pragma once

#include <map>
#include <string>
#include <string_view>

namespace gallop::ui::http {

/// The parts of a request target, "/api/runs?limit=20".
struct Target {
  std::string path;
  std::map<std::string, std::string> query;
};

/// Percent-decodes each part exactly once; '+' in the query is a space. Throws UsageError unless it
/// begins with '/', or if it has characters that must be escaped, '#', backslashes, control
/// characters (even escaped; values may have all but zero bytes), dot segments, a duplicate name or
/// a value above 8 KiB.
Target parse_target(std::string_view text);

}  // namespace gallop::ui::http
