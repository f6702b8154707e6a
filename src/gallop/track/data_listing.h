#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/track/content.h"

namespace gallop::track {

/// The names and sizes of the files that a run learns from: what is compared before it continues.
/// In Content::files, `checksum` is what two listings differ by. Hidden files do not count. Of more
/// files than `kMostListed` each folder is one entry, "train/cat/".
inline constexpr size_t kMostListed = 200'000;

/// Lists files and folders; names begin with that of the file or folder, so that data may move.
/// Throws DataError where something cannot be read.
Content list_data(const std::vector<std::string>& paths, size_t most = kMostListed);

/// Keeps the listing in a run's folder, RUN/data-files.txt.
void write_data_listing(const fs::path& run, const Content& listing);

/// Nothing where the run has none, as those of older versions. Throws DataError where it is
/// damaged.
std::optional<Content> read_data_listing(const fs::path& run);

/// "2 files added (cat/8.png, cat/9.png), 1 removed (dog/1.png)"; empty for no difference.
std::string describe(const ContentDifference& difference);

}  // namespace gallop::track
