#include "gallop/data/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/philox.h"
#include "gallop/base/text.h"

namespace gallop::data {

namespace {

// The number to take from each class: its exact fraction rounded down, plus one for the largest
// remainders until the total is exact.
std::vector<int64_t> shares(const std::vector<std::vector<int64_t>>& classes, double fraction,
                            int64_t total) {
  std::vector<int64_t> take(classes.size());
  std::vector<double> rest(classes.size());
  for (size_t i = 0; i < classes.size(); ++i) {
    const double share = fraction * static_cast<double>(classes[i].size());
    take[i] = static_cast<int64_t>(share);
    rest[i] = share - static_cast<double>(take[i]);
  }
  std::vector<size_t> order(classes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return rest[a] > rest[b]; });
  int64_t missing = total - std::accumulate(take.begin(), take.end(), int64_t{0});
  for (const size_t i : order) {
    if (missing <= 0) break;
    if (take[i] + 1 >= static_cast<int64_t>(classes[i].size())) continue;
    ++take[i];
    --missing;
  }
  for (size_t i = 0; i < classes.size(); ++i) {
    take[i] = std::clamp<int64_t>(static_cast<int64_t>(classes[i].size()) - 1, 0, take[i]);
  }
  return take;
}

void require_fraction(double fraction) {
  if (fraction > 0 && fraction < 1) return;
  throw UsageError(
      fmt::format("data.validation: {} is no fraction between 0 and 1, both excluded", fraction));
}

// Takes `wanted` of the indices, selected by (seed, index).
void draw(const std::vector<int64_t>& indices, int64_t wanted, uint64_t seed, IndexCut& cut) {
  std::vector<std::pair<uint64_t, int64_t>> drawn;
  for (const int64_t index : indices) {
    drawn.emplace_back(Philox(seed, Purpose::kSplit, 0, static_cast<uint64_t>(index)).next_u64(),
                       index);
  }
  std::sort(drawn.begin(), drawn.end());
  for (size_t i = 0; i < drawn.size(); ++i) {
    auto& group = static_cast<int64_t>(i) < wanted ? cut.taken : cut.kept;
    group.push_back(drawn[i].second);
  }
}

void sort(IndexCut& cut) {
  std::sort(cut.kept.begin(), cut.kept.end());
  std::sort(cut.taken.begin(), cut.taken.end());
}

}  // namespace

void cut_images(ImageParts& parts, double fraction, uint64_t seed) {
  require_fraction(fraction);
  IndexCut cut = cut_by_class(*parts.train, fraction, seed);
  if (cut.taken.empty()) {
    throw DataError(
        fmt::format("{} training images are too few to cut {} of them off for validation",
                    format_count(parts.train->size()), fraction));
  }
  const std::shared_ptr<const ImageSet> whole = std::move(parts.train);
  parts.train = std::make_unique<SubsetImages>(whole, std::move(cut.kept));
  parts.validation = std::make_unique<SubsetImages>(whole, std::move(cut.taken));
}

void cut_text(TextParts& parts, double fraction) {
  require_fraction(fraction);
  Block<int32_t>& tokens = parts.train->tokens;
  const auto taken = std::llround(static_cast<double>(tokens.size()) * fraction);
  const auto kept = static_cast<int64_t>(tokens.size()) - taken;
  if (taken == 0 || kept == 0) {
    throw DataError(fmt::format("{} tokens are too few to cut {} of them off for validation",
                                format_count(static_cast<int64_t>(tokens.size())), fraction));
  }
  parts.validation = std::make_unique<TextSet>();
  parts.validation->vocabulary = parts.train->vocabulary;
  parts.validation->tokens = tokens.part(static_cast<size_t>(kept), static_cast<size_t>(taken));
  tokens = tokens.part(0, static_cast<size_t>(kept));
}

IndexCut cut_by_class(const ImageSet& set, double fraction, uint64_t seed) {
  std::vector<std::vector<int64_t>> classes(set.class_names().size());
  for (int64_t i = 0; i < set.size(); ++i) {
    classes[static_cast<size_t>(set.label(i))].push_back(i);
  }
  const auto take =
      shares(classes, fraction, std::llround(fraction * static_cast<double>(set.size())));
  IndexCut cut;
  for (size_t i = 0; i < classes.size(); ++i) draw(classes[i], take[i], seed, cut);
  sort(cut);
  return cut;
}

void cut_validation(DataModule& module, double fraction, uint64_t seed) {
  require_fraction(fraction);
  const int64_t size = module.train->size();
  const auto wanted = std::llround(fraction * static_cast<double>(size));
  if (wanted == 0 || wanted == size) {
    throw DataError(
        fmt::format("{} training samples are too few to cut {} of them off for validation",
                    format_count(size), fraction));
  }
  std::vector<int64_t> all(static_cast<size_t>(size));
  std::iota(all.begin(), all.end(), int64_t{0});
  IndexCut cut;
  draw(all, wanted, seed, cut);
  sort(cut);
  const std::shared_ptr<const Samples> train = std::move(module.train);
  const std::shared_ptr<const Samples> plain =
      module.unaugmented ? std::shared_ptr<const Samples>(std::move(module.unaugmented)) : nullptr;
  module.train = std::make_unique<SubsetSamples>(train, cut.kept);
  if (plain) module.unaugmented = std::make_unique<SubsetSamples>(plain, cut.kept);
  module.validation = std::make_unique<SubsetSamples>(plain ? plain : train, std::move(cut.taken));
}

}  // namespace gallop::data
