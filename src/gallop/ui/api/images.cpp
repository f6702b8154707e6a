#include "gallop/ui/api/images.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/track/links.h"
#include "gallop/ui/api/answer.h"

namespace gallop::ui::api {

http::Response image_response(const fs::path& folder, const std::vector<std::string>& listed,
                              const std::string& wanted, const char* type) {
  const auto found = std::find(listed.begin(), listed.end(), wanted);
  if (found == listed.end() || track::is_link(folder) || track::is_link(folder / *found)) {
    throw Refusal(404, fmt::format("image '{}' does not exist", printable(wanted)));
  }
  return {.type = type, .body = read_file(folder / *found)};
}

}  // namespace gallop::ui::api
