#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/rand_like.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/kernel/optimizer_step.h"
#include "gallop/kernel/update_table.h"

namespace gallop::compile {

/// Parameters of many sizes, of which every third has a gradient in bf16, for a rule.
struct Parameters {
  kernel::OptimizerStep step;

  Parameters(const kernel::UpdateRule& rule, size_t count) {
    const int64_t sizes[] = {1, 5, 255, 4095, 4096, 4097, 9000};
    step.rule = rule.name;
    for (int i = 0; i < rule.options; ++i) step.options.push_back(i % 2 == 0 ? 0.9 : 0.75);
    for (size_t i = 0; i < count; ++i) {
      const int64_t size = sizes[i % std::size(sizes)];
      step.parameters.push_back(at::randn({size}));
      step.gradients.push_back(at::randn({size}) * std::pow(10.0, static_cast<double>(i % 5) - 3));
      if (i % 3 == 0) step.gradients.back() = step.gradients.back().to(at::kBFloat16);
      step.weight_decays.push_back(i % 2 == 0 ? 0.01 : 0);
      step.lr_factors.push_back(i % 4 == 0 ? 0.5 : 1);
      step.bf16_copies.push_back(i % 2 == 0 ? at::zeros({size}, at::kBFloat16) : at::Tensor());
      step.indices.push_back(static_cast<int64_t>(count - 1 - i));
    }
    // Some states are squares.
    for (size_t k = 0; k < static_cast<size_t>(rule.states) * count; ++k) {
      step.states.push_back(at::rand_like(step.parameters[k % count]) + 0.1);
    }
    step.steps = at::zeros({static_cast<int64_t>(count)});
    for (size_t i = 0; i < count; i += 2) step.steps[static_cast<int64_t>(i)] = i;
    if (rule.running > 0) {
      step.running = at::rand({static_cast<int64_t>(count), rule.running}, at::kDouble);
    }
    step.lr = at::full({}, 0.1F);
    step.grad_scale = at::full({}, 4.0F);
    step.found_inf = at::zeros({});
  }

  Parameters clone() const {
    Parameters copy = *this;
    for (auto* list : {&copy.step.parameters, &copy.step.bf16_copies, &copy.step.states,
                       &copy.step.compensations}) {
      for (at::Tensor& tensor : *list) tensor = tensor.defined() ? tensor.clone() : tensor;
    }
    copy.step.steps = step.steps.clone();
    if (step.running.defined()) copy.step.running = step.running.clone();
    return copy;
  }

  /// A copy on another device.
  Parameters on(c10::Device device) const {
    Parameters copy = clone();
    for (auto* list : {&copy.step.parameters, &copy.step.gradients, &copy.step.bf16_copies,
                       &copy.step.states, &copy.step.compensations}) {
      for (at::Tensor& tensor : *list) tensor = tensor.defined() ? tensor.to(device) : tensor;
    }
    for (at::Tensor* tensor : {&copy.step.steps, &copy.step.running, &copy.step.lr,
                               &copy.step.grad_scale, &copy.step.found_inf}) {
      if (tensor->defined()) *tensor = tensor->to(device);
    }
    return copy;
  }

  /// A copy in which these lists of tensors begin one number behind aligned addresses.
  Parameters unaligned(
      const std::vector<std::vector<at::Tensor> kernel::OptimizerStep::*>& lists) const {
    Parameters copy = clone();
    for (const auto list : lists) {
      for (at::Tensor& tensor : copy.step.*list) {
        if (!tensor.defined()) continue;
        const at::Tensor room = at::zeros({tensor.numel() + 1}, tensor.options());
        tensor = room.narrow(0, 1, tensor.numel()).copy_(tensor);
      }
    }
    return copy;
  }

  /// Relative to what a step changes at most.
  void expect_near(const Parameters& other) const {
    const auto near = [](const at::Tensor& a, const at::Tensor& b, const char* what, size_t i) {
      const double error = (a - b).abs().max().item<double>();
      EXPECT_LE(error, 6e-7 * std::max(1.0, b.abs().max().item<double>())) << what << ' ' << i;
    };
    for (size_t i = 0; i < step.parameters.size(); ++i) {
      near(step.parameters[i], other.step.parameters[i], "parameter", i);
      for (const auto* update : {&step, &other.step}) {
        if (!update->bf16_copies[i].defined()) continue;
        EXPECT_TRUE(at::equal(update->bf16_copies[i], update->parameters[i].to(at::kBFloat16)));
      }
    }
    for (size_t k = 0; k < step.states.size(); ++k) {
      near(step.states[k], other.step.states[k], "state", k);
    }
    EXPECT_TRUE(at::equal(step.steps, other.step.steps));
    if (step.running.defined()) near(step.running, other.step.running, "running", 0);
  }

  void expect_equal(const Parameters& other) const {
    for (const auto list :
         {&kernel::OptimizerStep::parameters, &kernel::OptimizerStep::states,
          &kernel::OptimizerStep::bf16_copies, &kernel::OptimizerStep::compensations}) {
      for (size_t i = 0; i < (step.*list).size(); ++i) {
        if (!(step.*list)[i].defined()) continue;
        EXPECT_TRUE(at::equal((step.*list)[i], (other.step.*list)[i])) << i;
      }
    }
    EXPECT_TRUE(at::equal(step.steps, other.step.steps));
  }
};

}  // namespace gallop::compile
