// Step 6: one forward, one backward (1F1B; Narayanan et al., 2019). As soon as the last stage has
// done a forward pass, it does the backward pass, which frees the activations of that micro-batch.
// Each stage then alternates. A step takes as long as with GPipe, but stage r of p holds at most
// p - r micro-batches instead of all m: m can grow until the bubble is small.
//
// A schedule is a list of passes for each stage. `gallop pipeline` draws this one and its
// successors.
#include <algorithm>

#include "common.h"

struct Pass {
  bool is_forward;
  size_t micro_batch;
};
using Schedule = std::vector<Pass>;

Schedule one_forward_one_backward(size_t rank, size_t p, size_t m) {
  const size_t warmup = std::min(m, p - 1 - rank);
  Schedule passes;
  for (size_t i = 0; i < warmup; ++i) passes.push_back({true, i});
  for (size_t i = warmup; i < m; ++i) {
    passes.push_back({true, i});
    passes.push_back({false, i - warmup});
  }
  for (size_t i = m - warmup; i < m; ++i) passes.push_back({false, i});
  return passes;
}

// The time of a step in forward passes, of which a backward pass takes two.
int64_t time_of_step(const std::vector<Schedule>& schedules, size_t m) {
  const size_t p = schedules.size();
  constexpr int64_t kUnknown = -1;
  std::vector<std::vector<int64_t>> forward(p, std::vector<int64_t>(m, kUnknown)),
      backward = forward;
  std::vector<int64_t> free(p, 0);  // When each stage can begin its next pass.
  std::vector<size_t> next(p, 0);
  for (bool goes_on = true; goes_on;) {
    goes_on = false;
    for (size_t s = 0; s < p; ++s) {
      if (next[s] == schedules[s].size()) continue;
      const auto [is_forward, i] = schedules[s][next[s]];
      int64_t ready = 0;
      if (is_forward && s > 0) ready = forward[s - 1][i];
      if (!is_forward && s + 1 < p) ready = backward[s + 1][i];
      if (ready == kUnknown) continue;
      free[s] = std::max(free[s], ready) + (is_forward ? 1 : 2);
      (is_forward ? forward : backward)[s][i] = free[s];
      next[s] += 1;
      goes_on = true;
    }
  }
  return *std::max_element(free.begin(), free.end());
}

int main(int, char** argv) {
  return run_step(argv[0], {2, 3, 4}, [](const ProcessGroup& group) {
    const size_t p = static_cast<size_t>(group.size()), rank = static_cast<size_t>(group.rank()),
                 m = 8;
    std::vector<Schedule> schedules, gpipe(p);
    for (size_t s = 0; s < p; ++s) {
      schedules.push_back(one_forward_one_backward(s, p, m));
      for (size_t i = 0; i < m; ++i) gpipe[s].push_back({true, i});
      for (size_t i = 0; i < m; ++i) gpipe[s].push_back({false, i});
    }

    Tensors divided, whole;
    for (uint64_t i = 0; i < p; ++i) {
      divided.push_back(weights({8, 8}, 1 + i));
      whole.push_back(weights({8, 8}, 1 + i));
    }
    const Tensors inputs = random({32, 8}, 30).chunk(m);
    const auto loss = [](const at::Tensor& x) { return x.square().sum() / 32; };
    Stage stage(
        group, inputs, [&](const at::Tensor& x) { return at::tanh(at::matmul(x, divided[rank])); },
        loss);
    for (const Pass& pass : schedules[rank]) {
      if (pass.is_forward) stage.forward(pass.micro_batch);
      if (!pass.is_forward) stage.backward(pass.micro_batch);
    }
    stage.finish();
    for (at::Tensor x : inputs) {
      for (const at::Tensor& weight : whole) x = at::tanh(at::matmul(x, weight));
      loss(x).backward();
    }

    const at::Tensor held = at::full({1}, static_cast<int64_t>(stage.most_under_way), at::kLong);
    const at::Tensor all_held = at::empty({group.size()}, at::kLong);
    group.all_gather(all_held, held);
    if (rank == 0) {
      fmt::print("{} stages, {} micro-batches: a step takes {} forward passes, with GPipe {}\n", p,
                 m, time_of_step(schedules, m), time_of_step(gpipe, m));
      for (size_t s = 0; s < p; ++s) {
        fmt::print("stage {} holds up to {} micro-batches, with GPipe {}\n", s,
                   all_held.data_ptr<int64_t>()[s], m);
      }
    }

    Comparison comparison;
    comparison.add("gradients", divided[rank].grad(), whole[rank].grad(), 0);
    comparison.add("held micro-batches", held,
                   at::full({1}, static_cast<int64_t>(std::min(m, p - rank)), at::kLong), 0);
    return comparison.finish(group);
  });
}
