#pragma once

#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/ui/http/message.h"

namespace gallop::ui::api {

/// An image that is listed in its folder. Throws Refusal (404) for any other name, DataError if it
/// cannot be read.
http::Response image_response(const fs::path& folder, const std::vector<std::string>& listed,
                              const std::string& wanted, const char* type = "image/png");

}  // namespace gallop::ui::api
