#include "unit/compile/stock_network.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "gallop/compile/compiled_function.h"
#include "gallop/compile/graph.h"

namespace gallop::compile {

namespace {

using Tensors = StockNetwork::Tensors;

class Autocast {
 public:
  explicit Autocast(bool on) {
    at::autocast::set_autocast_enabled(at::kCPU, on);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::increment_nesting();
  }
  ~Autocast() {
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(at::kCPU, false);
  }
};

at::Tensor copy_in(const at::Tensor& tensor, at::ScalarType format) {
  return tensor.detach().to(tensor.is_floating_point() ? format : tensor.scalar_type(),
                            /*non_blocking=*/false, /*copy=*/true);
}

// A copy of the network in training.
class Run {
 public:
  Run(const StockNetwork& network, at::ScalarType format, bool compile,
      std::vector<std::string> passes_off = {})
      : network_(network), format_(format) {
    for (at::Tensor& parameter : network_.parameters) {
      parameter = copy_in(parameter, format).requires_grad_();
    }
    for (at::Tensor& buffer : network_.buffers) buffer = copy_in(buffer, format);
    network_.bf16 = network.bf16 && format == at::kFloat;
    if (compile) {
      // Gradients in bf16 are too rough for the comparison of fp32 results.
      const int64_t verify_every = network_.bf16 ? 0 : 4;
      compiled_.emplace(
          [this](const Tensors& batch, int64_t) { return step(batch); }, state(),
          CompileConfig{.verify_every = verify_every, .passes_off = std::move(passes_off)});
    }
  }

  Tensors run(const Tensors& batch) {
    Tensors own;
    for (const at::Tensor& tensor : batch) own.push_back(copy_in(tensor, format_));
    return compiled_ ? (*compiled_)(own) : step(own);
  }

  Tensors state() const {
    Tensors all = network_.parameters;
    all.insert(all.end(), network_.buffers.begin(), network_.buffers.end());
    return all;
  }
  void set_state(const Tensors& other) {
    const at::NoGradGuard no_grad;
    const Tensors own = state();
    for (size_t i = 0; i < own.size(); ++i) own[i].copy_(other[i]);
  }

  const CompiledFunction& compiled() const { return *compiled_; }

 private:
  // Returns the results of the network, then the gradients.
  Tensors step(const Tensors& batch) {
    for (const at::Tensor& parameter : network_.parameters) parameter.mutable_grad().reset();
    Tensors results;
    {
      const Autocast autocast(network_.bf16);
      results = network_.forward(network_, batch);
    }
    results[0].backward();
    const at::NoGradGuard no_grad;
    for (at::Tensor& result : results) result = result.detach();
    for (const at::Tensor& parameter : network_.parameters) {
      if (!parameter.grad().defined()) continue;
      results.push_back(network_.keeps_gradients ? parameter.grad().mul(1) : parameter.grad());
      parameter.sub_(parameter.grad() * 0.01);
    }
    return results;
  }

  StockNetwork network_;
  at::ScalarType format_;
  std::optional<CompiledFunction> compiled_;
};

struct Distance {
  double compiled = 0, stock = 0, norm = 0;
  bool is_number = false;
};

double square(const at::Tensor& a, const at::Tensor& b) {
  const double norm = (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>();
  return norm * norm;
}

std::map<std::string, int> calls_of(const CompiledFunction& compiled) {
  std::map<std::string, int> calls;
  for (const Graph* graph : compiled.graphs()) {
    for (const Node& node : graph->nodes) calls[name_of(node.op)] += 1;
  }
  return calls;
}

std::string list_of(const std::map<std::string, int>& calls) {
  std::string list;
  for (const auto& [name, count] : calls) list += name + " " + std::to_string(count) + "\n";
  return list;
}

void expect_calls(const CompiledFunction& compiled, const Replacement& replacement) {
  const auto calls = calls_of(compiled);
  const auto count = [&](const std::string& name) {
    const auto found = calls.find(name);
    return found == calls.end() ? 0 : found->second;
  };
  for (const auto& [name, times] : replacement.wanted) {
    EXPECT_EQ(count(name), times) << name << "\n" << list_of(calls);
  }
  for (const std::string& name : replacement.replaced) {
    EXPECT_EQ(count(name), 0) << name << "\n" << list_of(calls);
  }
}

}  // namespace

at::Tensor random(at::IntArrayRef sizes, uint64_t seed, double scale) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kFloat).mul_(scale);
}

void expect_replaced(const StockNetwork& network, const Replacement& replacement) {
  Run truth(network, at::kDouble, false), stock(network, at::kFloat, false),
      compiled(network, at::kFloat, true, replacement.passes_off);
  std::vector<Distance> distances;
  constexpr int kSteps = 8;
  for (size_t i = 0; i < kSteps; ++i) {
    truth.set_state(stock.state());
    compiled.set_state(stock.state());
    const Tensors& batch = network.batches[i % network.batches.size()];
    Tensors exact = truth.run(batch), wanted = stock.run(batch), got = compiled.run(batch);
    for (auto [list, run] : {std::pair(&exact, &truth), {&wanted, &stock}, {&got, &compiled}}) {
      const Tensors state = run->state();
      list->insert(list->end(), state.begin(), state.end());
    }
    distances.resize(exact.size());
    for (size_t j = 0; j < exact.size(); ++j) {
      distances[j].compiled += square(got[j], exact[j]);
      distances[j].stock += square(wanted[j], exact[j]);
      distances[j].norm += square(exact[j], exact[j].mul(0));
      distances[j].is_number = exact[j].numel() == 1;
    }
  }
  EXPECT_EQ(compiled.compiled().report().replayed, kSteps);
  // For a single tensor, chance decides which error is larger; for all together it does less so.
  double all_ours = 0, all_theirs = 0;
  for (size_t j = 0; j < distances.size(); ++j) {
    const auto& [ours, theirs, norm, is_number] = distances[j];
    double limit = std::max(1.25 * std::sqrt(theirs), 6e-7 * std::sqrt(norm));
    // A number alone, as the loss, may be rounded either way: in bf16 by half a unit of 2^-7.
    const bool is_narrow = theirs > 1e-8 * norm;
    if (is_number && is_narrow) limit = std::max(limit, std::sqrt(norm) / 256);
    EXPECT_LE(std::sqrt(ours), limit) << "tensor " << j << " of " << std::sqrt(norm);
    all_ours += ours / (norm + 1e-300);
    all_theirs += theirs / (norm + 1e-300);
  }
  const double least = 4e-7 * std::sqrt(static_cast<double>(distances.size()));
  EXPECT_LE(std::sqrt(all_ours), std::max(1.1 * std::sqrt(all_theirs), least));
  expect_calls(compiled.compiled(), replacement);
}

void expect_left_alone(const StockNetwork& network, const std::vector<std::string>& unwanted) {
  Run stock(network, at::kFloat, false),
      compiled(network, at::kFloat, true, {"fuse", "linear-layers"});
  at::Generator random_numbers = at::globalContext().defaultGenerator(at::kCPU);
  for (size_t i = 0; i < 5; ++i) {
    const Tensors& batch = network.batches[i % network.batches.size()];
    random_numbers.set_current_seed(i);
    const Tensors wanted = stock.run(batch);
    random_numbers.set_current_seed(i);
    const Tensors got = compiled.run(batch);
    for (size_t j = 0; j < wanted.size(); ++j) EXPECT_TRUE(at::equal(got[j], wanted[j])) << j;
    const Tensors left = stock.state(), right = compiled.state();
    for (size_t j = 0; j < left.size(); ++j) EXPECT_TRUE(at::equal(left[j], right[j])) << j;
  }
  EXPECT_EQ(compiled.compiled().report().replayed, 5);
  for (const auto& [name, count] : calls_of(compiled.compiled())) {
    for (const std::string& part : unwanted) {
      EXPECT_EQ(name.find(part), std::string::npos) << name;
    }
  }
}

}  // namespace gallop::compile
