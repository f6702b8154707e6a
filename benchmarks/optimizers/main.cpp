// bench_optimizers OPTIMIZER[+WRAPPER...] TENSORS [OPTION=VALUE...]: updates 40 M parameters in
// TENSORS matrices, with clipping; every wrapper is active at every step. weights=bf16 makes the
// parameters and their gradients bf16. Reads numbers of updates from standard input, runs them, and
// writes their seconds to one line each.
#include <algorithm>
#include <iostream>
#include <string>
#include <string_view>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/heap.h"
#include "gallop/config/resolve.h"
#include "gallop/optim/gradients.h"
#include "gallop/optim/wrapper.h"

namespace {

using namespace gallop;

constexpr int64_t kColumns = 1000, kRows = 40'000;

constexpr std::string_view kBf16Weights = "weights=bf16";

bool has_bf16_weights(char** args) {
  for (; *args != nullptr; ++args) {
    if (*args == kBf16Weights) return true;
  }
  return false;
}

NamedTensors make_parameters(int64_t count, at::ScalarType format) {
  NamedTensors parameters;
  for (int64_t i = 0; i < count; ++i) {
    parameters.push_back(
        {fmt::format("blocks.{}.weight", i), at::randn({kRows / count, kColumns}).to(format)});
    parameters.back().tensor.mutable_grad() = at::randn({kRows / count, kColumns}).to(format);
  }
  return parameters;
}

// Parses "+lookahead+ema".
config::ComponentList wrappers_of(const optim::WrapperRegistry& registry, const std::string& names,
                                  config::Problems& problems) {
  std::string yaml;
  for (size_t at = 0; at < names.size();) {
    const size_t end = std::min(names.find('+', at + 1), names.size());
    const std::string name = names.substr(at + 1, end - at - 1);
    yaml += name == "lookahead" ? "{lookahead: {k: 1}}, "
            : name == "swa"     ? "{swa: {start: 0, every: 1 step}}, "
                                : name + ", ";
    at = end;
  }
  config::ComponentList list(registry);
  config::read_fields(
      config::parse_yaml("{wrappers: [" + yaml + "]}", "wrappers"),
      [&](config::Visitor& visitor) { visitor.field({.name = "wrap", .help = ""}, list); },
      problems);
  problems.throw_if_any();
  return list;
}

std::unique_ptr<optim::Optimizer> build(const optim::OptimizerRegistry& registry, char** args,
                                        const NamedTensors& parameters) {
  const std::string name = args[0];
  const size_t plus = std::min(name.find('+'), name.size());
  config::Component component(registry, name.substr(0, plus));
  config::Node options;
  for (char** word = args + 2; *word != nullptr; ++word) {
    const std::string text = *word;
    if (text == kBf16Weights) continue;
    options.at_or_add(text.substr(0, text.find('=')), {}) =
        config::Node::make_scalar(text.substr(text.find('=') + 1));
  }
  config::Problems problems;
  config::read_fields(
      options, [&](config::Visitor& visitor) { component.visit_fields(visitor); }, problems);
  problems.throw_if_any();
  const optim::WrapperRegistry wrappers = optim::built_in_wrappers();
  return optim::wrap(wrappers, wrappers_of(wrappers, name.substr(plus), problems),
                     {.optimizer = registry.build(component, parameters),
                      .parameters = parameters,
                      .buffers = {},
                      .length = {.samples = 1e6, .batch = 1}});
}

// As in train/step.cpp.
void update(optim::Optimizer& optimizer, const NamedTensors& parameters, const at::Tensor& lr) {
  const at::Tensor norm = optim::gradient_norm(optim::gradients_of(parameters));
  static const at::Tensor kDraws = at::ones({2}, at::kLong);
  optimizer.step(lr, optim::clip_divisor(norm, 1.0), norm.sub(norm).to(at::kFloat),
                 {.draws = kDraws});
}

void serve(char** args) {
  const at::NoGradGuard no_grad;
  const optim::OptimizerRegistry registry = optim::built_in_optimizers();
  const NamedTensors parameters =
      make_parameters(std::stoll(args[1]), has_bf16_weights(args) ? at::kBFloat16 : at::kFloat);
  const auto optimizer = build(registry, args, parameters);
  const at::Tensor lr = at::scalar_tensor(optimizer->base_lr(), at::TensorOptions(at::kFloat));
  int64_t count = 0;
  while (std::cin >> count) {
    for (int64_t i = 0; i < count; ++i) {
      const double begin = monotonic_seconds();
      update(*optimizer, parameters, lr);
      std::cout << monotonic_seconds() - begin << (i + 1 < count ? ' ' : '\n');
    }
    std::cout.flush();
  }
}

}  // namespace

int main(int count, char** args) {
  if (count < 3) {
    std::cerr << "usage: bench_optimizers OPTIMIZER[+WRAPPER...] TENSORS [OPTION=VALUE...]\n";
    return 2;
  }
  gallop::retain_freed_memory();  // As in the program.
  try {
    serve(args + 1);
  } catch (const gallop::Error& error) {
    std::cerr << "bench_optimizers: " << error.what() << '\n';
    return 2;
  }
  return 0;
}
