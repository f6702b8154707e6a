#pragma once

#include <functional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "gallop/base/file.h"

namespace gallop::track {

/// Replaces a file of a run's folder. What is no UTF-8 in texts is written as U+FFFD. Throws
/// DeviceError.
void write_json_file(const fs::path& file, const nlohmann::ordered_json& json);

/// Gives such a file to `take`, which says what is wrong with it, or nothing. False where there is
/// no file. Throws DataError that names it where it is no JSON, where `take` does not find what it
/// asks for, and with what it says.
bool read_json_file(const fs::path& file,
                    const std::function<std::string(const nlohmann::ordered_json&)>& take);

/// Whether it is the name of an image that a run keeps beside such a file: "00.png". No other is
/// to be opened.
bool is_image_name(const std::string& name);

}  // namespace gallop::track
