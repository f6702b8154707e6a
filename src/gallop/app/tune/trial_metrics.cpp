#include "gallop/app/tune/trial_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <regex>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/metric_order.h"
#include "gallop/base/text.h"
#include "gallop/tune/target_metric.h"

namespace gallop::app {

namespace {

using Json = nlohmann::json;

constexpr double kMostReports = 0x1p53;
constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr std::string_view kBest = "best_";

// Replaces numbers beyond the range of a double, such as 1e999, by the largest one.
std::string without_overflow(const std::string& text) {
  constexpr const char* kDigits = "0123456789";
  std::string result;
  for (size_t i = 0; i < text.size();) {
    const size_t begin = std::min(text.find_first_of(kDigits, i), text.size());
    const size_t end = std::min(text.find_first_not_of("0123456789.eE+-", begin), text.size());
    const std::string number = text.substr(begin, end - begin);
    result += text.substr(i, begin - i);
    result +=
        std::isinf(std::strtod(number.c_str(), nullptr)) ? fmt::format("{}", kLargest) : number;
    i = end;
  }
  return result;
}

// Accepts NaN and Infinity as Python writes them, and numbers beyond the range of a double. JSON
// has no infinity: the largest number stands for it, which is harmless within strings, too.
Json parsed(std::string_view line) {
  Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_discarded()) return json;
  static const std::regex kNan("-?\\bNaN\\b"), kInfinity("\\bInfinity\\b");
  std::string text = std::regex_replace(std::string(line), kNan, "null");
  text = std::regex_replace(text, kInfinity, fmt::format("{}", kLargest));
  return Json::parse(without_overflow(text), nullptr, /*allow_exceptions=*/false);
}

double number_of(const Json& json) {
  const double number = json.is_number() ? json.get<double>() : std::nan("");
  return std::abs(number) == kLargest ? std::copysign(kInfinite, number) : number;
}

// Skips a progress bar that was redrawn from the beginning of the line before the object that
// another stream printed.
std::string_view without_bar(std::string_view line) {
  const size_t last = line.find_last_not_of('\r');
  if (last == std::string_view::npos) return line;
  const size_t bar = line.rfind('\r', last);
  if (bar == std::string_view::npos) return line;
  const size_t object = line.find('{', bar);
  return object == std::string_view::npos ? line : line.substr(object);
}

}  // namespace

std::string ReportUnit::until(int64_t report) const {
  // Rounds away the noise of the multiplication.
  return fmt::format("{:.12g} {}", static_cast<double>(report) * every,
                     of_epochs ? "epochs" : "steps");
}

TrialMetrics::TrialMetrics(const tune::StudySettings& settings, const tune::RunSpec& spec,
                           const TrialReports& reports)
    : settings_(settings),
      is_recipe_(!spec.recipe.empty()),
      reported_(reports.metrics),
      unit_(reports.unit) {}

// A metric that is no objective has its direction in evaluations.
bool TrialMetrics::is_smaller_better(const std::string& metric) const {
  for (const auto& objective : settings_.objectives) {
    if (objective.metric == metric) return !objective.maximize;
    if (objective.metric == std::string(kBest) + metric) return !objective.maximize;
  }
  return !reported_.is_higher_better(metric);
}

void TrialMetrics::note(const std::string& name, double value, double seconds) {
  last_[name] = value;
  const Better better = is_smaller_better(name) ? Better::kSmaller : Better::kLarger;
  const double sign = better == Better::kSmaller ? 1 : -1;
  const auto [best, is_new] = derived_.try_emplace(std::string(kBest) + name, value);
  if (!is_new && is_better(value, best->second, better)) best->second = value;
  for (const auto& objective : settings_.objectives) {
    const auto target = tune::parse_target_metric(objective.metric);
    if (!target || target->metric != name || derived_.contains(objective.metric)) continue;
    const bool is_reached = std::isfinite(value) && sign * value <= sign * target->value;
    if (is_reached) derived_[objective.metric] = seconds;
  }
}

bool TrialMetrics::counts(const std::string& event) const {
  return !is_recipe_ || event == "evaluation" || event == "earlier" || event == "finished" ||
         event == "stopped";
}

std::optional<TrialMetrics::Report> TrialMetrics::take(std::string_view line) {
  if (!is_recipe_) line = without_bar(line);
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  if (!line.starts_with('{')) return std::nullopt;
  const Json json = parsed(line);
  if (!json.is_object()) return std::nullopt;
  const std::string event = json.contains("event") && json["event"].is_string()
                                ? json["event"].get<std::string>()
                                : std::string();
  if (!counts(event)) return std::nullopt;
  const auto number = [&](const char* name) {
    return json.contains(name) && json[name].is_number() ? json[name].get<double>() : std::nan("");
  };
  const double seconds = number("training_seconds");
  for (const auto& [name, value] : json.items()) {
    if (value.is_number() || value.is_null()) note(name, number_of(value), seconds);
  }
  const std::string& metric = settings_.objectives.front().metric;
  const std::string plain = metric.starts_with(kBest) ? metric.substr(kBest.size()) : metric;
  const bool is_earlier = is_recipe_ && event == "earlier";
  const bool is_report = is_recipe_ ? is_earlier || event == "evaluation" : json.contains(plain);
  const auto value = value_of(metric);
  if (!is_report || !value) return std::nullopt;
  const double place =
      is_recipe_ ? number(unit_.of_epochs ? "epoch" : "step") / unit_.every : number("step");
  // Steps out of range, such as -1, are not used as report numbers.
  const bool is_place = place >= 0 && place < kMostReports;
  reports_ = is_place ? static_cast<int64_t>(std::ceil(place - 1e-6)) : reports_ + 1;
  return Report{reports_, *value, is_earlier};
}

bool TrialMetrics::is_settled() const {
  return std::all_of(
      settings_.objectives.begin(), settings_.objectives.end(), [&](const auto& objective) {
        return tune::parse_target_metric(objective.metric) && derived_.contains(objective.metric);
      });
}

std::optional<double> TrialMetrics::value_of(const std::string& metric) const {
  for (const auto* values : {&derived_, &last_}) {
    if (const auto found = values->find(metric); found != values->end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace gallop::app
