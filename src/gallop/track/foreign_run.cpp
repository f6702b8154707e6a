#include "gallop/track/foreign_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <tuple>

#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/config/node.h"
#include "gallop/track/labels.h"
#include "gallop/track/log.h"
#include "gallop/track/points.h"
#include "gallop/track/run_folder.h"

namespace gallop::track {

namespace {

constexpr const char* kEvaluation = "evaluation";
constexpr const char* kTraining = "train";
constexpr const char* kStep = "step";  // The record kind of training steps.
// Record kinds that are reserved.
constexpr std::array kOfTheLog = {"session", "end", "checkpoint", "note", kStep};

// Record kind of values that are not points in training records (track/points.h).
constexpr const char* kOther = "imported";

// The record kind and name of a value.
std::pair<std::string, std::string> kind_and_value(const std::string& name) {
  const size_t slash = name.find('/');
  const std::string group = slash == std::string::npos ? "" : name.substr(0, slash);
  const bool is_plain = group.empty() || slash + 1 == name.size() ||
                        std::find(kOfTheLog.begin(), kOfTheLog.end(), group) != kOfTheLog.end();
  if (is_plain) return {is_point(kEvaluation, name) ? kEvaluation : kOther, name};
  const std::string value = name.substr(slash + 1);
  if (group == kTraining) return {is_point(kStep, value) ? kStep : kTraining, value};
  return {is_point(group, value) ? group : kOther, value};
}

// Converts any text to a valid run name.
std::string plain_name(const std::string& text) {
  constexpr size_t kMostBytes = 180;  // Less than the limit of 200, to leave room for a number.
  std::string name = text.substr(std::min(text.find_first_not_of('.'), text.size()));
  for (char& letter : name) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == '/' || byte < 0x20 || byte == 0x7f) letter = '-';
  }
  const auto continues = [&](size_t at) {
    return (static_cast<unsigned char>(name[at]) & 0xc0) == 0x80;  // Continuation byte of UTF-8.
  };
  if (name.size() > kMostBytes) {
    size_t end = kMostBytes;
    while (end > 0 && continues(end)) --end;
    name.resize(end);
  }
  return name.empty() ? "run" : name;
}

std::string recipe_of(const std::map<std::string, std::string>& options) {
  config::Node recipe;
  recipe.kind = config::Node::Kind::kMap;
  for (const auto& [name, text] : options) {
    recipe.at_or_add(name, {}) = config::Node::make_scalar(text);
  }
  return config::to_yaml(recipe, false);
}

}  // namespace

std::string foreign_name(const std::string& metric) {
  const size_t dot = metric.find('.');
  if (dot == std::string::npos) return std::string(kEvaluation) + "/" + metric;
  return metric.substr(0, dot) + "/" + metric.substr(dot + 1);
}

std::vector<std::string> run_names(const std::vector<std::string>& wanted) {
  std::vector<std::string> names;
  std::set<std::string> taken;
  for (const std::string& name : wanted) names.push_back(plain_name(name));
  std::vector<size_t> others;  // Names that need not change come first.
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] != wanted[i] || !taken.insert(names[i]).second) others.push_back(i);
  }
  for (const size_t i : others) {
    const std::string name = names[i];
    for (int number = 2; !taken.insert(names[i]).second; ++number) {
      names[i] = fmt::format("{}-{}", name, number);
    }
  }
  return names;
}

size_t ForeignRun::metric_of(const std::string& name) {
  const auto [known, is_new] = metric_by_name_.try_emplace(name, metrics_.size());
  if (!is_new) return known->second;
  auto [kind, value] = kind_and_value(name);
  const std::string wanted = metric_name(kind, value);
  const std::string plain = value;
  // "loss" and "evaluation/loss" map to the same metric.
  for (int number = 2;
       !metric_by_own_name_.try_emplace(metric_name(kind, value), metrics_.size()).second;
       ++number) {
    value = fmt::format("{}-{}", plain, number);
  }
  if (const std::string own = metric_name(kind, value); own != wanted) {
    renamed_.push_back(fmt::format("metric '{}' is renamed to '{}', as '{}' is already used",
                                   printable(name), printable(own), printable(wanted)));
  }
  metrics_.push_back({.kind = std::move(kind), .value = std::move(value)});
  return metrics_.size() - 1;
}

void ForeignRun::add(const std::string& name, int64_t step, double time, double value) {
  points_.push_back({.metric = metric_of(name),
                     .step = step,
                     .time = std::isfinite(time) ? time : 0,
                     .value = value});
}

void ForeignRun::number_points_without_step() {
  std::vector<int64_t> counts(metrics_.size(), 0);
  std::vector<bool> has_steps(metrics_.size(), false);
  for (const Point& point : points_) {
    counts[point.metric] += 1;
    if (point.step != 0) has_steps[point.metric] = true;
  }
  std::stable_sort(points_.begin(), points_.end(),
                   [](const Point& a, const Point& b) { return a.time < b.time; });
  std::vector<int64_t> next(metrics_.size(), 0);
  for (Point& point : points_) {
    if (has_steps[point.metric] || counts[point.metric] < 2) continue;
    point.step = next[point.metric]++;
    metrics_[point.metric].is_numbered = true;
  }
}

int64_t ForeignRun::repeated_points() const {
  std::set<std::pair<size_t, int64_t>> seen;
  return std::count_if(points_.begin(), points_.end(), [&](const Point& point) {
    return !seen.emplace(point.metric, point.step).second;
  });
}

Imported ForeignRun::summary() const {
  Imported imported{.points = static_cast<int64_t>(points_.size()), .notes = renamed_};
  const auto numbered = std::count_if(points_.begin(), points_.end(), [this](const Point& point) {
    return metrics_[point.metric].is_numbered;
  });
  if (numbered > 0) {
    imported.notes.push_back(fmt::format("{} points logged without a step are numbered by time",
                                         format_count(numbered)));
  }
  if (const int64_t repeated = repeated_points(); repeated > 0) {
    imported.notes.push_back(fmt::format("{} points repeat a step of their metric; all are kept",
                                         format_count(repeated)));
  }
  return imported;
}

void ForeignRun::make(const fs::path& runs, const std::string& name,
                      const std::string& from) const {
  // Values of one step and time form a record; a repeated value starts another one.
  using Place = std::tuple<int64_t, double, std::string>;
  std::map<std::pair<Place, int64_t>, Record> by_place;
  std::map<std::pair<Place, size_t>, int64_t> counts;
  constexpr const char* kHow[] = {"finished", "stopped", "failed", ""};  // By Ending.
  Record end{.kind = "end", .texts = {{"how", kHow[static_cast<size_t>(ending_)]}}};
  end.time = ended_;
  for (const Point& point : points_) {
    const Metric& metric = metrics_[point.metric];
    const Place place{point.step, point.time, metric.kind};
    Record& record = by_place[{place, counts[{place, point.metric}]++}];
    record.step = point.step;
    record.kind = metric.kind;
    record.time = point.time;
    record.values[metric.value] = point.value;
    end.step = std::max(end.step, point.step);
    end.time = std::max(end.time, point.time);
  }
  std::vector<Record> records;
  for (auto& [place, record] : by_place) records.push_back(std::move(record));
  if (ending_ != Ending::kUnknown) records.push_back(std::move(end));
  make_folders(runs);
  const RunFolder run = RunFolder::create(runs, name, recipe_of(options_), {});
  try {
    write_log(run.log(), records, began_);
    Labels labels{.tags = tags_, .note = {}};
    labels.tags["imported"] = from;
    write_labels(run.path(), labels);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(run.path(), ignored);
    throw;
  }
}

}  // namespace gallop::track
