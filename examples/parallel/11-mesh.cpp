// Step 11: all together. The processes form a grid: neighbors divide layers (tp), groups of these
// are replicas with a part of every batch each (dp), and groups of replicas are stages (pp). Tensor
// parallelism communicates most, so that its processes have neighboring ranks, best on one host;
// pipelines communicate least.
//
// Each kind of parallelism has groups of its own and needs to know nothing of the others:
//   tp  f and g in every block       (step 8)
//   pp  activations of micro-batches (step 5)
//   dp  gradients, once in a step    (step 3)
#include <ATen/ops/gelu.h>

#include "common.h"

constexpr int kTensor = 2, kStages = 2;

struct Block {
  at::Tensor a, b;

  explicit Block(uint64_t seed) : a(weights({8, 16}, seed)), b(weights({16, 8}, seed + 1)) {}
  Block(const Block& whole, const ProcessGroup& tp)
      : a(part_of(whole.a, 1, tp).requires_grad_()), b(part_of(whole.b, 0, tp).requires_grad_()) {}

  at::Tensor forward(const at::Tensor& x) const {
    return x + at::matmul(at::gelu(at::matmul(x, a)), b);
  }
  at::Tensor forward(const at::Tensor& x, const ProcessGroup& tp) const {
    return x +
           reduce_from_region(at::matmul(at::gelu(at::matmul(copy_to_region(x, tp), a)), b), tp);
  }
};

int main(int, char** argv) {
  return run_step(argv[0], {4, 8}, [](const ProcessGroup& world) {
    // rank = (stage * replicas + replica) * kTensor + part
    const int replicas = world.size() / (kStages * kTensor);
    const int part = world.rank() % kTensor, replica = world.rank() / kTensor % replicas,
              stage = world.rank() / kTensor / replicas;
    const auto rank_of = [&](int s, int r, int t) { return (s * replicas + r) * kTensor + t; };
    std::vector<int> along_tp, along_dp, along_pp;
    for (int t = 0; t < kTensor; ++t) along_tp.push_back(rank_of(stage, replica, t));
    for (int r = 0; r < replicas; ++r) along_dp.push_back(rank_of(stage, r, part));
    for (int s = 0; s < kStages; ++s) along_pp.push_back(rank_of(s, replica, part));
    const ProcessGroup tp = world.subgroup(along_tp, "tp"), dp = world.subgroup(along_dp, "dp"),
                       pp = world.subgroup(along_pp, "pp");

    const std::vector<Block> whole = {Block(1), Block(3)};
    const Block own(whole[static_cast<size_t>(stage)], tp);
    constexpr int64_t kMicroBatches = 4, kRows = 32;
    const auto loss = [](const at::Tensor& x) { return x.square().sum() / (8 * kRows); };
    for (uint64_t step = 0; step < 3; ++step) {
      const at::Tensor batch = random({kRows, 8}, 10 + step);
      const Tensors inputs = batch.chunk(replicas)[replica].chunk(kMicroBatches);
      Stage passes(
          pp, inputs, [&](const at::Tensor& x) { return own.forward(x, tp); }, loss);
      for (size_t i = 0; i < kMicroBatches; ++i) passes.forward(i);
      for (size_t i = 0; i < kMicroBatches; ++i) passes.backward(i);
      passes.finish();
      for (const at::Tensor& weight : {own.a, own.b}) dp.all_reduce(weight.grad());
      sgd({own.a, own.b}, 0.05);

      loss(whole[1].forward(whole[0].forward(batch))).backward();
      for (const Block& block : whole) sgd({block.a, block.b}, 0.05);
    }
    if (world.rank() == 0) {
      fmt::print("{} processes: {} stages x {} replicas x {} parts\n", world.size(), kStages,
                 replicas, kTensor);
    }

    Comparison comparison;
    const Block& wanted = whole[static_cast<size_t>(stage)];
    comparison.add("weights", own.a, part_of(wanted.a, 1, tp), 1e-12);
    comparison.add("weights", own.b, part_of(wanted.b, 0, tp), 1e-12);
    // Replicas have made the same updates.
    const at::Tensor of_first = own.a.detach().clone();
    dp.broadcast(of_first);
    comparison.add("weights, in replicas", own.a, of_first, 0);
    return comparison.finish(world);
  });
}
