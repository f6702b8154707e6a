#pragma once

#include <map>
#include <string>
#include <vector>

#include "gallop/model/exported/archive.h"

namespace gallop::model::exported {

/// A program run on the sample inputs of its archive, and the same numbers as Python wrote them at
/// the export (tools/gallop_export.py). The objective is a scalar on which all floating-point
/// outputs have an effect: the sum of their means, weighted by cosines.
struct SampleRun {
  std::string mode;  ///< "train" or "eval".
  double objective = 0;
  std::map<std::string, double> gradient_norms{};  ///< By parameter; none in evaluation.
  std::vector<std::string> without_gradient{};     ///< Parameters that require one, sorted.

  bool has_reference = false;
  double expected_objective = 0;
  /// The largest difference of objective and gradient norms, relative to the expected number, for a
  /// norm to at least a hundredth of the largest norm; 0 if all are equal bit for bit.
  double error = 0;
  std::string worst{};  ///< What has the largest error: "objective" or a parameter.
  /// The largest difference between torch.export's program and the model, both run in Python,
  /// relative to the largest element of its tensor.
  double export_error = 0;
};

/// Runs the archive's training and evaluation program on its sample. Empty if it has no sample.
/// Throws UsageError if a program fails on it, DataError for a damaged sample or reference.
std::vector<SampleRun> run_sample(Archive& archive);

}  // namespace gallop::model::exported
