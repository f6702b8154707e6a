#include "gallop/kernel/plain_update.h"

#include <array>
#include <optional>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/where.h>

#include "gallop/base/error.h"
#include "gallop/kernel/update_table.h"

namespace gallop::kernel {

namespace {

/// A tensor as rules take it: the numbers of a parameter, or one that belongs to it.
struct Value {
  at::Tensor t;

  Value() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): rules mix them with numbers
  Value(double number) : t(at::scalar_tensor(number, at::kDouble)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): likewise
  Value(at::Tensor tensor) : t(std::move(tensor)) {}
};

Value operator+(const Value& a, const Value& b) { return a.t + b.t; }
Value operator-(const Value& a, const Value& b) { return a.t - b.t; }
Value operator*(const Value& a, const Value& b) { return a.t * b.t; }
Value operator/(const Value& a, const Value& b) { return a.t / b.t; }
Value fma(const Value& a, const Value& b, const Value& c) { return a.t * b.t + c.t; }
Value fnma(const Value& a, const Value& b, const Value& c) { return c.t - a.t * b.t; }
Value root(const Value& a) { return a.t.sqrt(); }
Value quotient(const Value& a, const Value& b) { return a.t / b.t; }
Value max(const Value& a, const Value& b) { return at::maximum(a.t, b.t); }
Value magnitude(const Value& a) { return a.t.abs(); }
Value sign(const Value& a) { return a.t.sign(); }
Value power(const Value& a, const Value& b) { return at::pow(a.t, b.t); }
Value square_root(const Value& a) { return a.t.sqrt(); }
Value larger(const Value& a, const Value& b) { return at::maximum(a.t, b.t); }
Value is_above(const Value& a, double b) { return a.t > b; }
Value choose(const Value& condition, const Value& yes, const Value& no) {
  return at::where(condition.t, yes.t, no.t);
}

at::Tensor in_fp64(const at::Tensor& tensor) { return tensor.to(at::kDouble); }

/// One step of one parameter.
class ParameterUpdate {
 public:
  ParameterUpdate(const OptimizerStep& step, size_t i) : step_(step), i_(i) {
    const int64_t index = step.indices[i];
    if (step.steps.defined()) count_ = step.steps.select(0, index);
    options_.assign(step.options.begin(), step.options.end());
    moment_ = {.step = count_.defined() ? Value(in_fp64(count_) + 1) : Value(1),
               .lr = in_fp64(step.lr) * (step.lr_factors.empty() ? 1 : step.lr_factors[i]),
               .weight_decay = step.weight_decays[i],
               .decays = step.weight_decays[i] == 0 ? 0 : 1,
               .options = options_.data(),
               .running = running_.data()};
    for (size_t k = 0; k < step.scheduled.size(); ++k) {
      const int64_t number = step.scheduled_options[k];
      if (number != kWeightDecayOption) {
        options_[static_cast<size_t>(number)] = in_fp64(step.scheduled[k]);
      } else if (step.weight_decays[i] == kScheduledDecay) {
        moment_.weight_decay = in_fp64(step.scheduled[k]);
      }
    }
    if (step.found_inf.defined()) found_inf_ = step.found_inf.ne(0);
  }

  template <typename Rule>
  void run() {
    at::Tensor all_running;
    if constexpr (Rule::kRunning > 0) {
      all_running = step_.running.select(0, step_.indices[i_]);
      for (int k = 0; k < Rule::kRunning; ++k) {
        running_[static_cast<size_t>(k)] = all_running.select(0, k).clone();
      }
    }
    Value factors[Rule::kFactors], next[kMostRunning];
    Rule::begin(moment_, factors, next);
    at::Tensor gradient = step_.gradients[i_];
    if (step_.grad_scale.defined()) gradient = gradient / step_.grad_scale;
    Value p = step_.parameters[i_], s[kMostStates];
    for (size_t k = 0; k < kStatesOf<Rule>; ++k) s[k] = state(k);
    if constexpr (Rule::kMeasures == Measures::kNothing) {
      Rule::apply(Value(gradient), p, s, factors);
    } else {
      const Value measured = Rule::measure(Value(gradient), p, s, factors);
      const Value ratio = Rule::ratio(moment_, norm_of(p), norm_of(measured));
      Rule::apply(Value(gradient), p, s, factors, ratio);
    }
    write(step_.parameters[i_], p.t);
    for (size_t k = 0; k < kStatesOf<Rule>; ++k) write(state(k), s[k].t);
    for (int k = 0; k < Rule::kRunning; ++k) write(all_running.select(0, k), next[k].t);
    if (count_.defined()) write(count_, moment_.step.t);
    if (!step_.bf16_copies.empty() && step_.bf16_copies[i_].defined()) {
      step_.bf16_copies[i_].copy_(step_.parameters[i_]);
    }
  }

 private:
  template <typename Rule>
  static constexpr size_t kStatesOf = static_cast<size_t>(Rule::kStates);

  static Value norm_of(const Value& numbers) {
    return at::linalg_vector_norm(numbers.t, 2, std::nullopt, false, at::kDouble);
  }
  const at::Tensor& state(size_t kind) const {
    return step_.states[kind * step_.parameters.size() + i_];
  }
  // What is skipped stays, whatever came out.
  void write(const at::Tensor& to, const at::Tensor& value) const {
    to.copy_(found_inf_ ? at::where(*found_inf_, to, value.to(to.options())) : value);
  }

  const OptimizerStep& step_;
  size_t i_;
  at::Tensor count_;
  std::vector<Value> options_;
  std::array<Value, kMostRunning> running_;
  UpdateMoment<Value> moment_;
  std::optional<at::Tensor> found_inf_;
};

using Run = void (*)(ParameterUpdate&);

template <int... kNumbers>
std::array<Run, sizeof...(kNumbers)> runs(std::integer_sequence<int, kNumbers...>) {
  return {[](ParameterUpdate& update) {
    update.run<typename RuleOf<kNumbers, UpdateRules>::Type>();
  }...};
}

}  // namespace

void update_by_operators(const OptimizerStep& step) {
  for (const at::Tensor& parameter : step.parameters) {
    if (parameter.scalar_type() == at::kBFloat16) {
      throw InternalError("update by operators: bf16 parameters");
    }
  }
  for (const at::Tensor& scales : step.scales) {
    if (scales.defined()) throw InternalError("update by operators: states in 8 bits");
  }
  static const auto kRuns = runs(std::make_integer_sequence<int, UpdateRules::kCount>());
  const Run run = kRuns[update_rule(step.rule).number];
  for (size_t i = 0; i < step.parameters.size(); ++i) {
    ParameterUpdate update(step, i);
    run(update);
  }
}

}  // namespace gallop::kernel
