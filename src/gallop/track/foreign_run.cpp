#include "gallop/track/foreign_run.h"

#include <algorithm>
#include <array>
#include <vector>

#include "gallop/config/node.h"
#include "gallop/track/labels.h"
#include "gallop/track/run_folder.h"

namespace gallop::track {

namespace {

constexpr const char* kEvaluation = "evaluation";
constexpr const char* kTraining = "train";
constexpr const char* kStep = "step";  // The kind of record that training writes.
// Kinds of records that mean something else.
constexpr std::array kOfTheLog = {"session", "end", "checkpoint", "note", kStep};

// Kind of record and name of the value.
std::pair<std::string, std::string> place_of(const std::string& name) {
  const size_t slash = name.find('/');
  const std::string group = slash == std::string::npos ? "" : name.substr(0, slash);
  const bool is_plain = group.empty() || slash + 1 == name.size() ||
                        std::find(kOfTheLog.begin(), kOfTheLog.end(), group) != kOfTheLog.end();
  if (is_plain) return {kEvaluation, name};
  return {group == kTraining ? kStep : group, name.substr(slash + 1)};
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

void ForeignRun::add(const std::string& name, int64_t step, double time, double value) {
  const auto [kind, value_name] = place_of(name);
  Record& record = records_[{step, kind}];
  record.step = step;
  record.kind = kind;
  record.time = time;
  record.values[value_name] = value;
  points_ += 1;
}

void ForeignRun::make(const fs::path& runs, const std::string& name,
                      const std::string& from) const {
  std::vector<Record> records;
  constexpr const char* kHow[] = {"finished", "stopped", "failed", ""};  // By Ending.
  Record end{.kind = "end", .texts = {{"how", kHow[static_cast<size_t>(ending_)]}}};
  end.time = ended_;
  for (const auto& [key, record] : records_) {
    records.push_back(record);
    end.step = std::max(end.step, record.step);
    end.time = std::max(end.time, record.time);
  }
  if (ending_ != Ending::kUnknown) records.push_back(std::move(end));
  make_folders(runs);
  const RunFolder run = RunFolder::create(runs, name, recipe_of(options_), {});
  write_log(run.log(), records, began_);
  Labels labels{.tags = tags_, .note = {}};
  labels.tags["imported"] = from;
  write_labels(run.path(), labels);
}

}  // namespace gallop::track
