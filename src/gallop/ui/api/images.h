#pragma once

#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/ui/http/message.h"

namespace gallop::ui::api {

/// One of the images that a list in their folder names. Throws Refusal (404) for another name,
/// DataError where it cannot be read.
http::Response image_response(const fs::path& folder, const std::vector<std::string>& listed,
                              const std::string& wanted, const char* type = "image/png");

}  // namespace gallop::ui::api
