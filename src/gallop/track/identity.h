#pragma once

#include <atomic>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/track/code_state.h"
#include "gallop/track/content.h"

namespace gallop::track {

/// The identity of a file or folder of data.
struct DataIdentity {
  std::string path;
  int64_t files = 0, bytes = 0;
  std::string checksum;   ///< Content::checksum(); empty if there was too much to read.
  bool is_named = false;  ///< NamedFiles, not all in the folder `path`.
};

/// The identity of a run's inputs (program, plug-ins, code and data), to detect later changes.
struct Identity {
  int64_t step = 0;     ///< First step for which it is valid.
  std::string version;  ///< Of Gallop.
  std::string program;  ///< XXH3-128 of its file.
  std::vector<DataIdentity> plugins{};
  std::vector<DataIdentity> models{};  ///< Files that the model was built from.
  std::optional<CodeState> code;
  std::vector<DataIdentity> data;
};

/// What to identify.
struct IdentityQuestion {
  int64_t step = 0;
  std::string version;
  fs::path folder = ".";  ///< Folder in which the code repository is looked up.
  std::vector<std::string> data;
  std::vector<NamedFiles> named_data{};
  std::vector<std::string> plugins{};  ///< Files.
  std::vector<std::string> models{};   ///< Files.
  /// In place of `models`, for a resumed run, which keeps the model that it began with.
  std::vector<DataIdentity> known_models{};
  fs::path cache;     ///< See ContentReader.
  fs::path listings;  ///< Folder for the listings of all data, CHECKSUM.txt; empty: none.
  ReadLimits limits;
};

/// Reads the current identity. Throws DataError if data cannot be read, DeviceError if a listing
/// cannot be written.
Identity read_identity(const IdentityQuestion& question);

/// The same for one file or folder of data.
DataIdentity read_data_identity(const std::string& path, const IdentityQuestion& question);
DataIdentity read_data_identity(const NamedFiles& files, const IdentityQuestion& question);

/// The folder in which the runs of a folder share the listings of their data.
fs::path listings_of(const fs::path& runs);

/// All identities of a run (RUN/identity.json), oldest first, including patches. Empty if there is
/// no such file. Throws DataError if one is damaged.
std::vector<Identity> read_identities(const fs::path& run);

/// Appends an identity to those of a run, unless only its step differs from the last one. Throws
/// DeviceError.
void add_identity(const fs::path& run, const Identity& identity);

/// Identifies the inputs of a run during training, in a low-priority background thread.
class IdentityRecorder {
 public:
  IdentityRecorder(fs::path run, IdentityQuestion question);
  /// Cancels unfinished work.
  ~IdentityRecorder();

  /// Waits for the thread. Returns the error, or an empty text.
  std::string finish();
  /// The same, but cancels the work if it takes longer.
  std::string finish_within(double seconds);

 private:
  void record(const IdentityQuestion& question);

  fs::path run_;
  std::string trouble_;
  std::atomic<bool> is_stopped_ = false;
  std::promise<void> is_done_;
  std::thread thread_;
};

}  // namespace gallop::track
