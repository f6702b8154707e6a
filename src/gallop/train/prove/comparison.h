#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/precision/precision.h"
#include "gallop/train/prove/plain_step.h"
#include "gallop/train/prove/step_recorder.h"

namespace gallop::train {

/// What is compared, in the order in which a step computes it.
enum class Quantity {
  kSamples,
  kActivations,  ///< What blocks of layers pass on.
  kOutputs,
  kLoss,
  kGradients,
  kGradientNorm,
  kWeights,
  kOptimizerState,
  kBuffers
};

/// "gradient norm"
const char* name_of(Quantity quantity);

/// The error of a tensor in one step.
struct StepError {
  int64_t step = 0;  ///< From 1.
  double error = 0;  ///< Root mean square of the difference, relative to that of the reference.
  double bound = 0;
};

struct ComparedTensor {
  std::string name;  ///< Of a parameter or buffer; else that of the quantity.
  std::vector<StepError> steps{};
  std::string remark{};  ///< "row 3 is the sample of row 2 again"; usually empty.

  /// The step whose error is largest relative to its bound.
  const StepError& worst() const;
  /// Whether the error exceeds its bound in two steps, or in the only one, or by far in any. A
  /// single rounding error changes gradients by more than rounding does where it changes the sign
  /// of a ReLU's input, but hardly twice in one tensor.
  bool differs() const;
};

/// One quantity, its tensors in the order in which the first that differs is wanted: gradients and
/// weights from the loss to the input, behind those without a gradient.
struct ComparedQuantity {
  Quantity quantity;
  std::vector<ComparedTensor> tensors{};

  const ComparedTensor* first_that_differs() const;
  /// The tensor whose error is largest relative to its bound.
  const ComparedTensor& worst() const;
};

/// The result of comparing steps.
struct Proof {
  std::vector<ComparedQuantity> quantities{};
  int64_t steps = 0;    ///< Compared steps.
  int64_t samples = 0;  ///< In these.

  /// The first quantity with a tensor that differs; null if all steps are proven.
  const ComparedQuantity* first_that_differs() const;
};

struct ComparisonConfig {
  uint64_t seed = 1;                 ///< Of dropout.
  bool depends_on_division = false;  ///< The batch is computed in the parts of the training.
  double roundoff = 0;               ///< Unit roundoff of the training's GEMMs.
  double storage_roundoff = 0;       ///< Of its weights.
  bool has_plain_state = true;       ///< Optimizer states are numbers that can be compared.
  /// The reference is no more precise than the plain step, whose weights are therefore perturbed by
  /// rounding errors.
  bool perturbs = false;
};

/// Compares recorded steps with a reference, each from the training's own state before the step.
///
/// For each tensor, E is the root mean square of its difference to the reference, and P that of a
/// plain step in the training's precision, whose operators are LibTorch's. E may be four times P,
/// four times the median over all tensors of P relative to the tensor's size, or four rounding
/// errors of what is stored, whichever is most. Where E exceeds that, P becomes the largest of some
/// more plain steps, whose weights are perturbed by rounding errors: where these change the sign of
/// a ReLU's input, gradients change by more than rounding.
class Comparison {
 public:
  /// All must outlive it.
  Comparison(PlainStep& reference, PlainStep& plain, const ComparisonConfig& config)
      : reference_(reference), plain_(plain), config_(config) {}

  /// `expected`: the batch that belongs to the step, in one process.
  void add(const RecordedStep& step, const NamedTensors& expected);

  const Proof& proof() const { return proof_; }

 private:
  ComparedTensor& tensor(Quantity quantity, const std::string& name);
  void compare_samples(const RecordedStep& step, const NamedTensors& expected);

  PlainStep& reference_;
  PlainStep& plain_;
  ComparisonConfig config_;
  Proof proof_;
};

}  // namespace gallop::train
