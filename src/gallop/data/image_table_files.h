#pragma once

#include <array>
#include <string>
#include <vector>

#include "gallop/data/part.h"

namespace gallop::data {

/// Finds the tables that list the images of each split: metadata.csv and the like in the folders
/// train, val and test, or in the folder itself; otherwise what find_part_shards() finds. Throws
/// DataError.
std::array<std::vector<std::string>, kParts> find_image_tables(const std::string& path);

}  // namespace gallop::data
