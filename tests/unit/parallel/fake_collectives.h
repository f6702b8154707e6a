#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "gallop/parallel/collectives.h"

namespace gallop::parallel {

/// One of any number of processes, of which no other is there: calls change nothing, and are noted.
/// As c10d::FakeProcessGroup, whose header wants Python's.
class FakeCollectives final : public Collectives {
 public:
  FakeCollectives(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_reduce_async(const at::Tensor& tensor) override {
    calls.push_back(
        fmt::format("sum of {} {}", tensor.numel(), c10::toString(tensor.scalar_type())));
    bytes += static_cast<int64_t>(tensor.nbytes());
  }
  void wait(const at::Tensor& tensor) override {
    calls.push_back(fmt::format("wait for {}", tensor.numel()));
  }
  void broadcast(const at::Tensor& tensor) override {
    calls.push_back(fmt::format("broadcast of {}", tensor.numel()));
  }
  void begin(Section, int64_t) override {}
  void set_limits(const Limits&) override {}
  Limits limits() const override { return {}; }

  std::vector<std::string> calls;
  int64_t bytes = 0;  ///< Summed.

 private:
  int rank_, size_;
};

}  // namespace gallop::parallel
