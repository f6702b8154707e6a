#include "gallop/ui/history.h"

#include <algorithm>

#include "gallop/track/log_line.h"

namespace gallop::ui {

namespace {

// Erases points after this step.
void cut(MetricPoints& points, int64_t step) {
  const auto end = std::upper_bound(points.steps.begin(), points.steps.end(), step);
  const auto count = static_cast<size_t>(end - points.steps.begin());
  points.steps.resize(count);
  points.times.resize(count);
  points.values.resize(count);
}

}  // namespace

track::MetricSummary summary_of(const MetricPoints& points) {
  track::MetricSummary summary;
  for (size_t i = 0; i < points.steps.size(); ++i) summary.add(points.steps[i], points.values[i]);
  return summary;
}

RunHistory::RunHistory(fs::path log) : log_(std::move(log)), follower_(log_) {}

void RunHistory::update() {
  follower_.read(
      {.restart = [this] { clear(); },
       .record = [this](track::Record record, int64_t offset) { add(std::move(record), offset); }});
}

void RunHistory::clear() {
  metrics_.clear();
  begin_ = 0;
  points_ = 0;
  energy_ = {};
  ends_.clear();
  places_.clear();
  kinds_.clear();
}

void RunHistory::add(track::Record record, int64_t offset) {
  if (record.kind == track::kSession) go_back_to(record.step);
  energy_.add(record);
  track::for_each_point(record, [this](const track::Point& point) { add_point(point); });
  kinds_[record.kind].push_back(static_cast<uint32_t>(places_.size()));
  places_.push_back({.offset = offset, .step = record.step});
  if (record.kind == "end") ends_.push_back(std::move(record));
}

void RunHistory::go_back_to(int64_t step) {
  for (Place& place : places_) place.is_superseded = place.is_superseded || place.step > step;
  points_ = 0;
  for (auto metric = metrics_.begin(); metric != metrics_.end();) {
    cut(metric->second, step);
    points_ += static_cast<int64_t>(metric->second.steps.size());
    metric = metric->second.steps.empty() ? metrics_.erase(metric) : std::next(metric);
  }
}

void RunHistory::add_point(const track::Point& point) {
  MetricPoints& metric = metrics_[point.metric];
  // Nearly always an insertion at the end.
  const auto place =
      std::upper_bound(metric.steps.begin(), metric.steps.end(), point.step) - metric.steps.begin();
  metric.steps.insert(metric.steps.begin() + place, point.step);
  metric.times.insert(metric.times.begin() + place, point.time);
  metric.values.insert(metric.values.begin() + place, point.value);
  if (begin_ == 0) begin_ = point.time;
  ++points_;
}

size_t RunHistory::count(const std::string& kind) const {
  if (kind.empty()) return places_.size();
  const auto found = kinds_.find(kind);
  return found != kinds_.end() ? found->second.size() : 0;
}

std::vector<std::string> RunHistory::kinds() const {
  std::vector<std::string> names;
  for (const auto& [name, numbers] : kinds_) names.push_back(name);
  return names;
}

std::vector<track::Record> RunHistory::records(const std::string& kind, size_t offset,
                                               size_t limit) const {
  const size_t total = count(kind);
  std::vector<track::Record> records;
  if (offset >= total) return records;
  const FileDescriptor file = open_for_reading(log_);
  const size_t end = offset + std::min(limit, total - offset);
  for (size_t i = offset; i < end; ++i) {
    const Place& place = places_[kind.empty() ? i : kinds_.at(kind)[i]];
    records.push_back(track::read_record(file, log_, place.offset));
    records.back().superseded = place.is_superseded;
  }
  return records;
}

}  // namespace gallop::ui
