#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "gallop/track/log.h"

namespace gallop::track {

/// The kind of the record that begins a session: earlier records of later steps are superseded.
inline constexpr const char* kSession = "session";

/// Number of hexadecimal digits of the checksum at the end of a line, after a tab.
inline constexpr size_t kChecksumDigits = 16;

/// Serializes a record as a line with its newline.
std::string line_of(const Record& record);

/// Parses a line without its newline; nothing if it is damaged.
std::optional<Record> record_of(std::string_view line);

}  // namespace gallop::track
