#include "common.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randn.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/custom_function.h>

#include "gallop/base/error.h"

at::Tensor random(at::IntArrayRef shape, uint64_t seed) {
  return at::randn(shape, at::detail::createCPUGenerator(seed), at::kDouble);
}

at::Tensor weights(at::IntArrayRef shape, uint64_t seed) {
  return (0.5 * random(shape, seed)).requires_grad_();
}

at::Tensor part_of(const at::Tensor& whole, int64_t dim, const ProcessGroup& group) {
  return whole.detach().chunk(group.size(), dim)[group.rank()].clone(at::MemoryFormat::Contiguous);
}

void sgd(const Tensors& weights, double lr) {
  for (const at::Tensor& weight : weights) {
    weight.detach().sub_(weight.grad(), lr);
    weight.mutable_grad().reset();
  }
}

void Comparison::add(const std::string& name, const at::Tensor& own, const at::Tensor& one_process,
                     double tolerance) {
  const double difference = (own.detach() - one_process.detach()).abs().max().item<double>();
  Row& row = rows_.try_emplace(name, Row{0, tolerance}).first->second;
  if (!(difference <= row.largest)) row.largest = difference;  // Also if it is not a number.
}

int Comparison::finish(const ProcessGroup& group) const {
  int code = 0;
  for (const auto& [name, row] : rows_) {
    const at::Tensor all = at::empty({group.size()}, at::kDouble);
    group.all_gather(all, at::full({1}, row.largest, at::kDouble));
    const double largest = all.max().item<double>();
    const bool is_good = largest <= row.tolerance;
    if (!is_good) code = 1;
    if (group.rank() != 0) continue;
    fmt::print("{:<22} largest difference {:.2g}, allowed {:.2g}{}\n", name, largest, row.tolerance,
               is_good ? "" : ": TOO LARGE");
  }
  return code;
}

int run_step(const char* program, const std::vector<int>& sizes,
             const std::function<int(const ProcessGroup&)>& step) {
  try {
    const ProcessGroup group = gallop::init_process_group(/*timeout=*/60);
    if (std::find(sizes.begin(), sizes.end(), group.size()) == sizes.end()) {
      throw gallop::UsageError(fmt::format("start {} processes: gallop launch -n {} {}",
                                           fmt::join(sizes, " or "), sizes.front(), program));
    }
    return step(group);
  } catch (const gallop::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}

Stage::Stage(const ProcessGroup& pipeline, Tensors inputs, Function layers, Function loss,
             double seconds)
    : pipeline_(pipeline),
      inputs_(std::move(inputs)),
      layers_(std::move(layers)),
      loss_(std::move(loss)),
      seconds_(seconds) {}

void Stage::forward(size_t micro_batch) {
  at::Tensor input = inputs_[micro_batch];
  if (!is_first()) {
    input = at::empty_like(input);
    pipeline_.recv(input, pipeline_.rank() - 1);
    input.requires_grad_();
  }
  at::Tensor output;
  compute(seconds_, [&] { output = is_last() ? loss_(layers_(input)) : layers_(input); });
  if (!is_last()) send(output, pipeline_.rank() + 1);
  under_way_[micro_batch] = {input, output};
  most_under_way = std::max(most_under_way, under_way_.size());
}

void Stage::backward(size_t micro_batch) {
  const Pass pass = under_way_.extract(micro_batch).mapped();
  at::Tensor gradient;
  if (!is_last()) {
    gradient = at::empty_like(pass.output);
    pipeline_.recv(gradient, pipeline_.rank() + 1);
  }
  compute(2 * seconds_, [&] { pass.output.backward(gradient); });
  if (!is_first()) send(pass.input.grad(), pipeline_.rank() - 1);
}

void Stage::finish() {
  for (Work& send : sends_) send.wait();
  sends_.clear();
}

// Started only: two neighbors that send to each other at the same time would wait forever.
void Stage::send(const at::Tensor& tensor, int rank) {
  sends_.push_back(pipeline_.send_async(tensor.contiguous(), rank));
}

void Stage::compute(double seconds, const std::function<void()>& function) {
  const auto begin = std::chrono::steady_clock::now();
  function();
  std::this_thread::sleep_until(begin + std::chrono::duration<double>(seconds));
  computing += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

namespace {

struct Region : torch::autograd::Function<Region> {
  static at::Tensor forward(torch::autograd::AutogradContext* context, const at::Tensor& input,
                            const ProcessGroup* group, Collective forward, Collective backward) {
    context->saved_data["group"] = reinterpret_cast<int64_t>(group);
    context->saved_data["backward"] = reinterpret_cast<int64_t>(backward);
    return forward(input.contiguous(), *group);
  }
  static Tensors backward(torch::autograd::AutogradContext* context, const Tensors& gradients) {
    const auto* group = reinterpret_cast<const ProcessGroup*>(context->saved_data["group"].toInt());
    const auto backward = reinterpret_cast<Collective>(context->saved_data["backward"].toInt());
    return {backward(gradients[0].contiguous(), *group), {}, {}, {}};
  }
};

at::Tensor copy(const at::Tensor& tensor, const ProcessGroup& /*group*/) { return tensor.clone(); }

at::Tensor all_reduce(const at::Tensor& tensor, const ProcessGroup& group) {
  const at::Tensor sum = tensor.clone();
  group.all_reduce(sum);
  return sum;
}

}  // namespace

at::Tensor region(const at::Tensor& input, const ProcessGroup& group, Collective forward,
                  Collective backward) {
  return Region::apply(input, &group, forward, backward);
}

at::Tensor copy_to_region(const at::Tensor& input, const ProcessGroup& group) {
  return region(input, group, copy, all_reduce);
}

at::Tensor reduce_from_region(const at::Tensor& input, const ProcessGroup& group) {
  return region(input, group, all_reduce, copy);
}
