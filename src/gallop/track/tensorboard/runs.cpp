#include "gallop/track/tensorboard/runs.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/node.h"
#include "gallop/config/scalar.h"
#include "gallop/track/labels.h"
#include "gallop/track/log.h"
#include "gallop/track/points.h"
#include "gallop/track/run_folder.h"
#include "gallop/track/run_summary.h"
#include "gallop/track/tensorboard/event_file.h"

namespace gallop::track::tensorboard {

namespace {

constexpr const char* kEvaluation = "evaluation";
constexpr const char* kTraining = "train";
constexpr const char* kStep = "step";  // The kind of record that training writes.
// Kinds of records that mean something else.
constexpr std::array kOfTheLog = {"session", "end", "checkpoint", "note", kStep};

std::string tag_of(const std::string& metric) {
  const size_t dot = metric.find('.');
  if (dot == std::string::npos) return std::string(kEvaluation) + "/" + metric;
  return metric.substr(0, dot) + "/" + metric.substr(dot + 1);
}

Option option_of(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (const auto number = parse_number<double>(text)) return *number;
  return text;
}

std::string text_of(const Option& option) {
  if (const auto* truth = std::get_if<bool>(&option)) return *truth ? "true" : "false";
  if (const auto* number = std::get_if<double>(&option)) return config::number_text(*number);
  return std::get<std::string>(option);
}

std::string recipe_of(const std::map<std::string, Option>& options) {
  config::Node recipe;
  recipe.kind = config::Node::Kind::kMap;
  for (const auto& [name, option] : options) {
    recipe.at_or_add(name, {}) = config::Node::make_scalar(text_of(option));
  }
  return config::to_yaml(recipe, false);
}

bool is_event_file(const fs::path& path) {
  return path.filename().string().find("tfevents") != std::string::npos;
}

std::vector<fs::path> event_files(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file() && is_event_file(entry.path())) files.push_back(entry.path());
  }
  // Their names begin with their time.
  std::sort(files.begin(), files.end());
  return files;
}

// Kind of record and name of the value.
std::pair<std::string, std::string> place_of(const std::string& tag) {
  const size_t slash = tag.find('/');
  const std::string group = slash == std::string::npos ? "" : tag.substr(0, slash);
  const bool is_plain = group.empty() || slash + 1 == tag.size() ||
                        std::find(kOfTheLog.begin(), kOfTheLog.end(), group) != kOfTheLog.end();
  if (is_plain) return {kEvaluation, tag};
  return {group == kTraining ? kStep : group, tag.substr(slash + 1)};
}

// What the files of one run hold.
struct Content {
  std::map<std::pair<int64_t, std::string>, Record> records;  // By step and kind.
  std::map<std::string, Option> options;
  Ending ending = Ending::kSuccess;
  Imported counts;
};

Content read(const EventFolder& from) {
  Content content;
  const EventVisitor visitor{
      .scalar =
          [&](const Scalar& scalar) {
            const auto [kind, name] = place_of(scalar.tag);
            Record& record = content.records[{scalar.step, kind}];
            record.step = scalar.step;
            record.kind = kind;
            record.time = scalar.time;
            record.values[name] = scalar.value;
            content.counts.points += 1;
          },
      .options =
          [&](const auto& options) { content.options.insert(options.begin(), options.end()); },
      .end = [&](Ending ending) { content.ending = ending; }};
  for (const fs::path& file : event_files(from.folder)) {
    content.counts.left_out += read_event_file(file, visitor);
  }
  return content;
}

std::vector<Record> log_of(const Content& content) {
  std::vector<Record> records;
  for (const auto& [key, record] : content.records) records.push_back(record);
  if (content.ending == Ending::kRunning) return records;
  Record end{.kind = "end",
             .texts = {{"how", content.ending == Ending::kSuccess ? "finished" : "stopped"}}};
  for (const Record& record : records) {
    end.step = std::max(end.step, record.step);
    end.time = std::max(end.time, record.time);
  }
  records.push_back(std::move(end));
  return records;
}

}  // namespace

int64_t export_run(const fs::path& run, const fs::path& folder) {
  const RunSummary summary = summarize_run(run);
  const Log log = read_log(run / "metrics.log");
  const fs::path target = folder / summary.name;
  make_folders(target);
  const auto old = event_files(target);
  std::map<std::string, Option> options;
  for (const auto& [name, text] : summary.params) options.emplace(name, option_of(text));
  EventFileWriter writer(target / event_file_name(summary.created), summary.created);
  writer.write_options(options, summary.created);
  int64_t points = 0;
  for_each_point(log, [&](const Point& point) {
    writer.write({tag_of(point.metric), point.step, point.time, point.value});
    ++points;
  });
  if (summary.state != RunState::kTraining) {
    const bool is_good = summary.state == RunState::kFinished;
    writer.write_end(is_good ? Ending::kSuccess : Ending::kFailure,
                     summary.created + summary.seconds);
  }
  writer.finish();
  for (const fs::path& file : old) fs::remove(file);
  return points;
}

std::vector<EventFolder> find_runs(const fs::path& folder) {
  std::set<fs::path> folders;
  std::error_code error;
  for (auto entry = fs::recursive_directory_iterator(folder, error);
       !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (entry->is_regular_file() && is_event_file(entry->path())) {
      folders.insert(entry->path().parent_path());
    }
  }
  if (error || folders.empty()) {
    throw UsageError(fmt::format("{}: {}", printable(folder.string()),
                                 error ? "cannot be read: " + error.message()
                                       : "has no files of TensorBoard (*tfevents*) in it"));
  }
  std::vector<EventFolder> runs;
  for (const fs::path& one : folders) {
    std::string name = one.lexically_relative(folder).string();
    if (name == ".") name = fs::absolute(folder).lexically_normal().filename().string();
    std::replace(name.begin(), name.end(), '/', '-');
    runs.push_back({one, name});
  }
  return runs;
}

Imported import_run(const EventFolder& from, const fs::path& runs, const std::string& name) {
  const Content content = read(from);
  const auto records = log_of(content);
  make_folders(runs);
  const RunFolder run = RunFolder::create(runs, name, recipe_of(content.options), {});
  write_log(run.log(), records);
  write_labels(run.path(), {.tags = {{"imported", "tensorboard"}}, .note = {}});
  return content.counts;
}

}  // namespace gallop::track::tensorboard
