#include "gallop/ui/http/message.h"

#include <algorithm>
#include <cctype>

namespace gallop::ui::http {

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return result;
}

const std::string* Request::header(std::string_view name) const {
  const std::string* found = nullptr;
  for (const auto& [key, value] : headers) {
    if (key != name) continue;
    if (found != nullptr) return nullptr;
    found = &value;
  }
  return found;
}

}  // namespace gallop::ui::http
