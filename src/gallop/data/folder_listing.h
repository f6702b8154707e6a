#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::data {

/// An image that cannot be opened, or is of a format that is not read.
struct UnusableImage {
  std::string name;
  const char* reason;  ///< SkipCount::reason.
  std::string problem;
};

/// What one folder holds; each list is sorted.
struct FolderListing {
  std::vector<std::string> folders;
  std::vector<std::string> images;
  std::vector<std::string> others;
  std::vector<std::string> hidden;  ///< is_ignored_name().
  std::vector<UnusableImage> unusable;
};

/// Lists a folder, links followed. Throws DataError where it cannot be read.
FolderListing list_folder(const fs::path& path);

/// Images in a file or folder that is ignored, among its first 10,000 entries.
int64_t count_ignored_images(const fs::path& path);

}  // namespace gallop::data
