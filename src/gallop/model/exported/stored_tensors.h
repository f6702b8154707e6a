#pragma once

#include <map>
#include <string>
#include <vector>

#include "gallop/model/exported/archive.h"
#include "gallop/model/exported/json_reader.h"

namespace gallop::model::exported {

/// What an archive's config says of the memory of a tensor.
struct StoredTensor {
  std::string name;
  std::string storage;  ///< "weight_0".
  bool is_parameter = false;
  TensorMeta meta;
};

/// Reads NAME_weights_config.json or NAME_constants_config.json; `kind` is "weight" or "constant".
/// Constants that are no tensors are left out. Throws DataError for pickled and sparse tensors and
/// for symbolic sizes.
std::vector<StoredTensor> read_config(std::string_view json, std::string_view kind,
                                      const Place& place);

/// The tensors in the storages `bytes`, by name of the storage. `given` are used for tensors whose
/// storage is empty; with `is_definition`, those are zeros. Throws DataError.
std::vector<ArchivedTensor> load_tensors(const std::vector<StoredTensor>& stored,
                                         const std::map<std::string, std::string_view>& bytes,
                                         const NamedTensors& given, std::string_view kind,
                                         const Place& place, bool is_definition);

}  // namespace gallop::model::exported
