#include "gallop/train/batch_history.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/train/progress.h"

namespace gallop::train {

namespace {

using Segment = BatchHistory::Segment;

constexpr const char* kCount = "batches";
constexpr const char* kBatches = "batches_per_epoch";  // Missing in older checkpoints.

// One list of names for reading and writing.
template <typename S, typename Visit>
void each_value(S& segment, Visit visit) {
  visit("step", segment.step);
  visit("samples", segment.samples);
  visit("epoch", segment.epoch);
  visit("position", segment.position);
  visit("batch", segment.batch);
  visit("samples_per_epoch", segment.samples_per_epoch);
  visit(kBatches, segment.batches);
}

std::string key_of(size_t i, const char* name) { return fmt::format("batches.{}.{}", i, name); }

// Whether all steps up to this position can have had its batch size.
bool is_uniform_up_to(const Segment& here) {
  const Segment whole{.batch = here.batch, .samples_per_epoch = here.samples_per_epoch};
  return whole.samples_after(here.step) == here.samples &&
         here.samples == here.epoch * here.samples_per_epoch + here.position;
}

// The history of a checkpoint that does not contain one.
std::vector<Segment> guess(const Segment& here) {
  Segment before{.batch = here.batch, .samples_per_epoch = here.samples_per_epoch};
  if (here.step == 0 || is_uniform_up_to(here)) return {before};
  const double mean = static_cast<double>(here.samples) / static_cast<double>(here.step);
  before.batch = std::max<int64_t>(1, std::llround(mean));
  return {before, here};
}

}  // namespace

int64_t Segment::samples_after(int64_t at) const {
  const int64_t updates = at - step;
  if (batches > 0) {
    // Exact at the end of an epoch, and up to the differences of batches within one.
    const int64_t all = position * batches / samples_per_epoch + updates;
    return samples - position + all / batches * samples_per_epoch +
           all % batches * samples_per_epoch / batches;
  }
  const int64_t rest = samples_per_epoch - position;
  const int64_t of_rest = (rest + batch - 1) / batch;
  if (updates < of_rest) return samples + updates * batch;
  const int64_t after = updates - of_rest;
  return samples + rest + after / batches_per_epoch() * samples_per_epoch +
         after % batches_per_epoch() * batch;
}

double Segment::epochs_after(int64_t at) const {
  const int64_t in_epoch = position + samples_after(at) - samples;
  return static_cast<double>(epoch) +
         static_cast<double>(in_epoch) / static_cast<double>(samples_per_epoch);
}

BatchHistory::BatchHistory(int64_t batch, int64_t samples_per_epoch, int64_t batches)
    : segments_{{.batch = batch, .samples_per_epoch = samples_per_epoch, .batches = batches}} {}

void BatchHistory::change_batch(int64_t step, int64_t batch) {
  Segment& last = segments_.back();
  if (step == last.step) {
    last.batch = batch;
    return;
  }
  Segment next = last;
  next.step = step;
  next.samples = last.samples_after(step);
  const int64_t in_epoch = last.position + next.samples - last.samples;
  next.epoch = last.epoch + in_epoch / last.samples_per_epoch;
  next.position = in_epoch % last.samples_per_epoch;
  next.batch = batch;
  segments_.push_back(next);
}

BatchHistory BatchHistory::resumed(const std::map<std::string, std::string>& trainer,
                                   const BatchHistory& planned) {
  const auto& [batch, samples_per_epoch, batches] =
      std::tuple(planned.last().batch, planned.last().samples_per_epoch, planned.last().batches);
  data::LoaderState loader;
  const Progress progress = Progress::from_map(trainer, loader);
  Segment here{.step = progress.step,
               .samples = progress.samples,
               .epoch = loader.epoch,
               .position = loader.position,
               .batch = batch,
               .samples_per_epoch = samples_per_epoch,
               .batches = batches};
  if (here.position >= samples_per_epoch) {
    here.epoch += 1;
    here.position = 0;
  }
  BatchHistory history;
  if (trainer.contains(kCount)) {
    const int64_t count = read_integer(trainer, kCount);
    for (int64_t i = 0; i < count; ++i) {
      each_value(history.segments_.emplace_back(), [&](const char* name, int64_t& value) {
        const std::string key = key_of(static_cast<size_t>(i), name);
        if (name != std::string_view(kBatches) || trainer.contains(key))
          value = read_integer(trainer, key);
      });
    }
    const bool is_right =
        std::all_of(history.segments_.begin(), history.segments_.end(), [](const Segment& one) {
          return one.batch >= 1 && one.samples_per_epoch >= 1 && one.batches >= 0;
        });
    if (count < 1 || !is_right || history.first().step != 0) {
      throw DataError("the checkpoint's batch sizes are damaged");
    }
  } else {
    history.segments_ = guess(here);
  }
  const auto goes_on = [&] {
    const Segment& last = history.last();
    return last.batch == batch && last.samples_per_epoch == samples_per_epoch &&
           last.batches == batches;
  };
  if (goes_on()) return history;
  if (here.step == 0) return planned;
  // Segments without steps so far; the first one has some.
  const Segment last = history.last();
  std::vector<Segment> later;
  while (history.last().step >= here.step) {
    later.push_back(history.last());
    history.segments_.pop_back();
  }
  if (goes_on()) return history;
  // With other data, planned changes of the batch size remain.
  const bool remain = last.batch == batch && last.batches == batches && last.step > here.step;
  if (remain) here.batch = history.last().batch;
  history.segments_.push_back(here);
  for (auto one = later.rbegin(); remain && one != later.rend(); ++one) {
    history.change_batch(one->step, one->batch);
  }
  return history;
}

std::vector<data::BatchSizeChange> BatchHistory::changes() const {
  std::vector<data::BatchSizeChange> changes;
  if (is_uniform()) return changes;
  for (const Segment& one : segments_) {
    changes.push_back({.epoch = one.epoch, .position = one.position, .batch = one.batch});
  }
  return changes;
}

void BatchHistory::write(std::map<std::string, std::string>& trainer) const {
  trainer[kCount] = std::to_string(segments_.size());
  for (size_t i = 0; i < segments_.size(); ++i) {
    each_value(segments_[i], [&](const char* name, int64_t value) {
      trainer[key_of(i, name)] = std::to_string(value);
    });
  }
}

const Segment& BatchHistory::at(int64_t step) const {
  auto found = std::find_if(segments_.rbegin(), segments_.rend(),
                            [step](const Segment& one) { return one.step <= step; });
  return found == segments_.rend() ? first() : *found;
}

}  // namespace gallop::train
