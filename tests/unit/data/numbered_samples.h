#pragma once

#include <chrono>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gallop/base/error.h"
#include "gallop/data/loader.h"

namespace gallop::data {

/// Rows encode their sample and epoch: "numbers" [3] int64 (index, epoch, index * 10), "index" the
/// index. Threads sleep for different times, so that they overtake each other.
class NumberedSamples final : public Samples {
 public:
  explicit NumberedSamples(int64_t size)
      : Samples({{.name = "numbers", .shape = {{3}, c10::ScalarType::Long}},
                 {.name = "index", .shape = {{}, c10::ScalarType::Long}}}),
        size_(size) {}

  int64_t size() const override { return size_; }

  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch&) const override {
    if (jitter) std::this_thread::sleep_for(std::chrono::microseconds((index * 37) % 90));
    if (fail.contains(index)) throw DataError("sample " + std::to_string(index) + " is damaged");
    if (skip.contains(index)) return false;
    auto* input = row.as<int64_t>(0);
    input[0] = index;
    input[1] = epoch;
    input[2] = index * 10;
    *row.as<int64_t>(1) = index;
    return true;
  }

  bool jitter = true;
  std::set<int64_t> skip, fail;

 private:
  int64_t size_;
};

inline std::vector<int64_t> values(const at::Tensor& tensor) {
  const auto* data = tensor.const_data_ptr<int64_t>();
  return {data, data + tensor.numel()};
}

/// The contents of a batch as one list.
inline std::vector<int64_t> fingerprint(const Batch& batch) {
  std::vector<int64_t> result = values(batch.input());
  for (const int64_t value : values(batch.target())) result.push_back(value);
  for (const int64_t value : {batch.skipped, batch.epoch, batch.position,
                              static_cast<int64_t>(batch.last_of_epoch), batch.size()}) {
    result.push_back(value);
  }
  return result;
}

}  // namespace gallop::data
