#include "gallop/train/prove/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/rand.h>
#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/train/trial_config.h"

namespace gallop::train {

namespace {

constexpr double kFactor = 4;
// A single step fails if its error is this many times its bound and at least this large.
constexpr double kFarFactor = 25, kFarError = 0.05;
// Tensors that are 0 but for rounding are compared with the size of the others.
constexpr double kLeastSize = 0.01;
// Rounding errors by which weights are perturbed: about those of a layer's operators.
constexpr double kPerturbation = 4;
// Further plain steps where an error exceeds its bound: some change the sign of a ReLU's input.
constexpr int kFurtherSteps = 6;

double rms_of(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() == 0) return 0;
  return at::linalg_vector_norm(tensor.to(at::kDouble)).item<double>() /
         std::sqrt(static_cast<double>(tensor.numel()));
}

// A missing tensor counts as 0.
double rms_of_difference(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return rms_of(a.defined() ? a : b);
  return rms_of(a.to(at::kDouble) - b.to(at::kDouble));
}

double relative(double error, double size) {
  if (error == 0) return 0;
  return size > 0 ? error / size : std::numeric_limits<double>::infinity();
}

bool exceeds(const StepError& one) { return !(one.error <= one.bound); }

// How far an error exceeds its bound.
double excess(const StepError& one) {
  if (std::isnan(one.error)) return std::numeric_limits<double>::infinity();
  if (one.bound > 0) return one.error / one.bound;
  return one.error > 0 ? std::numeric_limits<double>::infinity() : 0;
}

const at::Tensor& tensor_of(const NamedTensors& all, const std::string& name) {
  static const at::Tensor kNone;
  const at::Tensor* found = find_tensor(all, name);
  return found == nullptr ? kNone : *found;
}

// The index of the first row that differs, -1 for none.
int64_t first_other_row(const at::Tensor& a, const at::Tensor& b) {
  for (int64_t row = 0; row < a.size(0); ++row) {
    if (!at::equal(a[row], b[row])) return row;
  }
  return -1;
}

// Another row of `expected` that `sample` equals; -1 for none.
int64_t row_of(const at::Tensor& sample, const at::Tensor& expected) {
  for (int64_t row = 0; row < expected.size(0); ++row) {
    if (at::equal(sample, expected[row])) return row;
  }
  return -1;
}

// Outputs in the order of the batch's rows.
at::Tensor in_order(const std::vector<at::Tensor>& outputs, const std::vector<BatchPart>& parts) {
  std::vector<std::pair<int64_t, at::Tensor>> ranges;
  size_t next = 0;
  for (const BatchPart& part : parts) {
    for (const Rows& rows : part.pieces) {
      int64_t place = 0;
      const at::Tensor& output = outputs[next++];
      for (const auto& [begin, end] : rows) {
        ranges.emplace_back(begin, output.slice(0, place, place + end - begin));
        place += end - begin;
      }
    }
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<at::Tensor> all;
  for (const auto& [begin, output] : ranges) all.push_back(output.to(at::kDouble));
  return at::cat(all);
}

void perturb(model::Model& model, double roundoff, int64_t number) {
  const at::NoGradGuard no_grad;
  const at::Generator generator =
      at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(number));
  for (const auto& [name, tensor] : model.parameters()) {
    const at::Tensor factor = at::rand(tensor.sizes(), generator, at::kFloat).to(tensor.device());
    tensor.mul_((factor * 2 - 1) * (kPerturbation * roundoff) + 1);
  }
}

}  // namespace

const char* name_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::kSamples: return "samples";
    case Quantity::kActivations: return "activations";
    case Quantity::kOutputs: return "outputs";
    case Quantity::kLoss: return "loss";
    case Quantity::kGradients: return "gradients";
    case Quantity::kGradientNorm: return "gradient norm";
    case Quantity::kWeights: return "weights";
    case Quantity::kOptimizerState: return "optimizer state";
    case Quantity::kBuffers: return "buffers";
  }
  throw InternalError("prove: a quantity without a name");
}

const StepError& ComparedTensor::worst() const {
  return *std::max_element(steps.begin(), steps.end(),
                           [](const auto& a, const auto& b) { return excess(a) < excess(b); });
}

bool ComparedTensor::differs() const {
  const auto count = std::count_if(steps.begin(), steps.end(), exceeds);
  const bool is_far = std::any_of(steps.begin(), steps.end(), [](const StepError& one) {
    return std::isnan(one.error) || (one.error > kFarFactor * one.bound && one.error > kFarError);
  });
  return is_far || count >= std::min<int64_t>(2, static_cast<int64_t>(steps.size()));
}

const ComparedTensor* ComparedQuantity::first_that_differs() const {
  const auto first = std::find_if(tensors.begin(), tensors.end(),
                                  [](const ComparedTensor& one) { return one.differs(); });
  return first == tensors.end() ? nullptr : &*first;
}

const ComparedTensor& ComparedQuantity::worst() const {
  return *std::max_element(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return excess(a.worst()) < excess(b.worst());
  });
}

const ComparedQuantity* Proof::first_that_differs() const {
  const auto first =
      std::find_if(quantities.begin(), quantities.end(),
                   [](const ComparedQuantity& one) { return one.first_that_differs() != nullptr; });
  return first == quantities.end() ? nullptr : &*first;
}

namespace {

// A plain step and the state after it.
struct PlainResult {
  StepValues values;
  StepState after;
};

// Errors that are not yet relative to anything.
struct Measured {
  std::string name;
  double error = 0, plain = 0;  // Error of the training, and the largest of the plain steps.
  double size = 0;
  double least = 0;  // A rounding error of what is stored.
};

// The errors of one step.
class StepComparison {
 public:
  StepComparison(const ComparisonConfig& config, const RecordedStep& step,
                 const PlainResult& reference, const std::vector<PlainResult>& plain,
                 const std::vector<BatchPart>& parts)
      : config_(config), step_(step), reference_(reference), plain_(plain) {
    compare_activations(parts);
    const double of_outputs = compare_outputs(parts);
    // Errors of outputs and gradients have both signs, so that those of their sums are smaller.
    compare_numbers(Quantity::kLoss, step.loss, &StepValues::loss, of_outputs / kFactor);
    const double of_gradients = compare_gradients();
    compare_numbers(Quantity::kGradientNorm, step.gradient_norm, &StepValues::gradient_norm,
                    of_gradients * of_gradients);
    compare_states(Quantity::kWeights, &StepState::parameters);
    if (config.has_plain_state) compare_states(Quantity::kOptimizerState, &StepState::optimizer);
    compare_states(Quantity::kBuffers, &StepState::buffers);
  }

  const std::vector<ComparedQuantity>& quantities() const { return quantities_; }
  bool exceeds_bounds() const {
    return std::any_of(quantities_.begin(), quantities_.end(), [](const auto& quantity) {
      return std::any_of(quantity.tensors.begin(), quantity.tensors.end(),
                         [](const auto& one) { return exceeds(one.steps.front()); });
    });
  }

 private:
  // The largest of the plain steps' errors.
  template <typename F>
  double of_plain(const F& error) const {
    double most = 0;
    for (const PlainResult& one : plain_) most = std::max(most, error(one));
    return most;
  }

  void note(Quantity quantity, const std::vector<Measured>& all) {
    if (all.empty()) return;
    std::vector<double> plain;
    for (const Measured& one : all) plain.push_back(relative(one.plain, one.size));
    const double typical = median(plain);
    for (const Measured& one : all) {
      const double allowed = std::max({one.plain, typical * one.size, one.least});
      add(quantity, {.name = one.name,
                     .steps = {{.step = step_.step + 1,
                                .error = relative(one.error, one.size),
                                .bound = relative(kFactor * allowed, one.size)}}});
    }
  }

  void add(Quantity quantity, ComparedTensor tensor) {
    if (quantities_.empty() || quantities_.back().quantity != quantity) {
      quantities_.push_back({.quantity = quantity});
    }
    quantities_.back().tensors.push_back(std::move(tensor));
  }

  // In the order in which they are computed.
  void compare_activations(const std::vector<BatchPart>& parts) {
    const auto whole = [&](const StepValues& values, const std::string& name) {
      std::vector<at::Tensor> pieces;
      for (const NamedTensors& piece : values.activations) {
        pieces.push_back(tensor_of(piece, name));
        if (!pieces.back().defined()) return at::Tensor();
      }
      return in_order(pieces, parts);
    };
    std::vector<Measured> all;
    for (const auto& [name, got] : step_.activations) {
      const at::Tensor wanted = whole(reference_.values, name);
      if (!wanted.defined() || got.sizes() != wanted.sizes()) continue;
      const double size = rms_of(wanted);
      all.push_back({.name = name,
                     .error = rms_of_difference(got, wanted),
                     .plain = of_plain([&, &block = name](const PlainResult& one) {
                       return rms_of_difference(whole(one.values, block), wanted);
                     }),
                     .size = size,
                     .least = config_.roundoff * size});
    }
    note(Quantity::kActivations, all);
  }

  // Returns the error of the plain step's outputs.
  double compare_outputs(const std::vector<BatchPart>& parts) {
    const at::Tensor wanted = in_order(reference_.values.outputs, parts);
    const double size = rms_of(wanted);
    const double plain = of_plain([&](const PlainResult& one) {
      return rms_of_difference(in_order(one.values.outputs, parts), wanted);
    });
    if (step_.outputs.defined() && step_.outputs.sizes() == wanted.sizes()) {
      note(Quantity::kOutputs, {{.name = name_of(Quantity::kOutputs),
                                 .error = rms_of_difference(step_.outputs, wanted),
                                 .plain = plain,
                                 .size = size,
                                 .least = config_.roundoff * size}});
    }
    return relative(plain, size);
  }

  // Returns the error of the plain step's gradients.
  double compare_gradients() {
    const NamedTensors& wanted = reference_.values.gradients;
    std::vector<double> sizes, plain;
    for (const auto& [name, tensor] : wanted) sizes.push_back(rms_of(tensor));
    const double least = kLeastSize * median(sizes);
    std::vector<Measured> all;
    for (size_t i = wanted.size(); i-- > 0;) {
      const auto& [name, tensor] = wanted[i];
      const at::Tensor& got = tensor_of(step_.gradients, name);
      const double size = std::max(sizes[i], least);
      all.push_back({.name = name,
                     .error = rms_of_difference(got, tensor),
                     .plain = of_plain([&, &wanted = tensor](const PlainResult& one) {
                       return rms_of_difference(one.values.gradients[i].tensor, wanted);
                     }),
                     .size = size,
                     .least = config_.roundoff * size});
      plain.push_back(relative(all.back().plain, size));
    }
    if (!step_.gradients.empty()) note(Quantity::kGradients, all);
    return median(plain);
  }

  void compare_numbers(Quantity quantity, double got, double StepValues::*value, double least) {
    const double wanted = reference_.values.*value, size = std::abs(wanted);
    note(quantity, {{.name = name_of(quantity),
                     .error = std::abs(got - wanted),
                     .plain = of_plain([&](const PlainResult& one) {
                       return std::abs(one.values.*value - wanted);
                     }),
                     .size = size,
                     .least = std::max(least, config_.roundoff) * size}});
  }

  // Relative to the change that the step makes.
  void compare_states(Quantity quantity, NamedTensors StepState::*list) {
    NamedTensors all_wanted = reference_.after.*list;
    if (quantity == Quantity::kWeights) std::reverse(all_wanted.begin(), all_wanted.end());
    std::vector<Measured> all;
    for (const NamedTensor& one : all_wanted) {
      const at::Tensor &wanted = one.tensor, &got = tensor_of(step_.after.*list, one.name),
                       &old = tensor_of(step_.before.*list, one.name);
      if (!wanted.is_floating_point()) {
        add(quantity,
            {.name = one.name,
             .steps = {{.step = step_.step + 1, .error = at::equal(got, wanted) ? 0.0 : 1.0}}});
        continue;
      }
      const double rounding = config_.storage_roundoff * std::max(rms_of(old), rms_of(wanted));
      all.push_back({.name = one.name,
                     .error = rms_of_difference(got, wanted),
                     .plain = of_plain([&](const PlainResult& plain) {
                       return rms_of_difference(tensor_of(plain.after.*list, one.name), wanted);
                     }),
                     .size = std::max(rms_of_difference(wanted, old), rounding),
                     .least = rounding});
    }
    note(quantity, all);
  }

  const ComparisonConfig& config_;
  const RecordedStep& step_;
  const PlainResult& reference_;
  const std::vector<PlainResult>& plain_;
  std::vector<ComparedQuantity> quantities_;
};

}  // namespace

ComparedTensor& Comparison::tensor(Quantity quantity, const std::string& name) {
  auto& all = proof_.quantities;
  auto found = std::find_if(all.begin(), all.end(),
                            [&](const auto& one) { return one.quantity == quantity; });
  if (found == all.end()) {
    found = std::find_if(all.begin(), all.end(),
                         [&](const auto& one) { return one.quantity > quantity; });
    found = all.insert(found, ComparedQuantity{.quantity = quantity});
  }
  auto& tensors = found->tensors;
  const auto same = std::find_if(tensors.begin(), tensors.end(),
                                 [&](const ComparedTensor& one) { return one.name == name; });
  return same == tensors.end() ? tensors.emplace_back(ComparedTensor{.name = name}) : *same;
}

void Comparison::add(const RecordedStep& step, const NamedTensors& expected) {
  compare_samples(step, expected);
  const std::vector<BatchPart> parts = config_.depends_on_division
                                           ? divided(step.division, config_.seed)
                                           : undivided(step.division, config_.seed);
  const auto run = [&](PlainStep& plain, std::optional<int64_t> perturbation) {
    plain.load(step.before);
    NamedTensors perturbed;
    if (perturbation) {
      perturb(plain.model(), config_.roundoff, *perturbation);
      perturbed = copy_state(plain.model(), plain.optimizer()).parameters;
    }
    PlainResult result{.values = plain.run(expected, parts, step.step, step.lr, step.scheduled),
                       .after = {}};
    result.after = copy_state(plain.model(), plain.optimizer());
    // The updated weights are without the perturbation, as are those of an optimizer's own format.
    for (size_t i = 0; config_.has_plain_state && i < perturbed.size(); ++i) {
      const at::Tensor moved = perturbed[i].tensor.sub_(step.before.parameters[i].tensor);
      result.after.parameters[i].tensor.sub_(moved);
    }
    return result;
  };
  const PlainResult reference = run(reference_, std::nullopt);
  std::vector<PlainResult> plain;
  int64_t number = step.step * (kFurtherSteps + 1);
  plain.push_back(run(plain_, config_.perturbs ? std::optional(number) : std::nullopt));
  std::optional<StepComparison> compared(std::in_place, config_, step, reference, plain, parts);
  if (compared->exceeds_bounds()) {
    for (int i = 0; i < kFurtherSteps; ++i) plain.push_back(run(plain_, ++number));
    compared.emplace(config_, step, reference, plain, parts);
  }
  for (const auto& [name, wanted] : reference.values.gradients) {
    const bool is_missing = !step.gradients.empty() && !tensor_of(step.gradients, name).defined();
    // A missing gradient is named before all others.
    if (is_missing && rms_of(wanted) > 0) tensor(Quantity::kGradients, name).remark = "no gradient";
  }
  for (const ComparedQuantity& quantity : compared->quantities()) {
    for (const ComparedTensor& one : quantity.tensors) {
      tensor(quantity.quantity, one.name).steps.push_back(one.steps.front());
    }
  }
  proof_.steps += 1;
  proof_.samples += step.division.whole_rows();
}

void Comparison::compare_samples(const RecordedStep& step, const NamedTensors& expected) {
  ComparedTensor& samples = tensor(Quantity::kSamples, name_of(Quantity::kSamples));
  StepError error{.step = step.step + 1};
  for (const auto& [name, wanted] : expected) {
    const at::Tensor& got = tensor_of(step.batch, name);
    if (!got.defined() || got.sizes() != wanted.sizes()) {
      error.error = 1;
      if (samples.remark.empty()) {
        samples.remark = fmt::format("step {} has another number of samples", error.step);
      }
      break;
    }
    const int64_t row = first_other_row(got, wanted);
    if (row < 0) continue;
    error.error = 1;
    if (!samples.remark.empty()) break;
    const int64_t same = row_of(got[row], wanted);
    samples.remark = fmt::format("row {} of step {} {}", row, error.step,
                                 same < 0 || wanted.dim() < 2
                                     ? fmt::format("has another '{}'", name)
                                     : fmt::format("is the sample of row {} again", same));
    break;
  }
  samples.steps.push_back(error);
}

}  // namespace gallop::train
