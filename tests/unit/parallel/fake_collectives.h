#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/parallel/collectives.h"

namespace gallop::parallel {

/// One of any number of processes, of which no other is there: calls are noted, and what others
/// would send is zero. As c10d::FakeProcessGroup, whose header wants Python's.
class FakeCollectives final : public Collectives {
 public:
  FakeCollectives(int rank, int size) : rank_(rank), size_(size) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void all_reduce_async(const at::Tensor& tensor) override {
    note("sum", tensor, tensor);
    bytes += static_cast<int64_t>(tensor.nbytes());
  }
  void all_to_all_async(const at::Tensor& output, const at::Tensor& input, c10::IntArrayRef receive,
                        c10::IntArrayRef send) override {
    require_parts("all-to-all", send, input.numel());
    if (static_cast<int>(receive.size()) != size_) throw InternalError("all-to-all: no part each");
    output.zero_();
    note("all-to-all", output, input);
    bytes += static_cast<int64_t>(input.nbytes());
  }
  void all_gather_async(const at::Tensor& tensor, c10::IntArrayRef sizes) override {
    require_parts("all-gather", sizes, tensor.numel());
    int64_t begin = 0;
    for (int rank = 0; rank < size_; ++rank) {
      const int64_t part = sizes[static_cast<size_t>(rank)];
      if (rank != rank_) tensor.narrow(0, begin, part).zero_();
      begin += part;
    }
    note("all-gather", tensor, tensor);
    gathered_bytes += static_cast<int64_t>(tensor.nbytes());
  }
  void send_async(const at::Tensor& tensor, int to) override {
    note(fmt::format("send to {}", to), tensor, tensor);
  }
  void recv_async(const at::Tensor& tensor, int from) override {
    note(fmt::format("recv from {}", from), tensor, tensor);
  }
  void wait(const at::Tensor& tensor) override {
    calls.push_back("wait for " + waits_[key_of(tensor)]);
  }
  void broadcast(const at::Tensor& tensor) override {
    calls.push_back(fmt::format("broadcast of {}", tensor.numel()));
  }
  void begin(Section, int64_t) override {}
  void note_compiling() override { calls.push_back("compiling"); }
  void set_limits(const Limits&) override {}
  Limits limits() const override { return {}; }

  std::vector<std::string> calls;
  int64_t bytes = 0;           ///< Summed.
  int64_t gathered_bytes = 0;  ///< All-gathered.

 protected:
  std::unique_ptr<Collectives> make_subgroup(const std::vector<int>& ranks,
                                             const std::string& /*name*/) override {
    const auto own = std::find(ranks.begin(), ranks.end(), rank_);
    return std::make_unique<FakeCollectives>(static_cast<int>(own - ranks.begin()),
                                             static_cast<int>(ranks.size()));
  }

 private:
  static const void* key_of(const at::Tensor& tensor) {
    return static_cast<const char*>(tensor.storage().data()) +
           tensor.storage_offset() * static_cast<int64_t>(tensor.element_size());
  }
  // `waited`: by which the call is waited for. Of an all-to-all, sizes differ among processes.
  void note(const std::string& kind, const at::Tensor& waited, const at::Tensor& tensor) {
    const std::string text =
        fmt::format("{} of {} {}", kind, tensor.numel(), c10::toString(tensor.scalar_type()));
    waits_[key_of(waited)] = text;
    calls.push_back(text);
  }
  void require_parts(const char* what, c10::IntArrayRef sizes, int64_t elements) const {
    const int64_t all = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    if (static_cast<int>(sizes.size()) == size_ && all == elements) return;
    throw InternalError(
        fmt::format("{}: {} parts of {} elements of {}", what, sizes.size(), all, elements));
  }

  int rank_, size_;
  std::map<const void*, std::string> waits_;  // By the memory.
};

}  // namespace gallop::parallel
