#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/model/model.h"

namespace gallop::model {

/// A PyTorch model saved by torch.export.save() (docs/exported.md).
struct ExportedConfig {
  std::string file;
  std::string weights;  ///< A safetensors file that replaces weights; empty: none.
  std::vector<std::string>
      inputs;          ///< "input" or "tokens=input": fields of the batch; empty: auto.
  std::string output;  ///< Name of the output for the loss; empty: auto.
};

void visit(config::Visitor& visitor, ExportedConfig& config);

/// Parameters and buffers have the names of the model's state_dict. Throws DataError for a file
/// that cannot be used, UsageError if it does not fit the data.
std::unique_ptr<Model> make_exported(const ExportedConfig& config, const Task& task,
                                     InitialWeights weights);

}  // namespace gallop::model
