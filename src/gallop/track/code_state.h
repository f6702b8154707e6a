#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// The state of a git repository.
struct CodeState {
  std::string folder;  ///< The repository's folder.
  std::string commit;  ///< Empty without any commit.
  std::string branch;  ///< Empty for a detached HEAD.
  std::string remote;  ///< URL of `origin` without user and password; empty if there is none.
  /// Uncommitted changes of tracked files as `git diff HEAD`, for `git apply`.
  std::string patch;
  std::vector<std::string> left_out;  ///< Changed files that the patch omits: ".env", "*.pem", ...
  int64_t patch_bytes = 0;            ///< Also if the patch is omitted because it exceeds 4 MiB.

  bool operator==(const CodeState&) const = default;
};

/// Reads the state of the repository that contains `folder`; nothing without a repository or git.
/// Runs git, which takes milliseconds to seconds.
std::optional<CodeState> read_code_state(const fs::path& folder);

}  // namespace gallop::track
