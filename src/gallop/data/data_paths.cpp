#include "gallop/data/data_paths.h"

namespace gallop::data {

DataPaths paths_of(const DataModule& data) {
  DataPaths paths{.paths = data.files};
  if (const auto* const more = dynamic_cast<const NamesFiles*>(&data)) {
    paths.named = more->named_files();
  }
  return paths;
}

}  // namespace gallop::data
