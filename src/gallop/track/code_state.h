#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// In which state the git repository of a folder is.
struct CodeState {
  std::string folder;  ///< The repository's.
  std::string commit;  ///< Empty where nothing is committed yet.
  std::string branch;  ///< Empty where none is checked out.
  std::string
      remote;  ///< Address of `origin` without user and password; empty where there is none.
  /// What is not committed of files that git knows, as `git diff HEAD`; `git apply` takes it.
  std::string patch;
  std::vector<std::string> left_out;  ///< Changed files that are not in it: ".env", "*.pem", ...
  int64_t patch_bytes = 0;  ///< Also where the patch is left out, being longer than 4 MiB.

  bool operator==(const CodeState&) const = default;
};

/// Nothing where the folder lies in no repository, or where there is no git. Starts processes,
/// which take some milliseconds, seconds at most.
std::optional<CodeState> read_code_state(const fs::path& folder);

}  // namespace gallop::track
