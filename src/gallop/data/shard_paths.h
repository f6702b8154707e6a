#pragma once

#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/part.h"

namespace gallop::data {

/// A shard and the split indicated by its folder or name.
struct ShardPath {
  fs::path path;
  Part part = Part::kTrain;
  bool is_marked = false;  ///< The folder or name names a split.
};

/// Expands "shard-{0000..0009}.tar" or "{train,val}.tar", in order. Throws DataError for invalid
/// braces or more than 100,000 names.
std::vector<std::string> expand_braces(const std::string& pattern);

/// Lists the shards of `data.path`, which is one file, a folder of .tar files with or without
/// folders for splits, a pattern with braces, or the command of a pipe (fetch_shards()), and
/// returns their folder. Throws DataError if there are none, if one of a pattern is missing, or if
/// only some of them name a split.
fs::path find_shards(const std::string& path, std::vector<ShardPath>& shards);

}  // namespace gallop::data
