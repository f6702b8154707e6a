#include "gallop/tune/pruners/hyperband.h"

#include <utility>

#include "gallop/base/error.h"
#include "gallop/tune/pruners/rungs.h"
#include "gallop/tune/pruners/successive_halving.h"
#include "gallop/tune/random.h"

namespace gallop::tune {

namespace {

// Limit on the number of trials of a bracket, so that sums do not overflow.
constexpr int64_t kMostTrials = int64_t{1} << 50;
constexpr uint32_t kBracketDraw = 1u << 31;  // Samplers use smaller items.

class Hyperband final : public Pruner {
 public:
  explicit Hyperband(const HyperbandConfig& config) : config_(config) {}

  int32_t bracket(const Study& study, int64_t number) const override {
    const int64_t whole = length(study);
    if (whole == 0) return 0;
    const auto sizes = sizes_for(whole);
    int64_t sum = 0;
    for (const int64_t size : sizes) sum += size;
    auto left = static_cast<int64_t>(
        Random(study.seed(), number, kBracketDraw).below(static_cast<size_t>(sum)));
    int32_t bracket = 0;
    while (left >= sizes[static_cast<size_t>(bracket)]) {
      left -= sizes[static_cast<size_t>(bracket++)];
    }
    return bracket;
  }

  bool should_stop(const Study& study, const Trial& trial) override {
    const int64_t whole = length(study);
    if (trial.reports.empty() || whole == 0) return false;
    if (!brackets_ || whole != whole_) {
      const Rungs rungs(config_.min_resource, config_.reduction_factor);
      std::vector<Rungs> brackets;
      for (size_t i = 0; i < sizes_for(whole).size(); ++i) {
        brackets.emplace_back(rungs.step(i), config_.reduction_factor);
      }
      brackets_.emplace(std::move(brackets));
      whole_ = whole;
    }
    brackets_->follow(study);
    return brackets_->of(trial).ends(trial, config_.bootstrap_count);
  }

 private:
  // 0 if not known yet.
  int64_t length(const Study& study) const {
    if (config_.max_resource > 0) return config_.max_resource;
    return first_complete_length(study).value_or(0);
  }
  std::vector<int64_t> sizes_for(int64_t whole) const {
    return bracket_sizes(config_.min_resource, whole, config_.reduction_factor);
  }

  HyperbandConfig config_;
  int64_t whole_ = 0;
  std::optional<Brackets> brackets_;
};

}  // namespace

std::vector<int64_t> bracket_sizes(int64_t min_resource, int64_t max_resource, int64_t factor) {
  int64_t brackets = 1, power = 1;
  for (int64_t rest = max_resource / min_resource; rest >= factor && power <= kMostTrials / factor;
       rest /= factor) {
    ++brackets;
    power *= factor;
  }
  std::vector<int64_t> sizes;
  for (int64_t rungs = brackets; rungs > 0; --rungs) {
    sizes.push_back((brackets * power + rungs - 1) / rungs);
    power /= factor;
  }
  return sizes;
}

void visit(config::Visitor& visitor, HyperbandConfig& config) {
  visitor.field(kMinResource, config.min_resource);
  visitor.field(
      {.name = "max_resource",
       .help = "last report of a complete trial; 0 or auto: that of the first complete one",
       .min = 0,
       .or_auto = true},
      config.max_resource);
  visitor.field(kReductionFactor, config.reduction_factor);
  visitor.field(kBootstrapCount, config.bootstrap_count);
}

std::unique_ptr<Pruner> make_hyperband(const HyperbandConfig& config,
                                       const StudySettings& settings) {
  check_one_objective(settings, "pruner hyperband");
  if (config.max_resource > 0 && config.max_resource < config.min_resource) {
    throw UsageError("pruner hyperband: max_resource is below min_resource");
  }
  if (config.bootstrap_count > 0 && config.max_resource == 0) {
    throw UsageError("pruner hyperband: bootstrap_count needs a max_resource");
  }
  return std::make_unique<Hyperband>(config);
}

}  // namespace gallop::tune
