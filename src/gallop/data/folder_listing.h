#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::data {

/// An image that cannot be opened or has an unsupported format.
struct UnusableImage {
  std::string name;
  const char* reason;  ///< SkipCount::reason.
  std::string problem;
};

/// The contents of a folder; each list is sorted.
struct FolderListing {
  std::vector<std::string> folders;
  std::vector<std::string> images;
  std::vector<std::string> others;
  std::vector<std::string> hidden;  ///< is_ignored_name().
  std::vector<UnusableImage> unusable;
};

/// Lists a folder, following links. Throws DataError if it cannot be read.
FolderListing list_folder(const fs::path& path);

/// Counts the images in an ignored file or folder, among its first 10,000 entries.
int64_t count_ignored_images(const fs::path& path);

}  // namespace gallop::data
