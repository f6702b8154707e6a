#pragma once

#include <vector>

#include "gallop/base/named_files.h"
#include "gallop/data/data_module.h"

namespace gallop::data {

/// The interface of data modules with DataModule::files that name more files, such as images.
class NamesFiles {
 public:
  virtual ~NamesFiles() = default;
  virtual std::vector<NamedFiles> named_files() const = 0;
};

/// All files of a data set, for the run's identity.
DataPaths paths_of(const DataModule& data);

}  // namespace gallop::data
