#include "gallop/app/resume_options.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "gallop/base/file.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"
#include "gallop/config/resolve.h"

namespace gallop::app {

namespace {

using config::Node;

constexpr size_t kHelpColumns = 100;

bool matches(std::string_view pattern, std::string_view option) {
  if (!pattern.ends_with(".*")) return pattern == option;
  pattern.remove_suffix(2);
  return option == pattern ||
         (option.starts_with(pattern) && option.substr(pattern.size()).starts_with('.'));
}

// In one line where it is no map.
std::string value_text(const Node& node) {
  std::string text = config::to_yaml(node, /*show_origins=*/false);
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

// Every option and its value, a list as a whole.
void flatten(const Node& node, const std::string& path, std::map<std::string, std::string>& flat) {
  if (node.kind != Node::Kind::kMap) {
    flat[path] = value_text(node);
    return;
  }
  for (const Node::Entry& entry : node.entries) {
    flatten(entry.value, path.empty() ? entry.key : path + "." + entry.key, flat);
  }
}

Node written(ResolvedRecipe& resolved) {
  return config::write_fields([&](config::Visitor& visitor) { visit(visitor, resolved.recipe); },
                              resolved.written);
}

std::string text_of(const std::map<std::string, std::string>& flat, const std::string& option) {
  const auto found = flat.find(option);
  return found == flat.end() ? std::string() : found->second;
}

bool is_one_place(const std::string& one, const std::string& other) {
  std::error_code error;
  return !one.empty() && !other.empty() &&
         fs::weakly_canonical(fs::absolute(one), error) ==
             fs::weakly_canonical(fs::absolute(other), error);
}

// The selected member if its name may change, provided that the section has its options; otherwise
// null.
config::Component* member_of(Recipe& recipe, const std::string& section) {
  if (section == "schedule") return &recipe.schedule;
  if (section == "parallel") return &recipe.strategy;
  if (section == "schedules.label_smoothing") return &recipe.schedules.label_smoothing.schedule;
  if (section == "schedules.momentum") return &recipe.schedules.momentum.schedule;
  if (section == "schedules.beta2") return &recipe.schedules.beta2.schedule;
  if (section == "schedules.weight_decay") return &recipe.schedules.weight_decay.schedule;
  if (section == "schedules.dropout") return &recipe.schedules.dropout.schedule;
  return nullptr;
}

// Sections whose member must not change, as its options would be invalid for another one.
constexpr std::array kFixedMembers = {"data", "model", "optimizer", "train.loss", "train.metric"};

// A teacher's location may change, but not whether there is one.
bool is_allowed(const OptionChange& change) {
  const std::string none = "\"\"";
  if (change.option == "train.distill.teacher" &&
      (change.in_run == none || change.wanted == none)) {
    return false;
  }
  return may_change_on_resume(change.option);
}

// The node at "schedules.dropout"; null where there is none.
template <typename N>
N* find_section(N& root, const std::string& section) {
  N* node = &root;
  for (size_t at = 0; node != nullptr && at < section.size();) {
    const size_t dot = std::min(section.find('.', at), section.size());
    node = node->find(section.substr(at, dot - at));
    at = dot + 1;
  }
  return node;
}

}  // namespace

const std::vector<ResumeRule>& resume_rules() {
  static const std::vector<ResumeRule> rules = {
      {"plugins", true, "the same components in different files"},
      {"data.path", true, "the data have moved; their files are compared"},
      {"data.batch_size", true, "the position in the data is kept in samples"},
      {"data.eval_batch", true, ""},
      {"data.threads", true, ""},
      {"data.prefetch", true, ""},
      {"data.max_tokens", true, "the position in the data is kept in samples"},
      {"data.packing", true, "which changes neither the samples of a step nor their losses"},
      {"data.in_memory", true, ""},
      {"data.on_error", true, ""},
      {"data.augment", true, ""},
      {"data.batch_transforms", true, ""},
      {"model.file", true, "the run keeps the model that it began with"},
      {"model.weights", true, "which are only read at the start"},
      {"optimizer.name", false, ""},
      {"optimizer.wrappers", false, ""},
      {"optimizer.*", true, "if its state stays the same"},
      {"schedule.*", true, ""},
      {"schedules.*", true, ""},
      {"train.epochs", true, "not fewer than are done"},
      {"train.steps", true, "not fewer than are done"},
      {"train.device", true, ""},
      {"train.precision", true, "but not from or to fp16, which has a loss scale"},
      {"train.loss_scale.*", true, ""},
      {"train.channels_last", true, ""},
      {"train.compile", true, ""},
      {"train.deterministic", true, ""},
      {"train.gradient_accumulation", true, ""},
      {"train.activation_checkpointing.*", true, ""},
      {"train.clip_grad_norm", true, ""},
      {"train.clip_value", true, ""},
      {"train.clip_adaptive", true, ""},
      {"train.sam", true, ""},
      {"train.distill.teacher", true, "the same weights in another place"},
      {"train.threads", true, ""},
      {"train.evaluate_every", true, ""},
      {"train.early_stopping.*", true, ""},
      {"train.checkpoint_every", true, ""},
      {"train.keep_checkpoints", true, ""},
      {"train.checkpoint_in_background", true, ""},
      {"train.checkpoint_slice", true, ""},
      {"train.compare_every", true, ""},
      {"train.snapshots", true, ""},
      {"train.on_nonfinite", true, ""},
      {"train.spikes.*", true, "but spike detection cannot be turned on or off"},
      {"train.prove", true, ""},
      {"parallel.*", true, ""},
      {"track.*", true, ""},
      {"profile.*", true, ""},
  };
  return rules;
}

bool may_change_on_resume(const std::string& option) {
  for (const ResumeRule& rule : resume_rules()) {
    if (matches(rule.path, option)) return rule.may_change;
  }
  return false;
}

std::string describe_resume_rules() {
  std::string text = "Options that may change on --resume and --continue:\n";
  std::string line;
  std::string except;
  for (const ResumeRule& rule : resume_rules()) {
    if (!rule.may_change) {
      except += (except.empty() ? "" : ", ") + std::string(rule.path);
      continue;
    }
    if (line.size() + std::string_view(rule.path).size() > kHelpColumns) {
      text += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "  " : " ") + std::string(rule.path);
  }
  return text + line + "\n  but not " + except;
}

std::vector<OptionChange> changed_options(ResolvedRecipe& run, ResolvedRecipe& wanted,
                                          bool is_continued) {
  std::map<std::string, std::string> before, after;
  flatten(written(run), {}, before);
  flatten(written(wanted), {}, after);
  std::vector<OptionChange> changes;
  for (const auto& [option, value] : after) {
    const std::string in_run = text_of(before, option);
    if (value == in_run) continue;
    // Those of another member, whose name stands in the list.
    const std::string section = option.substr(0, option.rfind('.'));
    const std::string name = section + ".name";
    const bool is_of_member = member_of(wanted.recipe, section) != nullptr;
    const bool has_other_options = is_of_member || in_run.empty();
    if (option != name && has_other_options && text_of(before, name) != text_of(after, name)) {
      continue;
    }
    if (is_continued && value == "auto") continue;
    // "deterministic" resolves the threads that a recipe leaves open.
    if (is_continued && option == "train.threads" && value == "0" &&
        wanted.recipe.strategy.name() == "deterministic") {
      continue;
    }
    // Left to the task of the data, which has chosen the run's.
    if (is_continued && option.starts_with("train.loss.") &&
        wanted.find("train", "loss") == nullptr) {
      continue;
    }
    if (option == "data.path" && (is_one_place(run.recipe.data.path, wanted.recipe.data.path) ||
                                  (is_continued && wanted.recipe.data.path.empty()))) {
      continue;
    }
    OptionChange change{option, in_run, value, {}};
    if (option == name && is_of_member) {
      const Node all = written(wanted);
      change.section = value_text(*find_section(all, section));
    }
    changes.push_back(std::move(change));
  }
  return changes;
}

std::string describe(const std::vector<OptionChange>& changes) {
  std::string text;
  for (const OptionChange& change : changes) {
    text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", change.option,
                        change.in_run.empty() ? "none" : change.in_run, change.wanted);
  }
  return text;
}

void check_changes(const std::vector<OptionChange>& changes, const std::string& run,
                   const std::string& asked_by) {
  std::string lines;
  for (const OptionChange& change : changes) {
    if (is_allowed(change)) continue;
    lines +=
        fmt::format("\n  {}: {} in the run, {} by {}", change.option,
                    change.in_run.empty() ? "not set" : change.in_run, change.wanted, asked_by);
  }
  if (lines.empty()) return;
  throw UsageError(fmt::format(
      "{} cannot resume with different values of options that determine its weights and metrics"
      ":{}\nKeep the run's values, or start another run: 'gallop train RECIPE "
      "--name NAME', with its weights by --from {}. 'gallop train --help' lists the options that "
      "may change; nothing was changed",
      printable(run), lines, shell_word(run)));
}

std::vector<Override> overrides_of(const std::vector<OptionChange>& changes) {
  std::vector<Override> overrides;
  for (const OptionChange& change : changes) {
    if (change.section.empty()) {
      overrides.push_back({change.option, change.wanted});
    } else {
      overrides.push_back({change.option.substr(0, change.option.rfind('.')), change.section});
    }
  }
  return overrides;
}

void check_names(ResolvedRecipe& run, const std::string& run_name,
                 const std::vector<Override>& overrides) {
  std::map<std::string, std::string> flat;
  flatten(written(run), {}, flat);
  std::vector<OptionChange> changes;
  for (const Override& one : overrides) {
    const Node value = config::parse_override_value(one.value, one.path);
    for (const std::string section : kFixedMembers) {
      const std::string name = section + ".name";
      // "train.metric=loss" is short for its name.
      const bool is_short = one.path == section && value.kind == Node::Kind::kScalar;
      if (one.path != name && !is_short) continue;
      const std::string in_run = text_of(flat, name);
      if (value_text(value) != in_run) changes.push_back({name, in_run, value_text(value), {}});
    }
  }
  check_changes(changes, run_name, "the command line");
}

std::string without_replaced(ResolvedRecipe& run, const std::string& recipe_yaml,
                             const std::string& file_name, const std::vector<Override>& overrides) {
  Node root = config::parse_yaml(recipe_yaml, file_name);
  config::Problems problems;
  config::rename_old_options(root, problems);
  bool is_changed = false;
  for (const Override& one : overrides) {
    if (!one.path.ends_with(".name")) continue;
    const std::string section = one.path.substr(0, one.path.rfind('.'));
    config::Component* const member = member_of(run.recipe, section);
    Node* const node = find_section(root, section);
    if (member == nullptr || node == nullptr || member->name() == one.value) continue;
    const Node options = config::write_fields(
        [&](config::Visitor& visitor) { member->visit_fields(visitor); }, Node());
    std::erase_if(node->entries,
                  [&](const Node::Entry& entry) { return options.find(entry.key) != nullptr; });
    is_changed = true;
  }
  return is_changed ? config::to_yaml(root, /*show_origins=*/false) : recipe_yaml;
}

}  // namespace gallop::app
