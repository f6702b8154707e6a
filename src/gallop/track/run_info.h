#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/hardware.h"

namespace gallop::track {

/// One file that a run learns from.
struct DataFile {
  std::string path;
  int64_t bytes = 0;
  std::string checksum{};  ///< XXH3-128, where it was computed.
};

/// What made a run: code, machine, command and data. Stored as run.json.
struct RunInfo {
  std::string version;
  std::string commit;  ///< Of the program's source; empty where unknown.
  Hardware hardware;
  std::vector<std::string> command_line;
  int processes = 1;  ///< That trained together.
  std::vector<DataFile> data_files;
  std::string started;  ///< UTC, "2026-03-01T12:00:00Z".
};

/// The present time in UTC, as `started` has it.
std::string utc_now();

/// The arguments with the values of options whose name speaks of a password, a token, a secret or a
/// key replaced by "***", as run folders are shared.
std::vector<std::string> without_secrets(const std::vector<std::string>& command_line);

/// As JSON; secrets are left out.
std::string to_json(const RunInfo& info);

/// The inverse. Throws DataError, which begins with `file_name`.
RunInfo run_info_from_json(const std::string& text, const std::string& file_name);

}  // namespace gallop::track
