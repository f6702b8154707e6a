#include "gallop/data/data_paths.h"

namespace gallop::data {

DataPaths paths_of(const DataModule& data) {
  return {.paths = data.files, .named = data.named_files()};
}

}  // namespace gallop::data
