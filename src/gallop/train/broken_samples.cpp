#include "gallop/train/broken_samples.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::train {

namespace {

constexpr const char* kEntry = "broken_samples";

}  // namespace

std::string BrokenSamples::text() const { return fmt::format("{}", fmt::join(indices_, ",")); }

std::set<int64_t> BrokenSamples::parse(std::string_view text) {
  std::set<int64_t> indices;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(','));
    const auto index = parse_number<int64_t>(word);
    if (!index || *index < 0) {
      throw DataError(fmt::format("the checkpoint's '{}' has '{}' in place of an index", kEntry,
                                  printable(std::string(word))));
    }
    indices.insert(*index);
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return indices;
}

void BrokenSamples::write(std::map<std::string, std::string>& map) const {
  if (!indices_.empty()) map[kEntry] = text();
}

void BrokenSamples::read(const std::map<std::string, std::string>& map) {
  const auto found = map.find(kEntry);
  if (found != map.end()) indices_.merge(parse(found->second));
}

}  // namespace gallop::train
