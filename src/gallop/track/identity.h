#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/track/code_state.h"
#include "gallop/track/content.h"

namespace gallop::track {

/// A file or folder of data, and what it holds.
struct DataIdentity {
  std::string path;
  int64_t files = 0, bytes = 0;
  std::string checksum;  ///< Content::checksum(); empty where there was too much to read.
};

/// What a run was made of: program, plug-ins, code and data, so that it can be told later whether
/// they have changed.
struct Identity {
  int64_t step = 0;     ///< From which on it holds.
  std::string version;  ///< Of Gallop.
  std::string program;  ///< XXH3-128 of its file.
  std::vector<DataIdentity> plugins{};
  std::optional<CodeState> code;
  std::vector<DataIdentity> data;
};

/// What of it to find out, and where.
struct IdentityQuestion {
  int64_t step = 0;
  std::string version;
  fs::path folder = ".";  ///< In which the repository of the code is looked for.
  std::vector<std::string> data;
  std::vector<std::string> plugins{};  ///< Files.
  fs::path cache;                      ///< See ContentReader.
  fs::path listings;  ///< Gets the listing of all that is read, CHECKSUM.txt; empty: nothing does.
  ReadLimits limits;
};

/// The present state; throws DataError where data cannot be read, DeviceError where a listing
/// cannot be written.
Identity read_identity(const IdentityQuestion& question);

/// The same for one file or folder of data alone, whatever else the question names.
DataIdentity read_data_identity(const std::string& path, const IdentityQuestion& question);

/// Where the runs of a folder share the listings of their data.
fs::path listings_of(const fs::path& runs);

/// All of a run (RUN/identity.json), the first first; patches are read from their files. None where
/// it has no such file. Throws DataError where one is damaged.
std::vector<Identity> read_identities(const fs::path& run);

/// Adds one to those of a run, unless it is the last but for its step. Throws DeviceError.
void add_identity(const fs::path& run, const Identity& identity);

/// Finds out and adds to a run while that trains, in a thread that gives way to all others.
class IdentityRecorder {
 public:
  IdentityRecorder(fs::path run, IdentityQuestion question);
  /// Gives up what is not done.
  ~IdentityRecorder();

  /// Waits until it is done. Returns why it could not be, or nothing.
  std::string finish();

 private:
  void record(const IdentityQuestion& question);

  fs::path run_;
  std::string trouble_;
  std::atomic<bool> is_stopped_ = false;
  std::thread thread_;
};

}  // namespace gallop::track
