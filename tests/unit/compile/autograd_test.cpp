#include <functional>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/fft_irfft.h>
#include <ATen/ops/fft_rfft.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/view_as_complex.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/compile/compiled_function.h"
#include "gallop/compile/passes.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;
using torch::autograd::AutogradContext;

// x^3 with a custom gradient.
struct Cube : torch::autograd::Function<Cube> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x) {
    context->save_for_backward({x});
    return x * x * x;
  }
  static torch::autograd::variable_list backward(AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const at::Tensor x = context->get_saved_variables()[0];
    return {grads[0] * 3 * x * x};
  }
};

// A layer that saves only its arguments and is recomputed in the backward pass.
struct Recomputed : torch::autograd::Function<Recomputed> {
  static at::Tensor layer(const at::Tensor& x, const at::Tensor& weight) {
    return at::linear(x, weight).tanh().square();
  }
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x,
                            const at::Tensor& weight) {
    context->save_for_backward({x, weight});
    const at::NoGradGuard no_grad;
    return layer(x, weight);
  }
  static torch::autograd::variable_list backward(AutogradContext* context,
                                                 torch::autograd::variable_list grads) {
    const auto saved = context->get_saved_variables();
    const at::AutoGradMode grad(true);
    const at::Tensor x = saved[0].detach().requires_grad_();
    const at::Tensor weight = saved[1].detach().requires_grad_();
    return torch::autograd::grad({layer(x, weight)}, {x, weight}, {grads[0]});
  }
};

struct Network {
  Tensors state;  // Weights, then other persistent state.
  std::function<Tensors(const at::Tensor& x)> step;
};

at::Tensor weight(int64_t rows, int64_t columns) {
  return at::arange(rows * columns, at::kFloat).view({rows, columns}).sin().requires_grad_();
}

void descend(const Tensors& weights) {
  const at::NoGradGuard no_grad;
  for (const at::Tensor& weight : weights) {
    if (weight.grad().defined()) weight.sub_(weight.grad() * 0.01);
  }
}

void drop_gradients(const Tensors& weights) {
  for (const at::Tensor& weight : weights) weight.mutable_grad().reset();
}

Network with_custom_function() {
  const Tensors weights = {weight(4, 3)};
  return {weights, [weights](const at::Tensor& x) -> Tensors {
            drop_gradients(weights);
            const at::Tensor loss = Cube::apply(at::linear(x, weights[0])).mean();
            loss.backward();
            descend(weights);
            return {loss.detach()};
          }};
}

Network with_recomputation() {
  const Tensors weights = {weight(4, 3), weight(2, 4)};
  return {weights, [weights](const at::Tensor& x) -> Tensors {
            drop_gradients(weights);
            const at::Tensor hidden = Recomputed::apply(x, weights[0]);
            const at::Tensor loss = Recomputed::apply(hidden, weights[1]).sum();
            loss.backward();
            descend(weights);
            return {loss.detach(), hidden.detach()};
          }};
}

Network with_hooks() {
  const Tensors weights = {weight(4, 3)};
  const at::Tensor seen = at::zeros_like(weights[0]);
  weights[0].register_hook([seen](const at::Tensor& grad) {
    const at::NoGradGuard no_grad;
    seen.add_(grad);
    return grad.clamp(-0.1, 0.1);
  });
  return {{weights[0], seen}, [weights](const at::Tensor& x) -> Tensors {
            drop_gradients(weights);
            const at::Tensor y = at::linear(x, weights[0]);
            y.register_hook([](const at::Tensor& grad) { return grad * 2; });
            y.square().sum().backward();
            descend(weights);
            return {weights[0].grad()};
          }};
}

Network with_average() {
  const Tensors weights = {weight(4, 3)};
  const at::Tensor average = weights[0].detach().clone();
  return {{weights[0], average}, [weights, average](const at::Tensor& x) -> Tensors {
            drop_gradients(weights);
            at::linear(x, weights[0]).square().mean().backward();
            descend(weights);
            const at::NoGradGuard no_grad;
            average.mul_(0.9).add_(weights[0], 0.1);
            return {average.sum()};
          }};
}

// Accumulates into existing gradients, and zeroes them in place afterwards.
Network with_kept_gradients() {
  const Tensors weights = {weight(4, 3)};
  weights[0].mutable_grad() = at::zeros_like(weights[0]).fill_(0.5);
  return {{weights[0], weights[0].grad()}, [weights](const at::Tensor& x) -> Tensors {
            for (int piece = 0; piece < 3; ++piece) {
              at::linear(x.select(0, piece), weights[0]).square().sum().backward();
            }
            descend(weights);
            const at::Tensor norm = weights[0].grad().norm();
            const at::NoGradGuard no_grad;
            weights[0].grad().mul_(0.25);
            return {norm};
          }};
}

Network with_tied_weights() {
  const Tensors weights = {weight(4, 3)};
  const at::Tensor same = weights[0];
  return {weights, [weights, same](const at::Tensor& x) -> Tensors {
            drop_gradients(weights);
            const at::Tensor loss =
                at::linear(at::linear(x, weights[0]).tanh(), same.t()).square().mean();
            loss.backward();
            descend(weights);
            return {loss.detach(), same};
          }};
}

// Products with complex weights, whose gradients have lazy conjugates: as arguments of GEMMs, which
// take them, and of other operators, for which they are computed.
Network with_complex_weights() {
  const Tensors weights = {weight(4, 2), weight(2, 2)};
  return {weights, [weights](const at::Tensor& x) -> Tensors {
            drop_gradients(weights);
            const at::Tensor matrix = at::view_as_complex(weights[0].view({2, 2, 2}));
            const at::Tensor row = at::view_as_complex(weights[1]);
            const at::Tensor spectrum = at::fft_rfft(x.flatten(0, 1));
            const at::Tensor y = at::mm(spectrum, matrix.conj()) * row.conj() + spectrum.conj();
            const at::Tensor loss = at::fft_irfft(y, 3).square().sum() +
                                    at::mm(y.conj(), matrix.t()).conj().abs().sum() +
                                    at::imag(y).square().sum();
            loss.backward();
            descend(weights);
            return {loss.detach(), y.conj().clone().detach()};
          }};
}

struct Tested {
  std::string name;
  Network (*make)();
};

void PrintTo(const Tested& tested, std::ostream* out) { *out << tested.name; }

class CompiledAutograd : public testing::TestWithParam<Tested> {};

TEST_P(CompiledAutograd, IsBitIdenticalToTheFunction) {
  const Network plain = GetParam().make(), other = GetParam().make();
  const CompileConfig config{.passes_off = names_of_rounding_passes()};
  CompiledFunction compiled([&](const Tensors& in, int64_t) { return other.step(in[0]); },
                            other.state, config);
  for (int call = 0; call < 6; ++call) {
    const at::Tensor x = at::randn({3, 5, 3});
    const Tensors wanted = plain.step(x), got = compiled({x});
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_TRUE(at::equal(got[i], wanted[i])) << call;
    for (size_t i = 0; i < plain.state.size(); ++i) {
      EXPECT_TRUE(at::equal(other.state[i], plain.state[i])) << "call " << call << ", state " << i;
    }
  }
  EXPECT_EQ(compiled.report().replayed, 6);
}

INSTANTIATE_TEST_SUITE_P(, CompiledAutograd,
                         testing::Values(Tested{"CustomFunction", with_custom_function},
                                         Tested{"Recomputation", with_recomputation},
                                         Tested{"Hooks", with_hooks},
                                         Tested{"Average", with_average},
                                         Tested{"KeptGradients", with_kept_gradients},
                                         Tested{"TiedWeights", with_tied_weights},
                                         Tested{"ComplexWeights", with_complex_weights}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace gallop::compile
