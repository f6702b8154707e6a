#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/model/exported/evaluation_mode.h"
#include "gallop/model/exported/sample_run.h"

namespace gallop::model::exported {

/// What is in an archive of torch.export.save(), and what Gallop can do with it.
struct Description {
  struct Value {
    std::string name;
    std::string dtype;  ///< "float32"; "number" for an input that is no tensor.
    std::string sizes;  ///< "[batch, 3, 32, 32]"
  };
  struct Dimension {
    std::string name;
    Range range;
  };
  struct Operator {
    std::string name;  ///< "aten::conv2d"
    int64_t count = 0;
  };

  std::string file, torch_version;
  std::vector<std::string> programs;
  std::vector<Value> inputs, outputs;
  std::vector<Dimension> dimensions;  ///< Those that may have several sizes.
  /// Elements and tensors; frozen parameters do not require a gradient.
  int64_t parameters = 0, parameter_tensors = 0, frozen = 0;
  int64_t buffers = 0, buffer_tensors = 0, bytes = 0;
  int64_t nodes = 0;                ///< Of the training program.
  std::vector<Operator> operators;  ///< The most frequent first.
  /// Linear layers, and how many of them two processes divide.
  int64_t linear_layers = 0, divided_layers = 0;
  bool has_evaluation = false;  ///< A program of its own.
  std::vector<SwitchedOperator> switched;
  std::vector<std::string> problems;  ///< Why Gallop cannot train it; empty if it can.
  std::vector<std::string> warnings;
  std::vector<SampleRun> sample;  ///< Empty if there is none, or if there are problems.
};

/// Describes an archive, and runs its sample if `runs_sample`. Throws DataError for files that are
/// not valid archives; what else prevents training is listed in `problems`.
Description describe_archive(const std::string& file, bool runs_sample);

std::string to_text(const Description& description);
std::string to_json(const Description& description);

}  // namespace gallop::model::exported
