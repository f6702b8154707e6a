#include "gallop/schedule/course.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace gallop::schedule {

namespace {

// The trainer's progress for the update after `step` updates.
double progress_at(const RunLength& length, int64_t step) {
  const Span done{.count = static_cast<double>(step), .unit = Span::Unit::kSteps};
  return std::fmin(1, length.share_of(done));
}

int64_t steps_of(const Course& course) {
  return course.length.steps_of(Span{.count = 1, .unit = Span::Unit::kShare});
}

std::vector<uint64_t> values_at(const Course& course, int64_t step) {
  const double progress = progress_at(course.length, step);
  std::vector<uint64_t> bits;
  for (const auto& value : course.values) bits.push_back(std::bit_cast<uint64_t>(value(progress)));
  return bits;
}

bool are_comparable(const Course& one, const Course& other) {
  return one.length.samples_per_epoch == other.length.samples_per_epoch &&
         one.length.batch == other.length.batch &&
         one.length.batches_per_epoch == other.length.batches_per_epoch &&
         one.values.size() == other.values.size();
}

}  // namespace

int64_t common_steps(const Course& one, const Course& other) {
  if (!are_comparable(one, other)) return 0;
  const int64_t most = std::min(steps_of(one), steps_of(other));
  int64_t step = 0;
  while (step < most && values_at(one, step) == values_at(other, step)) ++step;
  return step;
}

std::vector<int64_t> turning_points(const Course& course, int64_t least) {
  std::vector<int64_t> points;
  const int64_t steps = steps_of(course);
  auto before = values_at(course, 0);
  int64_t since = 0;
  for (int64_t step = 1; step < steps; ++step) {
    auto now = values_at(course, step);
    if (now == before) continue;
    if (step - since >= std::max<int64_t>(least, 2)) points.push_back(step);
    since = step;
    before = std::move(now);
  }
  return points;
}

}  // namespace gallop::schedule
