#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/hardware.h"

namespace gallop::track {

/// A data file of a run.
struct DataFile {
  std::string path;
  int64_t bytes = 0;
  std::string checksum{};  ///< XXH3-128, if computed.
};

/// The provenance of a run: code, machine, command and data. Stored as run.json.
struct RunInfo {
  std::string version;
  std::string commit;  ///< Of the program's source; empty if unknown.
  Hardware hardware;
  std::vector<std::string> command_line;
  int processes = 1;  ///< Number of training processes.
  std::vector<DataFile> data_files;
  std::string started;  ///< UTC, "2026-03-01T12:00:00Z".
};

/// The current time in UTC, in the format of `started`.
std::string utc_now();

/// Replaces the values of options whose names contain password, token, secret or key by "***", as
/// run folders are shared.
std::vector<std::string> without_secrets(const std::vector<std::string>& command_line);

/// Serializes as JSON, without secrets.
std::string to_json(const RunInfo& info);

/// Parses JSON. Throws DataError, prefixed with `file_name`.
RunInfo run_info_from_json(const std::string& text, const std::string& file_name);

}  // namespace gallop::track
