#include "gallop/app/common_steps.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "gallop/config/resolve.h"
#include "gallop/train/trigger.h"

namespace gallop::app {

namespace {

using config::Node;

void drop(Node& map, std::string_view key) {
  std::erase_if(map.entries, [&](const Node::Entry& entry) { return entry.key == key; });
}

Node written(Recipe recipe) {
  return config::write_fields([&](config::Visitor& visitor) { visit(visitor, recipe); }, {});
}

// The part of a recipe that affects training from its first step on. Options that are not known to
// take effect only later are included.
std::string from_the_beginning(const Recipe& recipe) {
  Node all = written(recipe);
  drop(all, "schedule");
  drop(all, "schedules");
  Node& train = *all.find("train");
  drop(train, "epochs");
  drop(train, "steps");
  drop(train, "prove");
  return config::to_yaml(all, /*show_origins=*/false);
}

std::string values_that_change(const Recipe& recipe) {
  const Node all = written(recipe);
  return config::to_yaml(*all.find("schedule"), false) +
         config::to_yaml(*all.find("schedules"), false);
}

bool has_files(config::Component component) {
  const auto options = config::describe_fields(
      [&](config::Visitor& visitor) { component.visit_fields(visitor); }, "");
  return std::any_of(options.begin(), options.end(),
                     [](const config::FieldHelp& option) { return option.type == "path"; });
}

bool is_known(const Recipe& recipe) {
  using Unit = train::Interval::Unit;
  const train::TrainConfig& train = recipe.train;
  const auto is_swa = [](const config::Component& wrapper) { return wrapper.name() == "swa"; };
  // Plug-in components and files of models may differ between processes, and batches that are
  // limited by tokens depend on the data, those of a ramp-up on the length of the run.
  return recipe.plugins.empty() && !has_files(recipe.model) && recipe.data.max_tokens == 0 &&
         train.rampup_batch_size.start == 0 && !train.early_stopping.restore_best &&
         train.spikes.action != "rewind" && !train.snapshots && train.distill.teacher.empty() &&
         train::Interval::parse(train.evaluate_every).unit != Unit::kSeconds &&
         std::none_of(recipe.wrappers.items.begin(), recipe.wrappers.items.end(), is_swa);
}

}  // namespace

PlannedSteps::PlannedSteps(const Registries& registries, const Recipe& recipe,
                           int64_t samples_per_epoch)
    : length_(train::Length::of(recipe.train, recipe.data.batch_size, samples_per_epoch)),
      evaluate_every_(train::Interval::parse(recipe.train.evaluate_every)),
      schedule_(registries.schedules.build(recipe.schedule, length_.for_schedules())),
      values_(recipe, length_.for_schedules(), *schedule_),
      course_{.length = length_.for_schedules(), .values = {}},
      follows_evaluations_(!schedule_->state().empty()) {
  course_.values.push_back(
      [schedule = schedule_.get()](double progress) { return schedule->factor(progress); });
  for (train::ParameterSchedule& one : values_.for_training()) {
    if (one.schedule != nullptr) follows_evaluations_ |= !one.schedule->state().empty();
    scheduled_names_.push_back(one.value);
    course_.values.push_back(std::move(one.at));
  }
}

bool PlannedSteps::evaluates_at(int64_t step) const {
  train::Trigger trigger(evaluate_every_, length_);
  trigger.done(step - 1);
  return trigger.at(step);
}

std::vector<int64_t> PlannedSteps::branch_points(int64_t evaluations) const {
  const bool of_epochs = evaluate_every_.unit == train::Interval::Unit::kEpochs;
  const auto steps_per_unit = static_cast<double>(of_epochs ? length_.batches_per_epoch : 1);
  const double every = evaluate_every_.unit == train::Interval::Unit::kNever
                           ? static_cast<double>(length_.batches_per_epoch)
                           : evaluate_every_.count * steps_per_unit;
  const auto there_are = static_cast<int64_t>(static_cast<double>(length_.steps) / every);
  // The last one is the end of the run.
  const int64_t apart = std::max<int64_t>(1, (there_are + evaluations) / (evaluations + 1));
  std::vector<int64_t> steps =
      schedule::turning_points(course_, static_cast<int64_t>(std::ceil(every)));
  if (static_cast<int64_t>(steps.size()) > evaluations) {
    steps.resize(static_cast<size_t>(evaluations));
  }
  for (int64_t one = apart; one < there_are && evaluations > 0; one += apart) {
    steps.push_back(static_cast<int64_t>(std::ceil(static_cast<double>(one) * every - 1e-9)));
  }
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

bool shares_prefix(const Recipe& one, const Recipe& other) {
  return is_known(one) && from_the_beginning(one) == from_the_beginning(other);
}

int64_t common_steps(const Registries& registries, const Recipe& one, const Recipe& other,
                     int64_t samples_per_epoch) {
  if (!shares_prefix(one, other)) return 0;
  const PlannedSteps first(registries, one, samples_per_epoch);
  const PlannedSteps second(registries, other, samples_per_epoch);
  if (first.scheduled() != second.scheduled()) return 0;
  const int64_t steps = first.length().steps;
  const bool are_of_one_length = steps == second.length().steps;
  // Averaging starts at fractions of the run, and sizes of inputs change at them.
  const bool counts_fractions = !one.wrappers.items.empty() ||
                                one.train.progressive_resizing.initial_scale < 1 ||
                                one.train.seq_length_warmup.duration > 0;
  if (counts_fractions && !are_of_one_length) return 0;
  if (first.follows_evaluations() || second.follows_evaluations()) {
    const bool are_the_same =
        are_of_one_length && values_that_change(one) == values_that_change(other);
    return are_the_same ? steps : 0;
  }
  const int64_t common = schedule::common_steps(first.course(), second.course());
  // The final evaluation always takes place, and may not be scheduled at this step in the longer
  // run.
  const bool shorter_ends = !are_of_one_length && common == std::min(steps, second.length().steps);
  return shorter_ends && !first.evaluates_at(common) ? common - 1 : common;
}

}  // namespace gallop::app
