#include "gallop/ui/api/images.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/ui/api/answer.h"

namespace gallop::ui::api {

http::Response image_response(const fs::path& folder, const std::vector<std::string>& listed,
                              const std::string& wanted) {
  const auto found = std::find(listed.begin(), listed.end(), wanted);
  if (found == listed.end()) {
    throw Refusal(404, fmt::format("there is no image '{}'", printable(wanted)));
  }
  return {.type = "image/png", .body = read_file(folder / *found)};
}

}  // namespace gallop::ui::api
