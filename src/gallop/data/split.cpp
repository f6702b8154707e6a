#include "gallop/data/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/philox.h"
#include "gallop/base/text.h"
#include "gallop/data/group_split.h"
#include "gallop/data/sampling.h"

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
      fmt::format("data.validation: {} is not a fraction between 0 and 1 (exclusive)", fraction));
}

uint64_t key_of(uint64_t seed, int64_t index) {
  return Philox(seed, Purpose::kSplit, 0, static_cast<uint64_t>(index)).next_u64();
}

// Takes `wanted` of the indices, selected by (seed, index).
void draw(const std::vector<int64_t>& indices, int64_t wanted, uint64_t seed, IndexCut& cut) {
  std::vector<std::pair<uint64_t, int64_t>> drawn;
  for (const int64_t index : indices) {
    drawn.emplace_back(key_of(seed, index), index);
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

IndexCut cut_labels(const std::vector<int64_t>& labels, size_t count, double fraction,
                    uint64_t seed) {
  std::vector<std::vector<int64_t>> classes(count);
  for (size_t i = 0; i < labels.size(); ++i) {
    classes[static_cast<size_t>(labels[i])].push_back(static_cast<int64_t>(i));
  }
  const auto take =
      shares(classes, fraction, std::llround(fraction * static_cast<double>(labels.size())));
  IndexCut cut;
  for (size_t i = 0; i < classes.size(); ++i) draw(classes[i], take[i], seed, cut);
  sort(cut);
  return cut;
}

}  // namespace

std::string Holdout::identity() const {
  std::string text = fmt::format("{} {}", fraction, seed);
  if (folds > 0) text += fmt::format(" fold {} of {}", fold, folds);
  if (group.empty()) return text;
  return text + (folds > 0 ? " stratified by " : " by ") + group;
}

void check(const Holdout& holdout) {
  if (holdout.folds == 1) throw UsageError("data.folds is 1; give 2 or more");
  if (holdout.folds == 0 && holdout.fold > 0) {
    throw UsageError("data.fold is the number of one of data.folds, which is 0; set it");
  }
  if (holdout.folds > 0 && holdout.fold >= holdout.folds) {
    throw UsageError(fmt::format("data.fold is {}; of {} folds there are 0 to {}", holdout.fold,
                                 holdout.folds, holdout.folds - 1));
  }
  if (holdout.folds > 0 && holdout.fraction > 0) {
    throw UsageError(
        "data.validation and data.folds both choose the validation split; leave one of them out");
  }
  if (holdout.group.empty()) return;
  if (holdout.is_empty()) {
    throw UsageError(
        "data.group keeps samples of a group in one split; set data.validation or data.folds too");
  }
}

IndexCut cut_fold(int64_t size, const std::vector<int64_t>& labels, const Holdout& holdout) {
  if (size < holdout.folds) {
    throw DataError(fmt::format("{} training samples are too few for {} folds", format_count(size),
                                holdout.folds));
  }
  // In random order within each class, and dealt out like cards.
  std::vector<std::tuple<int64_t, uint64_t, int64_t>> order;
  for (int64_t i = 0; i < size; ++i) {
    order.emplace_back(labels.empty() ? 0 : labels[static_cast<size_t>(i)], key_of(holdout.seed, i),
                       i);
  }
  std::sort(order.begin(), order.end());
  IndexCut cut;
  for (size_t place = 0; place < order.size(); ++place) {
    const bool is_taken = static_cast<int64_t>(place) % holdout.folds == holdout.fold;
    (is_taken ? cut.taken : cut.kept).push_back(std::get<2>(order[place]));
  }
  sort(cut);
  return cut;
}

bool holds_out(const Holdout& holdout, bool has_validation) {
  if (holdout.is_empty()) return false;
  if (!has_validation) return true;
  if (holdout.folds == 0 && holdout.group.empty()) return false;
  throw UsageError(fmt::format(
      "data.{} divides the training split, but the data have a validation split of their own; "
      "leave the option out, or leave the validation split out of data.path",
      holdout.folds > 0 ? "folds" : "group"));
}

void cut_images(ImageParts& parts, const Holdout& holdout) { cut_images(parts, holdout, {}); }

void cut_images(ImageParts& parts, const Holdout& holdout, const std::vector<std::string>& groups) {
  const ImageSet& set = *parts.train;
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < set.size(); ++i) labels.push_back(set.label(i));
  IndexCut cut;
  if (!holdout.group.empty()) {
    const auto name = [&](int64_t i) { return set.describe(i); };
    cut = cut_groups(groups.empty() ? groups_of(set.size(), name, holdout.group) : groups, labels,
                     holdout);
  } else if (holdout.folds > 0) {
    cut = cut_fold(set.size(), labels, holdout);
  } else {
    require_fraction(holdout.fraction);
    cut = cut_by_class(set, holdout.fraction, holdout.seed);
  }
  if (cut.taken.empty()) {
    throw DataError(
        fmt::format("{} training images are too few to cut {} of them off for validation",
                    format_count(set.size()), holdout.fraction));
  }
  const std::shared_ptr<const ImageSet> whole = std::move(parts.train);
  parts.train = std::make_unique<SubsetImages>(whole, std::move(cut.kept));
  parts.validation = std::make_unique<SubsetImages>(whole, std::move(cut.taken));
}

void cut_text(TextParts& parts, const Holdout& holdout) {
  if (holdout.folds > 0 || !holdout.group.empty()) {
    throw UsageError(
        "data.folds and data.group divide separate samples, but these data are running text; use "
        "data.validation, the end of the text");
  }
  const double fraction = holdout.fraction;
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
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < set.size(); ++i) labels.push_back(set.label(i));
  return cut_labels(labels, std::max<size_t>(1, set.class_names().size()), fraction, seed);
}

IndexCut cut_rows(int64_t rows, const std::vector<int64_t>& labels, size_t classes,
                  const Holdout& holdout) {
  if (holdout.folds > 0) return cut_fold(rows, labels, holdout);
  const double fraction = holdout.fraction;
  require_fraction(fraction);
  IndexCut cut;
  if (!labels.empty()) {
    cut = cut_labels(labels, classes, fraction, holdout.seed);
  } else {
    std::vector<int64_t> all(static_cast<size_t>(rows));
    std::iota(all.begin(), all.end(), int64_t{0});
    draw(all, std::llround(fraction * static_cast<double>(rows)), holdout.seed, cut);
    sort(cut);
  }
  if (cut.taken.empty() || cut.kept.empty()) {
    throw DataError(
        fmt::format("{} training samples are too few to cut {} of them off for validation",
                    format_count(rows), fraction));
  }
  return cut;
}

namespace {

// The samples' labels; empty if they have no class label each.
std::vector<int64_t> labels_of(const Samples& samples, const Signature& signature) {
  const RowShape& target = samples.fields().target().shape;
  if (!target.sizes.empty() || target.dtype != c10::ScalarType::Long) return {};
  const auto classes = static_cast<int64_t>(signature.classes.size());
  return classes > 0 ? class_labels(samples, classes) : std::vector<int64_t>();
}

}  // namespace

void cut_validation(DataModule& module, const Holdout& holdout) {
  const Samples& all = *module.split(Part::kTrain);
  IndexCut cut;
  const std::vector<int64_t> labels =
      holdout.folds > 0 ? labels_of(all, module.signature) : std::vector<int64_t>();
  if (!holdout.group.empty()) {
    const auto name = [&](int64_t i) { return all.describe(i); };
    cut = cut_groups(groups_of(all.size(), name, holdout.group), labels, holdout);
  } else {
    cut = cut_rows(all.size(), labels, module.signature.classes.size(), holdout);
  }
  const std::shared_ptr<const Samples> train = std::move(module.train);
  const std::shared_ptr<const Samples> plain =
      module.unaugmented ? std::shared_ptr<const Samples>(std::move(module.unaugmented)) : nullptr;
  module.train = std::make_unique<SubsetSamples>(train, cut.kept);
  if (plain) module.unaugmented = std::make_unique<SubsetSamples>(plain, cut.kept);
  module.validation = std::make_unique<SubsetSamples>(plain ? plain : train, std::move(cut.taken));
}

}  // namespace gallop::data
