#include "gallop/kernel/adafactor.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <ATen/Parallel.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/adafactor.h"
#include "gallop/kernel/operator.h"
#include "gallop/kernel/over_parts.h"

namespace gallop::kernel {

namespace {

using Optional = std::optional<at::Tensor>;
using Doubles = c10::ArrayRef<double>;

// Elements that one thread processes at a time, approximately; and the maximum of a small tensor.
constexpr int64_t kPart = 65536, kSmall = 1 << 20;

/// The settings that all parameters share.
struct Settings {
  double beta2_decay, eps1, eps2, d;
  bool relative_step, scale_parameter;
};

double total(const std::vector<double>& sums) {
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

/// One parameter's update.
class Update {
 public:
  Update(const at::Tensor& parameter, const at::Tensor& gradient, float* rows, float* columns)
      : kernels_(best_kernels<AdafactorKernels>()),
        row_state_(rows),
        column_state_(columns),
        size_(parameter.numel()) {
    all_.parameter = parameter.mutable_data_ptr<float>();
    all_.gradient = gradient.const_data_ptr<float>();
    // A vector is a single row.
    all_.columns = columns != nullptr ? parameter.size(-1) : size_;
    all_.rows = columns != nullptr ? parameter.size(-2) : 1;
    matrices_ = columns != nullptr ? size_ / std::max<int64_t>(1, all_.rows * all_.columns) : 1;
    rows_of_part_ = std::clamp<int64_t>(kPart / std::max<int64_t>(1, all_.columns), 1,
                                        std::max<int64_t>(1, all_.rows));
    parts_of_matrix_ = (all_.rows + rows_of_part_ - 1) / rows_of_part_;
  }

  void run(const Settings& settings, double lr, double weight_decay, double scale, float& count,
           bool alone) {
    count += 1;
    if (size_ == 0) return;
    const double t = count, take = std::pow(t, settings.beta2_decay);
    all_.scale = static_cast<float>(scale);
    all_.most = static_cast<float>(1 / settings.eps1);
    const double size = static_cast<double>(size_);
    const double parameter_squares = column_state_ != nullptr
                                         ? measure_matrices(take, settings.eps1, alone)
                                         : measure_vector(take);
    double rate = settings.relative_step ? std::min(lr, 1 / std::sqrt(t)) : lr;
    if (settings.scale_parameter) {
      rate *= std::max(settings.eps2, std::sqrt(parameter_squares / size));
    }
    std::vector<double> squares(static_cast<size_t>(parts()));
    over_parts(parts(), alone, [&](int64_t i) {
      squares[static_cast<size_t>(i)] = kernels_.change_squares(part(i));
    });
    rate /= std::max(1.0, std::sqrt(total(squares) / size) / settings.d);
    const auto keep = static_cast<float>(1 - lr * weight_decay);
    over_parts(parts(), alone,
               [&](int64_t i) { kernels_.update(part(i), keep, static_cast<float>(rate)); });
  }

 private:
  int64_t parts() const { return matrices_ * parts_of_matrix_; }

  // Rows of one matrix.
  AdafactorRows part(int64_t number) const {
    const int64_t matrix = number / parts_of_matrix_;
    const int64_t row = number % parts_of_matrix_ * rows_of_part_;
    const int64_t offset = (matrix * all_.rows + row) * all_.columns;
    AdafactorRows part = all_;
    part.parameter += offset;
    part.gradient += offset;
    part.rows = std::min(rows_of_part_, all_.rows - row);
    if (!row_factors_.empty()) part.row_factors = row_factors_.data() + matrix * all_.rows + row;
    part.column_factors =
        column_factors_.data() + (column_state_ != nullptr ? matrix * all_.columns : 0);
    return part;
  }

  // Updates the mean squares by the gradient; returns the sum of squares of the parameter.
  double measure_matrices(double take, double eps1, bool alone) {
    const int64_t columns = all_.columns;
    std::vector<float> row_sums(static_cast<size_t>(matrices_ * all_.rows));
    std::vector<float> column_sums(static_cast<size_t>(parts() * columns));
    std::vector<double> parameter(static_cast<size_t>(parts()));
    column_factors_.resize(static_cast<size_t>(matrices_ * columns));
    over_parts(parts(), alone, [&](int64_t i) {
      const AdafactorRows at = part(i);
      const int64_t first = (at.gradient - all_.gradient) / columns;
      parameter[static_cast<size_t>(i)] =
          kernels_.squares(at, row_sums.data() + first, column_sums.data() + i * columns);
    });
    const auto share = static_cast<float>(take);
    row_factors_.resize(row_sums.size());
    for (int64_t matrix = 0; matrix < matrices_; ++matrix) {
      take_rows(matrix, share, row_sums.data() + matrix * all_.rows, eps1);
      take_columns(matrix, share, column_sums.data() + matrix * parts_of_matrix_ * columns);
    }
    return total(parameter);
  }

  void take_rows(int64_t matrix, float share, const float* sums, double eps1) {
    float* const state = row_state_ + matrix * all_.rows;
    double mean = 0;
    for (int64_t i = 0; i < all_.rows; ++i) {
      state[i] += share * (sums[i] / static_cast<float>(all_.columns) - state[i]);
      mean += state[i];
    }
    mean = std::max(mean / static_cast<double>(all_.rows), eps1);
    for (int64_t i = 0; i < all_.rows; ++i) {
      row_factors_[static_cast<size_t>(matrix * all_.rows + i)] =
          static_cast<float>(std::sqrt(mean / std::max(1e-38, static_cast<double>(state[i]))));
    }
  }

  void take_columns(int64_t matrix, float share, const float* sums) {
    float* const state = column_state_ + matrix * all_.columns;
    for (int64_t j = 0; j < all_.columns; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < parts_of_matrix_; ++i) sum += sums[i * all_.columns + j];
      state[j] += share * (static_cast<float>(sum / static_cast<double>(all_.rows)) - state[j]);
    }
    kernels_.inverse_roots(state, kMostRoot, column_factors_.data() + matrix * all_.columns,
                           all_.columns);
  }

  // As measure_matrices(), for vectors, which are small, and scalars.
  double measure_vector(double take) {
    double parameter = 0;
    const auto share = static_cast<float>(take);
    for (int64_t i = 0; i < size_; ++i) {
      const float g = all_.gradient[i] * all_.scale;
      row_state_[i] += share * (g * g - row_state_[i]);
      parameter += static_cast<double>(all_.parameter[i]) * static_cast<double>(all_.parameter[i]);
    }
    column_factors_.resize(static_cast<size_t>(size_));
    kernels_.inverse_roots(row_state_, kMostRoot, column_factors_.data(), size_);
    return parameter;
  }

  // Limit of the inverse root of a mean square of 0, so that products with others are finite.
  static constexpr float kMostRoot = 1e19F;

  const AdafactorKernels& kernels_;
  AdafactorRows all_;
  float *row_state_, *column_state_;
  int64_t size_, matrices_ = 1, rows_of_part_ = 1, parts_of_matrix_ = 1;
  std::vector<float> row_factors_, column_factors_;
};

// The tensors of each thread, consecutive and of about the same total size.
std::vector<std::vector<size_t>> shared_out(const at::TensorList& tensors, int64_t threads) {
  std::vector<std::vector<size_t>> lists(static_cast<size_t>(threads));
  int64_t all = 0, before = 0;
  for (const at::Tensor& tensor : tensors) all += tensor.numel() <= kSmall ? tensor.numel() : 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].numel() > kSmall) continue;
    const int64_t thread = all == 0 ? 0 : std::min(threads - 1, before * threads / all);
    lists[static_cast<size_t>(thread)].push_back(i);
    before += tensors[i].numel();
  }
  return lists;
}

void adafactor_on_cpu(at::TensorList parameters, at::TensorList gradients, at::TensorList rows,
                      at::TensorList columns, const at::Tensor& steps, at::IntArrayRef indices,
                      Doubles weight_decays, Doubles lr_factors, const at::Tensor& lr,
                      const Optional& grad_scale, const Optional& found_inf, Doubles settings) {
  if (found_inf && found_inf->item<float>() != 0) return;
  const Settings all{settings[0], settings[1],      settings[2],
                     settings[3], settings[4] != 0, settings[5] != 0};
  const double rate = lr.item<float>();
  const double scale = grad_scale ? 1 / static_cast<double>(grad_scale->item<float>()) : 1;
  auto* const counts = steps.mutable_data_ptr<float>();
  // By parameter: the columns of those that are matrices.
  std::vector<float*> column_state(parameters.size());
  for (size_t i = 0, next = 0; i < parameters.size(); ++i) {
    if (parameters[i].dim() > 1) column_state[i] = columns[next++].mutable_data_ptr<float>();
  }
  const auto update = [&](size_t i, bool alone) {
    Update(parameters[i], gradients[i], rows[i].mutable_data_ptr<float>(), column_state[i])
        .run(all, rate * lr_factors[i], weight_decays[i], scale, counts[indices[i]], alone);
  };
  // Small parameters stay in a core's cache from pass to pass.
  const auto lists = shared_out(parameters, at::get_num_threads());
  at::parallel_for(0, static_cast<int64_t>(lists.size()), 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread) {
      for (const size_t i : lists[static_cast<size_t>(thread)]) update(i, /*alone=*/true);
    }
  });
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].numel() > kSmall) update(i, /*alone=*/false);
  }
}

void nothing_without_memory(at::TensorList, at::TensorList, at::TensorList, at::TensorList,
                            const at::Tensor&, at::IntArrayRef, Doubles, Doubles, const at::Tensor&,
                            const Optional&, const Optional&, Doubles) {}

}  // namespace

void adafactor(const AdafactorStep& step) {
  static const Operator kAdafactor(
      "adafactor_(Tensor(a!)[] parameters, Tensor[] gradients, Tensor(b!)[] rows, Tensor(c!)[] "
      "columns, Tensor(d!) steps, int[] indices, float[] weight_decays, float[] lr_factors, Tensor "
      "lr, Tensor? grad_scale, Tensor? found_inf, float[] settings) -> ()",
      adafactor_on_cpu, nothing_without_memory);
  const size_t count = step.parameters.size();
  if (step.gradients.size() != count || step.rows.size() != count || step.columns.size() != count) {
    throw InternalError("adafactor: lists of different lengths");
  }
  if (count == 0) return;
  std::vector<at::Tensor> columns;
  for (const at::Tensor& tensor : step.columns) {
    if (tensor.defined()) columns.push_back(tensor);
  }
  kAdafactor(step.parameters, step.gradients, step.rows, columns, step.steps, step.indices,
             step.weight_decays, step.lr_factors, step.lr, optional(step.grad_scale),
             optional(step.found_inf),
             std::vector<double>{step.beta2_decay, step.eps1, step.eps2, step.d,
                                 step.relative_step ? 1. : 0., step.scale_parameter ? 1. : 0.});
  count_changes(step.parameters);
}

}  // namespace gallop::kernel
