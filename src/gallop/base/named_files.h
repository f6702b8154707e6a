#pragma once

#include <string>
#include <vector>

namespace gallop {

/// Files of data that something else names, such as the rows of a table. The folder may contain
/// more, which is not part of the data.
struct NamedFiles {
  std::string folder;
  std::vector<std::string> names;  ///< Relative to the folder, or absolute.
};

/// The paths of a data set: files, folders with all that they contain, and named files.
struct DataPaths {
  std::vector<std::string> paths;
  std::vector<NamedFiles> named{};
};

}  // namespace gallop
