#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "gallop/track/log.h"

namespace gallop::track {

/// The kind of the record that begins a session: what was written of steps after its own does not
/// count any more.
inline constexpr const char* kSession = "session";

/// Hexadecimal digits of the checksum that a line of a log ends with, behind a tab.
inline constexpr size_t kChecksumDigits = 16;

/// A record as a line of a log's file, with its newline.
std::string line_of(const Record& record);

/// The record of a line without its newline; nothing where the line is damaged.
std::optional<Record> record_of(std::string_view line);

}  // namespace gallop::track
