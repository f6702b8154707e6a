#pragma once

#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/part.h"

namespace gallop::data {

/// A shard and the part that its folder or name gives it.
struct ShardPath {
  fs::path path;
  Part part = Part::kTrain;
  bool is_marked = false;  ///< The folder or name says so.
};

/// "shard-{0000..0009}.tar" or "{train,val}.tar" spelled out, in order. Throws DataError where the
/// braces are wrong or stand for more than 100,000 names.
std::vector<std::string> expand_braces(const std::string& pattern);

/// The shards that `data.path` stands for: one file, a folder of .tar files with or without folders
/// for parts, or a pattern with braces; and the folder that they lie in. Throws DataError where
/// there are none, one of a pattern is missing, or only some of them name a part.
fs::path find_shards(const std::string& path, std::vector<ShardPath>& shards);

}  // namespace gallop::data
