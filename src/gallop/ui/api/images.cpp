#include "gallop/ui/api/images.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/ui/api/answer.h"

namespace gallop::ui::api {

namespace {

bool is_link(const fs::path& path) {
  std::error_code error;
  return fs::is_symlink(fs::symlink_status(path, error));
}

}  // namespace

http::Response image_response(const fs::path& folder, const std::vector<std::string>& listed,
                              const std::string& wanted, const char* type) {
  const auto found = std::find(listed.begin(), listed.end(), wanted);
  // A run may come from another user and contain links to files that only this user can read.
  if (found == listed.end() || is_link(folder) || is_link(folder / *found)) {
    throw Refusal(404, fmt::format("image '{}' does not exist", printable(wanted)));
  }
  return {.type = type, .body = read_file(folder / *found)};
}

}  // namespace gallop::ui::api
