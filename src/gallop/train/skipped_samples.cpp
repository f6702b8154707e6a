#include "gallop/train/skipped_samples.h"

#include <fmt/format.h>

#include "gallop/train/progress.h"

namespace gallop::train {

int64_t SkippedSamples::samples_before(int64_t step) {
  while (!pending_.empty() && pending_.front().step + behind_ < step) {
    samples_ += pending_.front().samples;
    pending_.pop_front();
  }
  return samples_;
}

void SkippedSamples::write(std::map<std::string, std::string>& map) const {
  map["held.samples"] = std::to_string(samples_);
  map["held.pending"] = std::to_string(pending_.size());
  for (size_t i = 0; i < pending_.size(); ++i) {
    map[fmt::format("held.{}.step", i)] = std::to_string(pending_[i].step);
    map[fmt::format("held.{}.samples", i)] = std::to_string(pending_[i].samples);
  }
}

void SkippedSamples::read(const std::map<std::string, std::string>& map) {
  samples_ = read_integer(map, "held.samples");
  pending_.clear();
  const int64_t count = read_integer(map, "held.pending");
  for (int64_t i = 0; i < count; ++i) {
    pending_.push_back({.step = read_integer(map, fmt::format("held.{}.step", i)),
                        .samples = read_integer(map, fmt::format("held.{}.samples", i))});
  }
}

}  // namespace gallop::train
