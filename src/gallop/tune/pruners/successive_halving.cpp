#include "gallop/tune/pruners/successive_halving.h"

#include <algorithm>

#include "gallop/base/error.h"
#include "gallop/tune/pruners/rungs.h"

namespace gallop::tune {

namespace {

constexpr int64_t kShareOfWhole = 100;

class SuccessiveHalving final : public Pruner {
 public:
  explicit SuccessiveHalving(const SuccessiveHalvingConfig& config) : config_(config) {}

  bool should_stop(const Study& study, const Trial& trial) override {
    const std::vector<int64_t> firsts = first_rungs(study);
    if (trial.reports.empty() || firsts.empty()) return false;
    if (!brackets_ || firsts != firsts_) {
      brackets_.emplace(std::vector{Rungs(firsts, config_.reduction_factor)});
      firsts_ = firsts;
    }
    brackets_->follow(study);
    if (config_.max_resource > 0 && trial.reports.back().step >= config_.max_resource) return false;
    return brackets_->of(trial).ends(trial, config_.bootstrap_count);
  }

 private:
  // Empty if they are not known yet.
  std::vector<int64_t> first_rungs(const Study& study) const {
    const auto left_out = static_cast<size_t>(config_.min_early_stopping_rate);
    if (config_.rungs > 0) {
      std::vector<int64_t> steps = parts_of_whole();
      steps.erase(steps.begin(),
                  steps.begin() + static_cast<ptrdiff_t>(std::min(left_out, steps.size() - 1)));
      return steps;
    }
    int64_t resource = config_.min_resource;
    if (resource == 0) {
      const auto whole = first_complete_length(study);
      if (!whole) return {};
      resource = std::max<int64_t>(*whole / kShareOfWhole, 1);
    }
    return {Rungs(resource, config_.reduction_factor).step(left_out)};
  }

  // Ascending, up to max_resource.
  std::vector<int64_t> parts_of_whole() const {
    std::vector<int64_t> steps = {config_.max_resource};
    for (int64_t rung = 0; rung < config_.rungs; ++rung) {
      const int64_t part = steps.back() / config_.reduction_factor;
      if (part == 0) break;
      steps.push_back(part);
    }
    std::reverse(steps.begin(), steps.end());
    return steps;
  }

  SuccessiveHalvingConfig config_;
  std::vector<int64_t> firsts_;
  std::optional<Brackets> brackets_;
};

}  // namespace

const config::Field kMinResource{
    .name = "min_resource",
    .help =
        "report of the first rung: the number of the evaluation, or the step that a command "
        "prints",
    .min = 1};
const config::Field kReductionFactor{
    .name = "reduction_factor",
    .help = "reduction factor: one of n trials is promoted at each rung, and rungs grow by n",
    .min = 2};
const config::Field kBootstrapCount{
    .name = "bootstrap_count",
    .help = "minimum number of trials that reach a rung before any is promoted",
    .min = 0};

void visit(config::Visitor& visitor, SuccessiveHalvingConfig& config) {
  visitor.field(
      {.name = "min_resource",
       .help = "report of the first rung: the number of the evaluation, or the step that a command "
               "prints; 0 or auto: a hundredth of the first complete trial",
       .min = 0,
       .or_auto = true},
      config.min_resource);
  visitor.field(
      {.name = "max_resource", .help = "report from which no trial is pruned; 0: none", .min = 0},
      config.max_resource);
  visitor.field({.name = "rungs",
                 .help = "number of rungs, at max_resource / reduction_factor, / its square, and "
                         "so on; 0: from min_resource on",
                 .min = 0},
                config.rungs);
  visitor.field(kReductionFactor, config.reduction_factor);
  visitor.field(
      {.name = "min_early_stopping_rate", .help = "number of first rungs to omit", .min = 0},
      config.min_early_stopping_rate);
  visitor.field(kBootstrapCount, config.bootstrap_count);
}

std::unique_ptr<Pruner> make_successive_halving(const SuccessiveHalvingConfig& config,
                                                const StudySettings& settings) {
  check_one_objective(settings, "pruner successive-halving");
  if (config.rungs > 0 && (config.min_resource > 0 || config.max_resource == 0)) {
    throw UsageError("pruner successive-halving: rungs needs a max_resource, and no min_resource");
  }
  if (config.bootstrap_count > 0 && config.min_resource == 0 && config.rungs == 0) {
    throw UsageError("pruner successive-halving: bootstrap_count needs a min_resource");
  }
  return std::make_unique<SuccessiveHalving>(config);
}

}  // namespace gallop::tune
