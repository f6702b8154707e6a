#include "gallop/schedule/span.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

namespace gallop::schedule {

namespace {

struct UnitName {
  const char* name;
  Span::Unit unit;
};

constexpr UnitName kUnits[] = {{"", Span::Unit::kShare},
                               {"epoch", Span::Unit::kEpochs},
                               {"epochs", Span::Unit::kEpochs},
                               {"step", Span::Unit::kSteps},
                               {"steps", Span::Unit::kSteps}};

bool is_allowed(const Span& span) {
  if (span.unit == Span::Unit::kShare) return span.count <= 1;
  return span.unit == Span::Unit::kEpochs || span.count == std::floor(span.count);
}

std::string wrong_span(const std::string& text) {
  try {
    Span::parse(text);
    return {};
  } catch (const UsageError& error) {
    return error.what();
  }
}

}  // namespace

Span Span::parse(const std::string& text) {
  double count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc() && count >= 0 && std::isfinite(count)) {
    const std::string unit(stop != end && *stop == ' ' ? stop + 1 : stop, end);
    for (const auto& known : kUnits) {
      const Span span{count, known.unit};
      if (unit == known.name && is_allowed(span)) return span;
    }
  }
  throw UsageError(fmt::format(
      "must be a fraction of the run from 0 to 1, or such as '30 epochs' or '500 steps', not '{}'",
      text));
}

config::Field span_field(const char* name, const char* help) {
  return {.name = name, .help = help, .check = wrong_span};
}

double RunLength::share_of(const Span& span) const {
  if (span.unit == excluded) {
    const bool is_steps = span.unit == Span::Unit::kSteps;
    throw UsageError(
        fmt::format("train.rampup_batch_size: batches become larger, so the schedule cannot "
                    "be given in {}; "
                    "give it in {}, or as a fraction of the run",
                    is_steps ? "steps" : "epochs", is_steps ? "epochs" : "steps"));
  }
  switch (span.unit) {
    case Span::Unit::kShare: return span.count;
    case Span::Unit::kEpochs:
      if (samples_per_epoch == 0) break;
      return span.count * samples_per_epoch / samples;
    case Span::Unit::kSteps:
      if (batch == 0) break;
      if (batches_per_epoch == 0) return span.count * batch / samples;
      const double epochs = std::floor(span.count / batches_per_epoch);
      const double rest = span.count - epochs * batches_per_epoch;
      return (epochs * samples_per_epoch + rest * batch) / samples;
  }
  throw UnknownLength(
      fmt::format("the schedule is given in {}, but the run's length in them is unknown",
                  span.unit == Span::Unit::kEpochs ? "epochs" : "steps"));
}

int64_t RunLength::steps_of(const Span& span) const {
  if (span.unit == Span::Unit::kSteps) return static_cast<int64_t>(span.count);
  if (batch == 0) throw UnknownLength("the length of the run in steps is unknown");
  if (step_at) return step_at(share_of(span));
  const double seen = share_of(span) * samples;
  if (batches_per_epoch == 0) return std::llround(seen / batch);
  const double epochs = std::floor(seen / samples_per_epoch + 1e-9);
  return std::llround(epochs * batches_per_epoch + (seen - epochs * samples_per_epoch) / batch);
}

int64_t RunLength::steps_between(const std::string& span) const {
  RunLength uniform = *this;
  uniform.step_at = {};
  return uniform.steps_of(span);
}

RunLength RunLength::part(double share) const {
  RunLength part = *this;
  part.samples *= share;
  return part;
}

}  // namespace gallop::schedule
