#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::benchmark {

/// One implementation of the work.
struct Form {
  std::string name;
  std::function<void()> run;
};

/// The first form is Gallop's.
struct Case {
  std::string name;
  std::vector<Form> forms;
  double bytes = 0;  ///< Compulsory memory traffic; 0 if compute-bound.
};

using MakeCase = std::function<Case()>;

std::vector<MakeCase> attention_cases();
/// Only the convolutions that Gallop's kernels accept.
std::vector<MakeCase> convolution_cases();
std::vector<MakeCase> loss_cases();
std::vector<MakeCase> norm_cases();
std::vector<MakeCase> pointwise_cases();
std::vector<MakeCase> gemm_cases();
std::vector<MakeCase> update_cases();

inline const char* name_of(at::ScalarType type) { return type == at::kFloat ? "fp32" : "bf16"; }

inline double bytes_of(const at::Tensor& tensor) { return static_cast<double>(tensor.nbytes()); }

inline void forward_backward(const at::Tensor& y, const at::Tensor& dy, const at::Tensor& input) {
  y.backward(dy);
  input.mutable_grad().reset();
}

}  // namespace gallop::benchmark
