#include "gallop/app/run_log.h"

#include "gallop/base/error.h"

namespace gallop::app {

RunLog::RunLog(const fs::path& log, int64_t step, std::string part,
               std::vector<std::string> scheduled, int processes)
    : path_(log),
      writer_(log, step, {{"version", GALLOP_VERSION}}),
      step_(step),
      part_(std::move(part)),
      scheduled_(std::move(scheduled)) {
  system_.emplace(processes, [this](const track::SystemReading& reading) { sampled(reading); });
}

void RunLog::append(track::Record record) {
  const std::lock_guard lock(mutex_);
  writer_.append(std::move(record));
}

void RunLog::sampled(const track::SystemReading& reading) {
  const std::lock_guard lock(mutex_);
  try {
    writer_.append({.step = step_,
                    .kind = "system",
                    .values = reading.values,
                    .texts = {{"energy", reading.energy_method}}});
  } catch (const DeviceError&) {
    // Training detects this itself, and reports it.
  }
}

void RunLog::stepped(const train::StepEvent& event) {
  step_ = event.step;
  if (!event.record && !event.is_spike) return;
  track::Record record{.step = event.step,
                       .kind = "step",
                       .values = {{"epoch", event.epoch},
                                  {"loss", event.loss},
                                  {"lr", event.lr},
                                  {"gradient_norm", event.gradient_norm},
                                  {"samples_per_second", event.samples_per_second},
                                  {"wait_share", event.wait_share}}};
  for (size_t i = 0; i < scheduled_.size(); ++i) record.values[scheduled_[i]] = event.scheduled[i];
  if (event.is_spike) record.values["spike"] = 1;
  if (event.accuracy) record.values["accuracy"] = *event.accuracy;
  append(std::move(record));
}

void RunLog::evaluated(const train::EvaluationEvent& event) {
  const auto& tally = event.evaluation.tally;
  track::Record record{.step = event.step,
                       .kind = "evaluation",
                       .values = {{"epoch", event.epoch},
                                  {"loss", tally.loss()},
                                  {"targets", static_cast<double>(tally.count)},
                                  {"seconds", event.evaluation.seconds},
                                  {"training_seconds", event.training_seconds},
                                  {"best", event.best ? 1.0 : 0.0}},
                       .texts = {{"part", part_}}};
  if (event.evaluation.skipped > 0) {
    record.values["skipped_samples"] = static_cast<double>(event.evaluation.skipped);
  }
  if (event.evaluation.has_classes) {
    record.values["accuracy"] = tally.accuracy();
    record.values["top5"] = tally.top5_accuracy();
  }
  for (const train::MetricValue& metric : event.evaluation.metrics) {
    if (metric.value) record.values[metric.name] = *metric.value;
  }
  if (const auto& one = event.evaluation.one_view) {
    record.values["one_view_loss"] = one->loss();
    record.values["one_view_accuracy"] = one->accuracy();
  }
  append(std::move(record));
}

// Records of later steps are superseded.
void RunLog::went_back(int64_t step) {
  const std::lock_guard lock(mutex_);
  writer_ = track::LogWriter(path_, step, {{"version", GALLOP_VERSION}});
  step_ = step;
}

void RunLog::noted(const std::string& line) {
  append({.step = step_, .kind = "note", .texts = {{"text", line}}});
}

void RunLog::saved(int64_t step, const std::string& folder) {
  append({.step = step, .kind = "checkpoint", .texts = {{"folder", folder}}});
}

void RunLog::finished(const train::Outcome& outcome) {
  system_.reset();  // The end must be the last record.
  track::Record record{.step = outcome.step,
                       .kind = "end",
                       .values = {{"training_seconds", outcome.training_seconds},
                                  {"seconds", outcome.seconds},
                                  {"samples", static_cast<double>(outcome.samples)}},
                       .texts = {{"how", outcome.finished ? "finished" : "stopped"}}};
  if (outcome.rewinds > 0) record.values["rewinds"] = static_cast<double>(outcome.rewinds);
  if (!outcome.ended_early.empty()) record.texts["ended_early"] = outcome.ended_early;
  append(std::move(record));
  writer_.sync();
}

std::string RunLog::stopped_record() const {
  return writer_.line({.step = step_, .kind = "end", .texts = {{"how", "stopped"}}});
}

void RunLog::failed(const std::string& error) {
  system_.reset();  // The end must be the last record.
  try {
    append({.step = step_,
            .kind = "end",
            .texts = {{"how", "failed"}, {"error", error.substr(0, error.find('\n'))}}});
    writer_.sync();
  } catch (const Error&) {
    // The original error may be a full disk.
  }
}

}  // namespace gallop::app
