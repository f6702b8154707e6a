#include "gallop/train/length.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gallop::train {

namespace {

using Segment = BatchHistory::Segment;

constexpr double kRounding = 1e-9;

// Binary search: the first number from `low` on for which a monotonic condition holds.
template <typename Condition>
int64_t first_for_which(int64_t low, int64_t high, const Condition& is_true) {
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (is_true(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

BatchHistory new_history(const TrainConfig& config, int64_t batch, int64_t samples_per_epoch,
                         int64_t batches) {
  const std::vector<int64_t> sizes = rampup_sizes(config.rampup_batch_size, batch);
  BatchHistory history(sizes.front(), samples_per_epoch, batches);
  const double samples = config.epochs * static_cast<double>(samples_per_epoch);
  for (size_t i = 1; i < sizes.size(); ++i) {
    const double share = config.rampup_batch_size.duration * static_cast<double>(i) /
                         static_cast<double>(sizes.size() - 1);
    const Segment last = history.last();
    const auto has_done = [&](int64_t step) {
      return static_cast<double>(last.samples_after(step)) >= share * samples - kRounding;
    };
    const int64_t step =
        config.steps
            ? std::llround(share * static_cast<double>(*config.steps))
            : first_for_which(last.step, last.step + std::llround(std::ceil(samples)), has_done);
    history.change_batch(std::max(last.step, step), sizes[i]);
  }
  return history;
}

Length Length::of(const TrainConfig& config, int64_t batch, int64_t samples_per_epoch) {
  return of(config, new_history(config, batch, samples_per_epoch));
}

Length Length::of(const TrainConfig& config, const BatchHistory& history) {
  const Segment& last = history.last();
  Length length{.batches_per_epoch = last.batches_per_epoch(),
                .batch = last.batch,
                .samples_per_epoch = last.samples_per_epoch,
                .is_in_steps = config.steps.has_value(),
                .ramps_up = rampup_sizes(config.rampup_batch_size, last.batch).size() > 1,
                .history = history};
  length.steps = config.steps ? *config.steps : length.step_of_epochs(config.epochs);
  length.samples = length.samples_after(length.steps);
  return length;
}

int64_t Length::samples_after(int64_t updates) const {
  return history.at(updates).samples_after(updates);
}

double Length::epochs_after(int64_t updates) const {
  if (history.is_uniform()) {
    return static_cast<double>(updates) / static_cast<double>(batches_per_epoch);
  }
  return history.at(updates).epochs_after(updates);
}

int64_t Length::multiples_of_epochs(double epochs, int64_t updates) const {
  const double multiples =
      history.is_uniform()
          ? static_cast<double>(updates) / (epochs * static_cast<double>(batches_per_epoch))
          : epochs_after(updates) / epochs;
  return static_cast<int64_t>(multiples + kRounding);
}

double Length::progress(int64_t samples_done) const {
  if (history.is_uniform() || !is_in_steps) {
    return static_cast<double>(samples_done) / static_cast<double>(samples);
  }
  const auto& segments = history.segments();
  size_t i = segments.size() - 1;
  while (i > 0 && segments[i].samples > samples_done) --i;
  const Segment& from = segments[i];
  const bool is_last = i + 1 == segments.size();
  const int64_t end_step = is_last ? steps : segments[i + 1].step;
  const int64_t end_samples = is_last ? samples : segments[i + 1].samples;
  if (end_samples <= from.samples) return 1;
  const double part = static_cast<double>(samples_done - from.samples) /
                      static_cast<double>(end_samples - from.samples);
  return (static_cast<double>(from.step) + part * static_cast<double>(end_step - from.step)) /
         static_cast<double>(steps);
}

int64_t Length::step_of(const Interval& interval) const {
  switch (interval.unit) {
    case Interval::Unit::kSteps: return std::llround(interval.count);
    case Interval::Unit::kEpochs: return step_of_epochs(interval.count);
    default: return std::numeric_limits<int64_t>::max();
  }
}

int64_t Length::step_of_epochs(double epochs) const {
  if (history.is_uniform()) {
    return static_cast<int64_t>(
        std::ceil(epochs * static_cast<double>(batches_per_epoch) - kRounding));
  }
  const Segment& last = history.last();
  const double rest = std::max(0.0, epochs - static_cast<double>(last.epoch)) + 1;
  const int64_t most =
      last.step + static_cast<int64_t>(std::ceil(rest * static_cast<double>(batches_per_epoch)));
  return first_for_which(0, most,
                         [&](int64_t step) { return epochs_after(step) >= epochs - kRounding; });
}

int64_t Length::step_of_progress(double share) const {
  if (is_in_steps) return std::llround(share * static_cast<double>(steps));
  const double wanted = share * static_cast<double>(samples);
  const auto after = [this](int64_t step) { return static_cast<double>(samples_after(step)); };
  const int64_t step =
      first_for_which(0, steps, [&](int64_t one) { return after(one) >= wanted - kRounding; });
  const bool is_one_before_nearer = step > 0 && wanted - after(step - 1) < after(step) - wanted;
  return is_one_before_nearer ? step - 1 : step;
}

schedule::RunLength Length::for_schedules() const {
  if (history.is_uniform()) {
    return {.samples = static_cast<double>(samples),
            .samples_per_epoch = static_cast<double>(samples_per_epoch),
            .batch = static_cast<double>(batch),
            .batches_per_epoch = static_cast<double>(batches_per_epoch)};
  }
  using Unit = schedule::Span::Unit;
  // Progress is that of steps.
  if (ramps_up && is_in_steps) {
    return {.samples = static_cast<double>(steps), .batch = 1, .excluded = Unit::kEpochs};
  }
  const Segment first{.batch = history.first().batch, .samples_per_epoch = samples_per_epoch};
  const int64_t all = is_in_steps ? first.samples_after(steps) : samples;
  schedule::RunLength length{.samples = static_cast<double>(all),
                             .samples_per_epoch = static_cast<double>(samples_per_epoch),
                             .batch = static_cast<double>(first.batch),
                             .batches_per_epoch = static_cast<double>(first.batches_per_epoch())};
  if (ramps_up) length.excluded = Unit::kSteps;
  return length;
}

schedule::RunLength Length::for_updates() const {
  schedule::RunLength length = for_schedules();
  if (history.is_uniform()) return length;
  length.excluded = {};
  length.samples_per_epoch = static_cast<double>(samples_per_epoch);
  length.samples = static_cast<double>(samples);
  length.batch = static_cast<double>(batch);
  length.batches_per_epoch = static_cast<double>(batches_per_epoch);
  length.step_at = [self = *this](double share) { return self.step_of_progress(share); };
  return length;
}

}  // namespace gallop::train
