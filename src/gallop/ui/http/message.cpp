#include "gallop/ui/http/message.h"

namespace gallop::ui::http {

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
