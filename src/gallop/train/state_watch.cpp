#include "gallop/train/state_watch.h"

#include <algorithm>
#include <string_view>

#include "gallop/base/hash.h"

namespace gallop::train {

namespace {

// In memory order, which is the same in all processes.
uint64_t checksum_of(const at::Tensor& tensor) {
  const at::Tensor host = tensor.detach().cpu();
  const at::Tensor dense = host.is_non_overlapping_and_dense() ? host : host.contiguous();
  return xxh3_64({static_cast<const char*>(dense.const_data_ptr()), dense.nbytes()});
}

// The ranks that have another checksum than this.
std::vector<size_t> others_than(uint64_t checksum, const std::vector<uint64_t>& checksums) {
  std::vector<size_t> others;
  for (size_t rank = 0; rank < checksums.size(); ++rank) {
    if (checksums[rank] != checksum) others.push_back(rank);
  }
  return others;
}

}  // namespace

uint64_t checksum_of(const NamedTensors& tensors) {
  std::vector<uint64_t> all;
  for (const auto& [name, tensor] : tensors) all.push_back(checksum_of(tensor));
  return xxh3_64({reinterpret_cast<const char*>(all.data()), all.size() * sizeof(uint64_t)});
}

StateWatch::Comparison StateWatch::compare(int64_t step, const std::vector<uint64_t>& checksums) {
  const auto before = unequal_.find(step);
  if (others_than(checksums.front(), checksums).empty()) {
    Comparison comparison;
    if (before != unequal_.end()) {
      auto wrong = others_than(checksums.front(), before->second);
      if (wrong.size() < checksums.size()) comparison.wrong_before = std::move(wrong);
      unequal_.erase(before);
    }
    return comparison;
  }
  count_ += 1;
  unequal_[step] = checksums;
  Comparison comparison{.is_equal = false};
  for (const uint64_t one : checksums) {
    auto others = others_than(one, checksums);
    if (2 * others.size() < checksums.size()) comparison.odd_ranks = std::move(others);
  }
  return comparison;
}

}  // namespace gallop::train
