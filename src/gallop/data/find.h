#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/part.h"

namespace gallop::data {

/// What is looked for.
struct Wanted {
  std::string name;  ///< Of the data set; folders have this name in the usual places.
  /// The one command that gets the data, with "FOLDER" for where they should go to; empty where
  /// there is none.
  std::string command;
  /// What is missing in a folder, empty where the data are there.
  std::function<std::string(const fs::path&)> missing;
};

/// The folders data sets are looked for in: $GALLOP_DATA, /usr/share/datasets and the user's cache.
std::vector<fs::path> data_folders();

/// Where a known data set lies: at `path` where that is given, else under its name in the first of
/// data_folders() that has it. Throws DataError that lists every place with what is missing there,
/// and the command that gets the data.
fs::path find_data_set(const Wanted& wanted, const std::string& path);

/// Where the user's own data lie: `path` as it is ("~/" is the home folder), else, for a relative
/// one, in the first of data_folders() that has it. `reader` is only named. Throws DataError that
/// lists every place.
fs::path find_user_data(const std::string& reader, const std::string& path);

/// The file of each part under what find_user_data() finds: one file is the training part; in a
/// folder train, val and test with one of these endings, ".csv", under any of their part_words(),
/// of which the last two may be missing: their paths are empty. Throws DataError.
std::array<fs::path, kParts> find_part_files(const std::string& reader, const std::string& path,
                                             const std::vector<std::string>& endings);

/// The absolute path of what find_user_data() finds for `data.path`, which may be a pattern of
/// shards; the path as it is where it is empty, begins with "~/" or leads nowhere.
std::string absolute_data_path(const std::string& given);

}  // namespace gallop::data
