#include "gallop/optimize/waterfall.h"

#include <cmath>

#include <fmt/format.h>

#include "gallop/base/text.h"

namespace gallop::optimize {

namespace {

// A difference between the product of the gains and the total that is worth a bar.
constexpr double kVisible = 0.01;

struct Scale {
  double start = 0;  ///< Of the recipe as it is.
  std::string (*text)(double value) = nullptr;
};

std::string duration_text(double seconds) { return format_duration(seconds); }
std::string bytes_text(double bytes) { return format_bytes(std::llround(bytes)); }
std::string joules_text(double joules) { return fmt::format("{:.3g} J", joules); }

Scale scale_of(const Report& report) {
  if (!report.total) return {1, duration_text};
  if (report.has_target()) return {report.plain_cost().seconds, duration_text};
  const auto samples = static_cast<double>(report.plain.samples);
  switch (report.goal) {
    case Goal::kMemory: return {static_cast<double>(report.total->base.peak_bytes), bytes_text};
    case Goal::kEnergy: return {samples * report.total->base.joules_per_sample, joules_text};
    case Goal::kTimeToAccuracy:
    case Goal::kThroughput: break;
  }
  return {samples / report.total->base.samples_per_second, duration_text};
}

}  // namespace

std::vector<WaterfallBar> waterfall_of(const Report& report) {
  const Scale scale = scale_of(report);
  std::vector<WaterfallBar> bars = {
      {.label = "as it is", .from = 0, .to = scale.start, .text = scale.text(scale.start)}};
  double at = scale.start;
  const auto add = [&](const std::string& label, double to) {
    bars.push_back({.label = label,
                    .from = at,
                    .to = to,
                    .text = fmt::format("{} ({:.2f}x)", scale.text(to), at / to)});
    at = to;
  };
  for (const Trial& trial : report.trials) {
    if (trial.verdict != Verdict::kKept || !trial.gain) continue;
    add(trial.change.name, at / trial.gain->value);
  }
  const double end = scale.start / report.total_gain();
  if (std::abs(std::log(at / end)) > kVisible) add("together", end);
  bars.push_back({.label = "best", .from = 0, .to = end, .text = scale.text(end)});
  return bars;
}

}  // namespace gallop::optimize
