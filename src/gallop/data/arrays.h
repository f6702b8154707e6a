#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/data/data_module.h"

namespace gallop::data {

/// Arrays of NumPy, one for each field, with a row for each sample: train.npz and optionally
/// val.npz and test.npz, or in folders of these names a file FIELD.npy for each. They are mapped
/// into memory.
struct ArraysConfig {
  /// Fields that the model reads; empty: all but the target. For pairs, one array of all views of a
  /// sample, or one for each view.
  std::vector<std::string> inputs;
  std::string target;                ///< Field to predict; empty: one with a usual name.
  std::vector<std::string> floats;   ///< Fields of whole numbers that become floating-point.
  std::vector<std::string> classes;  ///< Names; empty: the numbers 0 to the largest of the target.
};

void visit(config::Visitor& visitor, ArraysConfig& config);

/// Fields of the names of the arrays: floating-point numbers as fp32, others as int64. Values are
/// taken as they are, but for `data.mean` and `data.std` of the first input. The task follows from
/// the target: a class for each sample or pixel if it has whole numbers, several labels if all are
/// 0 or 1 in several columns, and otherwise regression. With `data.task: pair-embedding`, samples
/// are pairs or triplets, and a target is 1 or -1; without one, the field "match" is 1. With
/// `data.task: sequence-recognition`, targets are sequences of classes that end at kIgnoredTarget
/// or have the lengths of the array "target_lengths"; the array "input_lengths" becomes a field.
/// Throws DataError if arrays do not fit together.
std::unique_ptr<DataModule> open_arrays(const ArraysConfig& config, const DataContext& context);

}  // namespace gallop::data
