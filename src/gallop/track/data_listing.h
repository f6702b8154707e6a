#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/track/content.h"

namespace gallop::track {

/// Listing of the names and sizes of a run's data files, which is compared when it resumes. In
/// Content::files, `checksum` is what is compared. Hidden files are ignored. With more files than
/// `kMostListed`, each folder is one entry, "train/cat/".
inline constexpr size_t kMostListed = 200'000;

/// Lists files and folders; names are relative to the parent of each path, so that data may move.
/// Throws DataError if something cannot be read.
/// Named files have the names that they are given, and are left out if they are not there.
Content list_data(const DataPaths& data, size_t most = kMostListed);

/// The paths to list for a comparison with an earlier listing: those of older versions have no
/// named files.
DataPaths listed_paths(const Content& before, const DataPaths& data);

/// Stores the listing in a run's folder as RUN/data-files.txt.
void write_data_listing(const fs::path& run, const Content& listing);

/// Nothing if the run has none, as runs of older versions. Throws DataError if it is damaged.
std::optional<Content> read_data_listing(const fs::path& run);

/// Whether a file or a folder of this relative path is hidden, which is not part of the data.
bool is_hidden(const fs::path& name);

/// "2 files added (cat/8.png, cat/9.png), 1 removed (dog/1.png)"; empty for no difference.
std::string describe(const ContentDifference& difference);

}  // namespace gallop::track
