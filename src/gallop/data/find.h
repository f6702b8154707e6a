#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/part.h"

namespace gallop::data {

/// Describes the data set to find.
struct Wanted {
  std::string name;  ///< Name of the data set and of its folder in the default locations.
  /// The command that downloads the data, with "FOLDER" in place of the destination; empty
  /// if there is none.
  std::string command;
  /// Returns what is missing in a folder; empty if the data is complete.
  std::function<std::string(const fs::path&)> missing;
};

/// The folders searched for data sets: $GALLOP_DATA, /usr/share/datasets and the user's cache.
std::vector<fs::path> data_folders();

/// Finds a known data set: at `path` if given, otherwise under its name in the first of
/// data_folders() that has it. Throws DataError that lists each place with what is missing there,
/// and the download command.
fs::path find_data_set(const Wanted& wanted, const std::string& path);

/// Finds the user's own data: `path` as given ("~/" is the home folder) or, if relative, in the
/// first of data_folders() that has it. `reader` is used in messages only. Throws DataError that
/// lists every place.
fs::path find_user_data(const std::string& reader, const std::string& path);

/// Finds the file of each split in what find_user_data() returns. A single file is the training
/// split; a folder has train, val and test under any of their part_words() with one of these
/// endings (such as ".csv"). Paths of missing val and test are empty. Throws DataError.
std::array<fs::path, kParts> find_part_files(const std::string& reader, const std::string& path,
                                             const std::vector<std::string>& endings);

/// Like find_part_files(), with the shards of each split in the layout of Hugging Face datasets:
/// train-00000-of-00002.parquet, in the folder or its folder "data". Throws DataError if shards are
/// missing.
std::array<std::vector<std::string>, kParts> find_part_shards(
    const std::string& reader, const std::string& path, const std::vector<std::string>& endings);

/// The absolute path that find_user_data() returns for `data.path`, which may be a shard pattern.
/// Returned unchanged if it is empty, begins with "~/" or does not exist.
std::string absolute_data_path(const std::string& given);

}  // namespace gallop::data
