#pragma once

#include <functional>
#include <vector>

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/parallel/collectives.h"

// What collectives do on any device; `on` puts a tensor of the CPU there, sharing its memory.
namespace gallop::parallel {

// Part j of what rank i sends has i + j + 1 elements, 100 * i + j.
inline void expect_all_to_all(Collectives& collectives,
                              const std::function<at::Tensor(at::Tensor)>& on) {
  const int64_t size = collectives.size(), rank = collectives.rank();
  std::vector<int64_t> send, receive;
  std::vector<at::Tensor> parts, wanted;
  for (int64_t other = 0; other < size; ++other) {
    // Every second pair of ranks sends nothing.
    const int64_t count = (rank + other) % 2 == 0 ? rank + other + 1 : 0;
    send.push_back(count);
    receive.push_back(count);
    parts.push_back(at::full({count}, 100 * rank + other, at::kFloat));
    wanted.push_back(at::full({count}, 100 * other + rank, at::kFloat));
  }
  const at::Tensor input = at::cat(parts), all = at::cat(wanted);
  const at::Tensor memory = at::zeros({all.numel() + 1});
  const at::Tensor output = on(memory);
  collectives.all_to_all_async(output, on(input), receive, send);
  collectives.wait(output);
  collectives.begin(Section::kEvaluation, 1);
  EXPECT_TRUE(at::equal(memory.narrow(0, 0, all.numel()), all));
}

inline void expect_all_gather(Collectives& collectives,
                              const std::function<at::Tensor(at::Tensor)>& on) {
  std::vector<int64_t> sizes;
  std::vector<at::Tensor> wanted, own;
  for (int64_t rank = 0; rank < collectives.size(); ++rank) {
    sizes.push_back(rank == 1 ? 0 : rank + 3);
    wanted.push_back(at::full({sizes.back()}, 10.0 + static_cast<double>(rank)));
    own.push_back(rank == collectives.rank() ? wanted.back() : at::zeros({sizes.back()}));
  }
  const at::Tensor memory = at::cat(own);
  const at::Tensor tensor = on(memory);
  collectives.all_gather_async(tensor, sizes);
  collectives.wait(tensor);
  collectives.begin(Section::kEvaluation, 1);
  EXPECT_TRUE(at::equal(memory, at::cat(wanted)));
}

// In a ring, two tensors each.
inline void expect_send_and_recv(Collectives& collectives,
                                 const std::function<at::Tensor(at::Tensor)>& on) {
  const int size = collectives.size(), rank = collectives.rank();
  if (size == 1) {
    EXPECT_THROW(collectives.send_async(at::zeros({1}), 0), InternalError);
    return;
  }
  const at::Tensor first = at::full({5}, rank, at::kFloat),
                   second = at::full({70000}, -rank, at::kFloat);
  const at::Tensor got_first = at::zeros({5}), got_second = at::zeros({70000});
  const std::vector<at::Tensor> sent = {on(first), on(second)},
                                got = {on(got_first), on(got_second)};
  for (size_t i = 0; i < 2; ++i) {
    if (rank % 2 == 0) collectives.send_async(sent[i], (rank + 1) % size);
    collectives.recv_async(got[i], (rank + size - 1) % size);
    if (rank % 2 != 0) collectives.send_async(sent[i], (rank + 1) % size);
  }
  for (size_t i = 0; i < 2; ++i) {
    collectives.wait(got[i]);
    collectives.wait(sent[i]);
  }
  collectives.begin(Section::kEvaluation, 1);
  const int before = (rank + size - 1) % size;
  EXPECT_TRUE(at::equal(got_first, at::full({5}, before, at::kFloat)));
  EXPECT_TRUE(at::equal(got_second, at::full({70000}, -before, at::kFloat)));
}

}  // namespace gallop::parallel
