#pragma once

#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "gallop/base/file.h"

namespace gallop::track {

/// Replaces a JSON file in a run's folder. Invalid UTF-8 becomes U+FFFD. Throws DeviceError.
void write_json_file(const fs::path& file, const nlohmann::ordered_json& json);

/// Parses a JSON file and passes it to `take`, which returns an error message, or an empty text.
/// False if the file does not exist. Throws DataError with the file's name if it is invalid JSON,
/// lacks something that `take` requires, or `take` returns an error.
bool read_json_file(const fs::path& file,
                    const std::function<std::string(const nlohmann::ordered_json&)>& take);

/// Whether this is a valid name of an image stored beside such a file, "00.png". Only such files
/// may be opened.
bool is_image_name(const std::string& name);

}  // namespace gallop::track
