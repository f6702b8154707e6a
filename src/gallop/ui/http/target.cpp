#include "gallop/ui/http/target.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::ui::http {

namespace {

constexpr size_t kMostValueBytes = size_t{8} << 10;

std::optional<int> digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return std::nullopt;
}

bool is_control(char letter) { return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f; }

bool may_stand_as_it_is(char letter) {
  return letter > 0x20 && letter < 0x7f && letter != '#' && letter != '\\';
}

std::string decoded(std::string_view text, bool plus_is_blank) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_blank) {
      result += ' ';
    } else if (text[i] != '%') {
      result += text[i];
    } else {
      const auto high = i + 2 < text.size() ? digit_of(text[i + 1]) : std::nullopt;
      const auto low = high ? digit_of(text[i + 2]) : std::nullopt;
      if (!low) throw UsageError("the address has a '%' without two hexadecimal digits");
      result += static_cast<char>(16 * *high + *low);
      i += 2;
    }
  }
  return result;
}

std::string without_controls(std::string text) {
  if (std::any_of(text.begin(), text.end(), is_control)) {
    throw UsageError("the address has a control character");
  }
  return text;
}

// Files are looked up in a table, so that dot segments are never legitimate.
void check_path(const std::string& path) {
  const std::string closed = path + "/";
  if (path.find('\\') != std::string::npos || closed.find("/./") != std::string::npos ||
      closed.find("/../") != std::string::npos) {
    throw UsageError("the address has a dot segment");
  }
}

void add_value(std::string_view pair, std::map<std::string, std::string>& query) {
  const size_t equals = pair.find('=');
  const std::string name = without_controls(decoded(pair.substr(0, equals), true));
  std::string value;
  // A run's folder may have any name, which the page requests.
  if (equals != std::string_view::npos) value = decoded(pair.substr(equals + 1), true);
  if (value.find('\0') != std::string::npos) throw UsageError("the address has a zero byte");
  if (value.size() > kMostValueBytes) {
    throw UsageError(
        fmt::format("'{}' is longer than {}", printable(name), format_bytes(kMostValueBytes)));
  }
  if (!query.emplace(name, std::move(value)).second) {
    throw UsageError(fmt::format("'{}' is given twice", printable(name)));
  }
}

}  // namespace

Target parse_target(std::string_view text) {
  if (!text.starts_with('/') || !std::all_of(text.begin(), text.end(), may_stand_as_it_is)) {
    throw UsageError("the address is not a path of this server");
  }
  const size_t mark = std::min(text.find('?'), text.size());
  Target target;
  target.path = without_controls(decoded(text.substr(0, mark), /*plus_is_blank=*/false));
  check_path(target.path);
  std::string_view rest = text.substr(std::min(mark + 1, text.size()));
  while (!rest.empty()) {
    const size_t end = std::min(rest.find('&'), rest.size());
    if (end > 0) add_value(rest.substr(0, end), target.query);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return target;
}

}  // namespace gallop::ui::http
