#include "gallop/track/run_summary.h"

#include <cmath>

#include "gallop/base/error.h"
#include "gallop/config/node.h"
#include "gallop/config/renamed_options.h"
#include "gallop/track/run_folder.h"

namespace gallop::track {

namespace {

// A list is one value, as displayed in a table.
void flatten(const config::Node& node, const std::string& path,
             std::map<std::string, std::string>& params) {
  if (node.kind != config::Node::Kind::kMap) {
    if (path.empty()) return;
    params[path] = node.kind == config::Node::Kind::kScalar ? node.scalar : config::to_json(node);
    return;
  }
  for (const auto& entry : node.entries) {
    flatten(entry.value, path.empty() ? entry.key : path + "." + entry.key, params);
  }
}

std::string text_of(const Record& record, const char* name) {
  const auto found = record.texts.find(name);
  return found != record.texts.end() ? found->second : std::string();
}

}  // namespace

void MetricSummary::add(int64_t step, double value) {
  last = value;
  last_step = step;
  const bool is_first = count == 0 || !std::isfinite(least);
  count += 1;
  if (!is_first && !std::isfinite(value)) return;
  if (is_first || value < least) {
    least = value;
    least_step = step;
  }
  if (is_first || value > most) {
    most = value;
    most_step = step;
  }
}

std::map<std::string, std::string> recipe_options(const fs::path& folder) {
  std::map<std::string, std::string> options;
  const std::string text = RunFolder::read_recipe(folder);
  try {
    config::Node recipe = config::parse_yaml(text, (folder / "recipe.yaml").string());
    config::Problems problems;
    config::rename_old_options(recipe, problems);
    flatten(recipe, "", options);
  } catch (const UsageError& error) {
    throw DataError(error.what());
  }
  return options;
}

const char* state_name(RunState state) {
  switch (state) {
    case RunState::kTraining: return "training";
    case RunState::kFinished: return "finished";
    case RunState::kStopped: return "stopped";
    case RunState::kDied: return "died";
    case RunState::kUnreadable: return "unreadable";
    case RunState::kFailed: return "failed";
  }
  return "";
}

std::string end_text(const Record& end) {
  const std::string how = text_of(end, "how"),
                    why = text_of(end, how == "failed" ? "error" : "ended_early");
  return how + (why.empty() ? "" : ": " + why);
}

RunState state_of_end(const Record& end) {
  const std::string how = text_of(end, "how");
  return how == "finished" ? RunState::kFinished
         : how == "failed" ? RunState::kFailed
                           : RunState::kStopped;
}

}  // namespace gallop::track
