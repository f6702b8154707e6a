#include "gallop/data/skips.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::data {

std::string describe(const SkipCount& skipped) {
  return fmt::format("{} skipped ({}), the first: {}", format_count(skipped.count), skipped.reason,
                     skipped.first);
}

void Skips::add(const std::string& reason, const std::string& message) {
  add({.reason = reason, .count = 1, .first = message});
}

void Skips::add(const SkipCount& counted) {
  const auto known = std::find_if(counts_.begin(), counts_.end(), [&](const SkipCount& other) {
    return other.reason == counted.reason;
  });
  if (known == counts_.end()) {
    counts_.push_back(counted);
  } else {
    known->count += counted.count;
  }
}

bool Skips::has(const std::string& reason) const {
  return std::any_of(counts_.begin(), counts_.end(),
                     [&](const SkipCount& one) { return one.reason == reason; });
}

void Skips::throw_first() const {
  if (counts_.empty()) return;
  int64_t others = -1;
  for (const SkipCount& one : counts_) others += one.count;
  throw DataError(fmt::format(
      "{}{}; repair or remove it, or leave such items out with "
      "data.on_error=skip",
      counts_.front().first,
      others > 0 ? fmt::format(" ({} more like it or otherwise unusable)", format_count(others))
                 : ""));
}

void SkipPolicy::add(const std::string& reason, const std::string& message) {
  counted_.add(reason, message);
  if (!skips_) counted_.throw_first();
}

void SkipPolicy::add(const std::string& reason, const std::function<std::string()>& message) {
  add(reason, counted_.has(reason) ? std::string() : message());
}

void SkipPolicy::add(const Skips& counted) {
  if (!skips_) counted.throw_first();
  for (const SkipCount& one : counted.counts()) counted_.add(one);
}

}  // namespace gallop::data
