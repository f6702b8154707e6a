#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/model/exported/schema.h"
#include "gallop/model/model.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::model::exported {

/// Where an input of the user comes from.
struct BoundInput {
  std::string name;   ///< Of the program's input.
  std::string field;  ///< Of the batch.
  TensorMeta meta;
  bool has_padding = false;  ///< Negative tokens, which the program gets as 0.
};

/// Binds the program's inputs to fields of a batch. `given` are "FIELD", in the order of the
/// inputs, or "INPUT=FIELD". Of the others, "attention_mask" takes "input.mask", which
/// is 1 at the tokens of the field "input" and 0 at its padding, and "labels" takes "target"; if
/// one is left, it takes "input", and several take the fields of their own names. Throws
/// UsageError.
std::vector<BoundInput> bind_inputs(const Program& program, const std::vector<std::string>& given,
                                    const std::string& file);

/// The index of the output that the loss reads: the one of that name; without a name the only one,
/// or the one named "logits". Throws UsageError that lists them.
size_t find_output(const Program& program, const std::string& name, const std::string& file);

/// The index of the output named "loss" that is a scalar, which the program computes itself; none
/// if there is no other than `output`.
std::optional<size_t> find_loss(const Program& program, size_t output);

/// Throws UsageError if the program has other sizes than the data: images, features, classes. Only
/// sizes that the program states as constants are compared.
void check_task(const Program& program, const std::vector<BoundInput>& inputs, size_t output,
                const Task& task, const std::string& file);

/// The tensor of a batch as the program's input: of its dtype, and 0 where tokens are padding.
/// Throws UsageError if the batch lacks the field, or if a size is beyond the range that the
/// program was exported for.
at::Tensor as_input(const BoundInput& input, const NamedTensors& batch,
                    const std::map<std::string, Range>& ranges, const std::string& file);

}  // namespace gallop::model::exported
