#include "gallop/schedule/warmup.h"

#include <fmt/format.h>

#include "gallop/schedule/curves.h"

namespace gallop::schedule {

void visit_warmup(config::Visitor& visitor, WarmupConfig& config, const WarmupNames& names) {
  visitor.field(span_field(names.length, "length of the warm-up"), config.length);
  visitor.field({.name = names.kind,
                 .help = "shape of the warm-up",
                 .choices = {"linear", "exponential", "constant"}},
                config.kind);
  visitor.field({.name = names.start, .help = "initial factor of the warm-up", .min = 0, .max = 1},
                config.start);
}

Warmup::Warmup(const char* schedule, const WarmupConfig& config, const RunLength& length)
    : end_(length.share_of(config.length)), kind_(config.kind), start_(config.start) {
  if (end_ > 1) {
    throw UsageError(fmt::format("schedule {}: a warm-up of '{}' is longer than the run", schedule,
                                 config.length));
  }
  if (end_ > 0 && kind_ != "linear" && start_ == 0) {
    throw UsageError(fmt::format(
        "schedule {}: the {} warm-up starts at 0 and stays there; set a start above 0, such as 0.1",
        schedule, kind_));
  }
}

bool Warmup::is_over(double progress) const { return has_reached(progress, end_); }

double Warmup::factor(double progress) const {
  if (kind_ == "constant") return start_;
  const double share = share_between(0, end_, progress);
  return kind_ == "linear" ? blend_linear(start_, 1, share) : std::pow(start_, 1 - share);
}

double Warmup::share_of_rest(double progress) const { return share_between(end_, 1, progress); }

}  // namespace gallop::schedule
