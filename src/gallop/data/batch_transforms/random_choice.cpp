#include "gallop/data/batch_transforms/random_choice.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/philox.h"

namespace gallop::data {

namespace {

class RandomChoice final : public BatchTransform {
 public:
  RandomChoice(std::vector<std::unique_ptr<BatchTransform>> transforms, std::vector<double> ends)
      : transforms_(std::move(transforms)), ends_(std::move(ends)) {}

  void check(const Fields& fields) const override {
    for (const auto& one : transforms_) one->check(fields);
  }
  bool mixes() const override {
    return std::any_of(transforms_.begin(), transforms_.end(),
                       [](const auto& one) { return one->mixes(); });
  }
  int64_t partner(const BatchKey& key, const WholeBatch& whole, int64_t row) const override {
    return chosen(key, whole).partner(key, whole, row);
  }
  int64_t most_partners(int64_t rows) const override {
    int64_t most = 0;
    for (const auto& one : transforms_) most = std::max(most, one->most_partners(rows));
    return most;
  }
  void apply(const BatchKey& key, Batch& batch) const override {
    chosen(key, batch.whole()).apply(key, batch);
  }

 private:
  const BatchTransform& chosen(const BatchKey& key, const WholeBatch& whole) const {
    Philox random(key.seed, Purpose::kTransformChoice, static_cast<uint64_t>(whole.epoch),
                  static_cast<uint64_t>(whole.position));
    const double at = double{random.uniform()} * ends_.back();
    const auto end = std::upper_bound(ends_.begin(), ends_.end(), at);
    return *transforms_[static_cast<size_t>(end - ends_.begin())];
  }

  std::vector<std::unique_ptr<BatchTransform>> transforms_;
  std::vector<double> ends_;  // Ends of each transform's interval in [0, 1].
};

}  // namespace

void visit(config::Visitor& visitor, RandomChoiceConfig& config) {
  visitor.field({.name = "transforms", .help = "the transforms, each a name or {name: {options}}"},
                config.transforms);
  visitor.field(
      {.name = "p", .help = "relative probability of each transform; [] for equal ones", .min = 0},
      config.p);
}

std::unique_ptr<BatchTransform> make_random_choice(const RandomChoiceConfig& config) {
  const auto& items = config.transforms.items;
  if (items.empty()) {
    throw UsageError(
        "data.batch_transforms: random-choice has no transforms; give them, such as transforms: "
        "[mixup, cutmix]");
  }
  if (!config.p.empty() && config.p.size() != items.size()) {
    throw UsageError(fmt::format(
        "data.batch_transforms: random-choice of {} transforms has {} probabilities; give one for "
        "each transform",
        items.size(), config.p.size()));
  }
  // The registry of the members, which includes plug-ins.
  const auto& registry = dynamic_cast<const BatchTransformRegistry&>(config.transforms.catalog());
  std::vector<std::unique_ptr<BatchTransform>> transforms;
  std::vector<double> ends;
  double end = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    transforms.push_back(registry.build(items[i]));
    ends.push_back(end += config.p.empty() ? 1 : config.p[i]);
  }
  if (end <= 0) {
    throw UsageError("data.batch_transforms: the probabilities p of random-choice are all 0");
  }
  return std::make_unique<RandomChoice>(std::move(transforms), std::move(ends));
}

}  // namespace gallop::data
