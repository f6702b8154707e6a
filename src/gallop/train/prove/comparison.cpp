#include "gallop/train/prove/comparison.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/rand.h>
#include <fmt/format.h>

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

void perturb(model::Model& model, double roundoff, int64_t step) {
  const at::NoGradGuard no_grad;
  const at::Generator generator =
      at::make_generator<at::CPUGeneratorImpl>(static_cast<uint64_t>(step));
  for (const auto& [name, tensor] : model.parameters()) {
    const at::Tensor factor = at::rand(tensor.sizes(), generator, at::kFloat).to(tensor.device());
    tensor.mul_((factor * 2 - 1) * (kPerturbation * roundoff) + 1);
  }
}

}  // namespace

const char* name_of(Quantity quantity) {
  switch (quantity) {
    case Quantity::kSamples: return "samples";
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

// Errors that are not yet relative to anything.
struct Comparison::Measured {
  std::string name;
  double error = 0, plain = 0;  // Of the candidate and of the plain step.
  double size = 0;
  double least = 0;  // A rounding error of what is stored.
};

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

void Comparison::note(Quantity quantity, int64_t step, const std::vector<Measured>& all) {
  if (all.empty()) return;
  std::vector<double> plain;
  for (const Measured& one : all) plain.push_back(relative(one.plain, one.size));
  const double typical = median(plain);
  for (const Measured& one : all) {
    const double allowed = std::max({one.plain, typical * one.size, one.least});
    tensor(quantity, one.name)
        .steps.push_back({.step = step + 1,
                          .error = relative(one.error, one.size),
                          .bound = relative(kFactor * allowed, one.size)});
  }
}

void Comparison::add(const RecordedStep& step, const NamedTensors& expected) {
  compare_samples(step, expected);
  const std::vector<BatchPart> parts = config_.depends_on_division
                                           ? divided(step.division, config_.seed)
                                           : undivided(step.division, config_.seed);
  const auto run = [&](PlainStep& plain) {
    return plain.run(expected, parts, step.step, step.lr, step.scheduled);
  };
  reference_.load(step.before);
  const StepValues reference = run(reference_);
  plain_.load(step.before);
  if (config_.perturbs) perturb(plain_.model(), config_.storage_roundoff, step.step);
  const StepValues plain = run(plain_);

  const double of_outputs = compare_outputs(step, parts, reference, plain);
  compare_number(Quantity::kLoss, step.step, step.loss, reference.loss, plain.loss, of_outputs);
  const double of_gradients = compare_gradients(step, reference, plain);
  compare_number(Quantity::kGradientNorm, step.step, step.gradient_norm, reference.gradient_norm,
                 plain.gradient_norm, of_gradients);
  const StepState wanted = copy_state(reference_.model(), reference_.optimizer());
  const StepState of_plain = copy_state(plain_.model(), plain_.optimizer());
  const auto backward = [](NamedTensors tensors) {
    std::reverse(tensors.begin(), tensors.end());
    return tensors;
  };
  compare_states(Quantity::kWeights, step, step.after.parameters, step.before.parameters,
                 backward(wanted.parameters), of_plain.parameters);
  if (config_.has_plain_state) {
    compare_states(Quantity::kOptimizerState, step, step.after.optimizer, step.before.optimizer,
                   wanted.optimizer, of_plain.optimizer);
  }
  compare_states(Quantity::kBuffers, step, step.after.buffers, step.before.buffers, wanted.buffers,
                 of_plain.buffers);
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

// Returns the error of the plain step's outputs.
double Comparison::compare_outputs(const RecordedStep& step, const std::vector<BatchPart>& parts,
                                   const StepValues& reference, const StepValues& plain) {
  const at::Tensor wanted = in_order(reference.outputs, parts);
  const double size = rms_of(wanted);
  const double of_plain = rms_of_difference(in_order(plain.outputs, parts), wanted);
  if (step.outputs.defined() && step.outputs.sizes() == wanted.sizes()) {
    note(Quantity::kOutputs, step.step,
         {{.name = name_of(Quantity::kOutputs),
           .error = rms_of_difference(step.outputs, wanted),
           .plain = of_plain,
           .size = size,
           .least = config_.roundoff * size}});
  }
  return std::max(relative(of_plain, size), config_.roundoff);
}

// Returns the error of the plain step's gradients.
double Comparison::compare_gradients(const RecordedStep& step, const StepValues& reference,
                                     const StepValues& plain) {
  std::vector<double> sizes;
  for (const auto& [name, tensor] : reference.gradients) sizes.push_back(rms_of(tensor));
  const double least = kLeastSize * median(sizes);
  std::vector<Measured> all;
  std::vector<double> of_plain;
  for (size_t i = reference.gradients.size(); i-- > 0;) {
    const auto& [name, wanted] = reference.gradients[i];
    const at::Tensor& got = tensor_of(step.gradients, name);
    const double size = std::max(sizes[i], least);
    all.push_back({.name = name,
                   .error = rms_of_difference(got, wanted),
                   .plain = rms_of_difference(plain.gradients[i].tensor, wanted),
                   .size = size,
                   .least = config_.roundoff * size});
    of_plain.push_back(relative(all.back().plain, size));
    if (!step.gradients.empty() && !got.defined() && sizes[i] > 0) {
      tensor(Quantity::kGradients, name).remark = "no gradient";
    }
  }
  if (!step.gradients.empty()) note(Quantity::kGradients, step.step, all);
  return std::max(median(of_plain), config_.roundoff);
}

void Comparison::compare_number(Quantity quantity, int64_t step, double candidate, double reference,
                                double plain, double least) {
  const double size = std::abs(reference);
  note(quantity, step,
       {{.name = name_of(quantity),
         .error = std::abs(candidate - reference),
         .plain = std::abs(plain - reference),
         .size = size,
         .least = least * size}});
}

// Relative to the change that the step makes.
void Comparison::compare_states(Quantity quantity, const RecordedStep& step,
                                const NamedTensors& candidate, const NamedTensors& before,
                                const NamedTensors& reference, const NamedTensors& plain) {
  std::vector<Measured> all;
  for (const auto& [name, wanted] : reference) {
    const at::Tensor &got = tensor_of(candidate, name), &old = tensor_of(before, name);
    if (!wanted.is_floating_point()) {
      tensor(quantity, name)
          .steps.push_back({.step = step.step + 1, .error = at::equal(got, wanted) ? 0.0 : 1.0});
      continue;
    }
    const double rounding = config_.storage_roundoff * std::max(rms_of(old), rms_of(wanted));
    all.push_back({.name = name,
                   .error = rms_of_difference(got, wanted),
                   .plain = rms_of_difference(tensor_of(plain, name), wanted),
                   .size = std::max(rms_of_difference(wanted, old), rounding),
                   .least = rounding});
  }
  note(quantity, step.step, all);
}

}  // namespace gallop::train
