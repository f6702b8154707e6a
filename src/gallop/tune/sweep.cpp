#include "gallop/tune/sweep.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/expression.h"
#include "gallop/config/scalar.h"
#include "gallop/tune/chosen.h"
#include "gallop/tune/samplers/grid.h"
#include "gallop/tune/store.h"
#include "gallop/tune/trial_args.h"
#include "gallop/tune/wandb.h"

namespace gallop::tune {

namespace {

using config::Node;
using config::Problems;
using Json = nlohmann::ordered_json;

constexpr double kNoHeartbeat = 1e9;
constexpr int64_t kMostWorkers = 1024;
constexpr int64_t kMostCores = 65536;
constexpr int64_t kUsualEta = 3;  // The default of W&B.

constexpr std::string_view kBest = "best_";

bool is_accuracy(const std::string& metric) { return metric == "accuracy" || metric == "top5"; }

SweepFormat format_of(const Node& root) {
  return root.find("method") != nullptr ? SweepFormat::kWandb : SweepFormat::kGallop;
}

// The items of a list; reports a mistake if it is something else.
const std::vector<Node>& items_of(const Node& node, const char* key, Problems& problems) {
  if (node.kind != Node::Kind::kList) problems.add(node.origin, key, "expected a list, [a, b]");
  return node.items;
}

const std::vector<Node::Entry>& entries_of(const Node& node, const char* key, Problems& problems) {
  if (node.kind != Node::Kind::kMap) problems.add(node.origin, key, "expected a map, {a: 1, b: 2}");
  return node.entries;
}

/// Reads the keys of a sweep besides its parameters.
class Reader {
 public:
  Reader(const TuneRegistries& registries, const Node& root, const ObjectiveDefaults& defaults,
         Problems& problems)
      : registries_(registries), root_(root), defaults_(defaults), problems_(problems) {
    if (!defaults_.is_maximized) defaults_.is_maximized = is_accuracy;
  }

  void read(Sweep& sweep) {
    check_keys();
    StudySettings& settings = sweep.settings;
    read_name(settings.name);
    whole("seed", 0, settings.seed);
    whole("trials", 1, settings.trials);
    whole("run_cap", 1, settings.trials);
    whole("attempts", 1, settings.attempts);
    whole("failures", 1, settings.failures);
    number("heartbeat", settings.heartbeat_seconds);
    whole("workers", 1, sweep.workers, kMostWorkers);
    whole("cores", 1, sweep.cores, kMostCores);
    read_seconds(sweep.seconds);
    settings.objectives = read_objectives();
    settings.limits = read_limits();
    settings.sampler = read_sampler();
    settings.pruner = read_pruner();
    const RunSpec run = read_run();
    // Other programs that use ask and tell send no heartbeats.
    const bool is_run_elsewhere = run.recipe.empty() && run.command.empty();
    if (is_run_elsewhere && root_.find("heartbeat") == nullptr) {
      settings.heartbeat_seconds = kNoHeartbeat;
    }
    settings.run = to_json(run);
  }

 private:
  bool is_maximized(const std::string& metric) const {
    return defaults_.is_maximized(metric.starts_with(kBest) ? metric.substr(kBest.size()) : metric);
  }

  bool is_of_wandb() const { return format_of(root_) == SweepFormat::kWandb; }

  void check_keys() {
    static const std::vector<std::string> kKnown = {
        "recipe",   "options",    "command",         "program",   "metric",
        "metrics",  "parameters", "constraints",     "limits",    "sampler",
        "pruner",   "method",     "early_terminate", "trials",    "run_cap",
        "time",     "workers",    "cores",           "seed",      "start",
        "attempts", "failures",   "heartbeat",       "name",      "description",
        "project",  "entity",     "share",           "controller"};
    for (const Node::Entry& entry : root_.entries) {
      if (std::find(kKnown.begin(), kKnown.end(), entry.key) != kKnown.end()) continue;
      const std::string nearest = nearest_name(entry.key, kKnown);
      problems_.add(entry.origin, entry.key,
                    "unknown key" + (nearest.empty() ? "" : ", did you mean '" + nearest + "'?"));
    }
    for (const auto& [one, other] : {std::pair{"metric", "metrics"},
                                     {"trials", "run_cap"},
                                     {"sampler", "method"},
                                     {"pruner", "early_terminate"}}) {
      const Node* const second = root_.find(other);
      if (second == nullptr || root_.find(one) == nullptr) continue;
      problems_.add(second->origin, other, fmt::format("duplicates '{}'; remove one", one));
    }
  }

  void text(const char* key, std::string& value) {
    const Node* const node = root_.find(key);
    if (node == nullptr) return;
    if (node->kind != Node::Kind::kScalar) problems_.add(node->origin, key, "expected a string");
    value = node->scalar;
  }

  // W&B names are arbitrary text; a study's name is that of a folder.
  void read_name(std::string& name) {
    std::string given;
    text("name", given);
    if (!given.empty() && (!is_of_wandb() || is_study_name(given))) name = given;
  }

  template <typename T>
  static constexpr int64_t kMost = sizeof(T) < sizeof(int64_t)
                                       ? std::numeric_limits<T>::max()
                                       : std::numeric_limits<int64_t>::max();

  template <typename T>
  void whole(const char* key, int64_t least, T& value, int64_t most = kMost<T>) {
    const Node* const node = root_.find(key);
    if (node == nullptr) return;
    const auto number = config::as_integer(*node);
    if (!number || *number < least || *number > most) {
      problems_.add(node->origin, key,
                    most == kMost<int64_t>
                        ? fmt::format("expected an integer of at least {}", least)
                        : fmt::format("expected an integer from {} to {}", least, most));
      return;
    }
    value = static_cast<T>(*number);
  }

  void number(const char* key, double& value) {
    const Node* const node = root_.find(key);
    if (node == nullptr) return;
    const auto number = config::as_number(*node);
    if (!number || *number <= 0) {
      problems_.add(node->origin, key, "expected a number above 0");
      return;
    }
    value = *number;
  }

  // "90 s", "10 min", "2 h", or a number of seconds.
  void read_seconds(double& seconds) {
    const Node* const node = root_.find("time");
    if (node == nullptr) return;
    const std::string& given = node->scalar;
    const size_t blank = given.find(' ');
    const std::string unit = blank == std::string::npos ? "s" : given.substr(blank + 1);
    const auto count = parse_number<double>(std::string_view(given).substr(0, blank));
    const double factor = unit == "s" ? 1 : unit == "min" ? 60 : unit == "h" ? 3600 : 0;
    if (!count || !(*count * factor > 0)) {
      problems_.add(node->origin, "time", "expected a time such as 90 s, 10 min or 2 h");
      return;
    }
    seconds = *count * factor;
  }

  std::vector<Objective> read_objectives() {
    const Node* const node = root_.find("metric") ? root_.find("metric") : root_.find("metrics");
    std::vector<Objective> objectives;
    if (node == nullptr && root_.find("recipe") == nullptr) {
      problems_.add(root_.origin, "metric", "is missing: the metric to minimize or maximize");
    }
    if (node == nullptr && !defaults_.metric.empty()) {
      objectives.push_back(
          {.metric = defaults_.metric, .maximize = is_maximized(defaults_.metric)});
    }
    if (node == nullptr) return objectives;
    if (node->kind != Node::Kind::kList) return {read_objective(*node)};
    for (const Node& item : node->items) {
      const Objective objective = read_objective(item);
      const bool is_twice =
          std::any_of(objectives.begin(), objectives.end(),
                      [&](const Objective& other) { return other.metric == objective.metric; });
      if (is_twice && !objective.metric.empty()) {
        problems_.add(item.origin, "metric",
                      fmt::format("duplicate metric '{}'", printable(objective.metric)));
      }
      objectives.push_back(objective);
    }
    if (objectives.empty()) problems_.add(node->origin, "metric", "the list is empty");
    return objectives;
  }

  Objective read_objective(const Node& node) {
    Objective objective;
    if (node.kind == Node::Kind::kScalar) {
      objective.metric = node.scalar;
      objective.maximize = is_maximized(node.scalar);
      return objective;
    }
    const Node* const name = node.find("name");
    const Node* const goal = node.find("goal");
    if (name == nullptr || name->scalar.empty()) {
      problems_.add(name == nullptr ? node.origin : name->origin, "metric", "'name' is missing");
    } else {
      objective.metric = name->scalar;
    }
    objective.maximize = !is_of_wandb() && is_maximized(objective.metric);
    for (const Node::Entry& entry : node.entries) {
      if (entry.key == "name" || entry.key == "goal" || entry.key == "target") continue;
      problems_.add(entry.origin, "metric." + entry.key,
                    "unknown key; known are name, goal, target");
    }
    if (const Node* const target = node.find("target")) {
      objective.target = config::as_number(*target);
      if (!objective.target) problems_.add(target->origin, "metric.target", "expected a number");
    }
    if (goal == nullptr) return objective;
    objective.maximize = goal->scalar == "maximize";
    if (!objective.maximize && goal->scalar != "minimize") {
      problems_.add(goal->origin, "metric.goal", "expected minimize or maximize");
    }
    return objective;
  }

  std::vector<Limit> read_limits() {
    std::vector<Limit> limits;
    const Node* const node = root_.find("limits");
    if (node == nullptr) return limits;
    for (const Node::Entry& entry : entries_of(*node, "limits", problems_)) {
      auto most = config::as_number(entry.value);
      if (const auto bytes = parse_bytes(entry.value.scalar); !most && bytes) {
        most = static_cast<double>(*bytes);
      }
      if (!most) {
        problems_.add(entry.value.origin, "limits." + entry.key,
                      "expected a number, or a size such as 8 GiB");
        continue;
      }
      limits.push_back({entry.key, *most});
    }
    return limits;
  }

  // A name, or a map with a name and options.
  std::string component(const char* key, const char* usual) {
    const Node* const node = root_.find(key);
    if (node == nullptr) return Json{{"name", usual}}.dump();
    Node map = *node;
    if (node->kind == Node::Kind::kScalar) {
      map = {.origin = node->origin};
      map.at_or_add("name", node->origin) = *node;
    }
    if (map.kind != Node::Kind::kMap || map.find("name") == nullptr) {
      problems_.add(node->origin, key, "expected a name, or a map with name and options");
      return "{}";
    }
    check_chosen(registries_, key, map, problems_);
    // 'auto' is the default.
    std::erase_if(map.entries, [](const Node::Entry& entry) { return is_auto(entry.value); });
    return config::to_json(map);
  }

  std::string read_sampler() {
    const Node* const method = root_.find("method");
    if (method == nullptr) return component("sampler", "tpe");
    for (const auto& [name, sampler] :
         {std::pair{"grid", "grid"}, {"random", "random"}, {"bayes", "gp"}}) {
      if (method->scalar == name) return Json{{"name", sampler}}.dump();
    }
    problems_.add(method->origin, "method", "expected grid, random or bayes");
    return "{}";
  }

  std::string read_pruner() {
    const Node* const node = root_.find("early_terminate");
    if (node == nullptr) return component("pruner", "none");
    const Node* const type = node->find("type");
    if (type == nullptr || type->scalar != "hyperband") {
      problems_.add(type == nullptr ? node->origin : type->origin, "early_terminate.type",
                    "expected hyperband");
    }
    std::optional<int64_t> min_iter, max_iter, brackets, eta;
    for (const Node::Entry& entry : node->entries) {
      if (entry.key == "type") continue;
      if (entry.key == "strict" && config::as_bool(entry.value)) continue;  // Always strict.
      const auto number = config::as_integer(entry.value);
      std::optional<int64_t>* const value = entry.key == "min_iter"   ? &min_iter
                                            : entry.key == "max_iter" ? &max_iter
                                            : entry.key == "s"        ? &brackets
                                            : entry.key == "eta"      ? &eta
                                                                      : nullptr;
      if (value != nullptr && number && *number >= (entry.key == "eta" ? 2 : 1)) {
        *value = number;
        continue;
      }
      problems_.add(entry.origin, "early_terminate." + entry.key,
                    "expected type: hyperband, min_iter, or max_iter and s, eta from 2, strict");
    }
    return halving(*node, min_iter, max_iter, brackets, eta.value_or(kUsualEta));
  }

  // W&B compares trials at min_iter times powers of eta, or at max_iter divided by powers of eta, s
  // times.
  std::string halving(const Node& node, std::optional<int64_t> min_iter,
                      std::optional<int64_t> max_iter, std::optional<int64_t> brackets,
                      int64_t eta) {
    Json pruner{{"name", "successive-halving"}};
    if (max_iter && (min_iter || !brackets)) {
      problems_.add(node.origin, "early_terminate", "expected min_iter, or max_iter and s");
    } else if (max_iter) {
      if (*max_iter < eta) {
        problems_.add(node.origin, "early_terminate", "max_iter is below eta: there are no rungs");
      }
      pruner["max_resource"] = *max_iter;
      pruner["rungs"] = *brackets;
    } else if (min_iter) {
      pruner["min_resource"] = *min_iter;
    }
    pruner["reduction_factor"] = eta;
    return pruner.dump();
  }

  RunSpec read_run() {
    RunSpec run;
    text("recipe", run.recipe);
    if (const Node* const options = root_.find("options")) {
      for (const Node::Entry& entry : entries_of(*options, "options", problems_)) {
        run.options.emplace_back(entry.key, option_text(entry.value));
      }
    }
    const Node* const command = root_.find("command");
    const Node* const program = root_.find("program");
    const bool is_command = command != nullptr || program != nullptr;
    if (is_command && !run.recipe.empty()) {
      problems_.add(root_.origin, "recipe", "recipe and command are mutually exclusive");
      return run;
    }
    if (run.recipe.empty() && !run.options.empty()) {
      problems_.add(root_.find("options")->origin, "options", "options require a recipe");
    }
    if (is_command) {
      run.command = command_args(command, program);
      run.python_words = is_of_wandb();
      const Node* const parameters = root_.find("parameters");
      if (is_of_wandb() && parameters != nullptr) run.nested = nested_parameters(*parameters);
    }
    if (const Node* const share = root_.find("share")) {
      run.share = read_share(*share);
      if (run.recipe.empty()) problems_.add(share->origin, "share", "requires a recipe");
    }
    return run;
  }

  // True, false, or the number of checkpoints to keep for sharing.
  int64_t read_share(const Node& node) {
    constexpr int64_t kMostKept = 1000;
    const auto count = config::as_integer(node);
    if (count && *count >= 0 && *count <= kMostKept) return *count;
    if (const auto is_wanted = config::as_bool(node)) return *is_wanted ? kUsualShare : 0;
    problems_.add(node.origin, "share",
                  "expected true, false or the number of checkpoints to keep");
    return 0;
  }

  std::vector<std::string> command_args(const Node* command, const Node* program) {
    if (command == nullptr) return {"python3", program->scalar, "${args}"};
    std::vector<std::string> words;
    if (command->kind != Node::Kind::kList || command->items.empty()) {
      problems_.add(command->origin, "command", "expected a list of arguments");
    }
    for (const Node& item : command->items) {
      if (item.kind != Node::Kind::kScalar && !is_of_wandb()) {
        problems_.add(item.origin, "command", "expected a list of arguments, each a scalar");
        continue;
      }
      const std::string word = is_of_wandb() ? python_text(yaml_1_1_value(item)) : item.scalar;
      // W&B's macros for the interpreter and the program.
      if (word == "${env}") {
        words.emplace_back("/usr/bin/env");
      } else if (word == "${interpreter}") {
        words.emplace_back("python3");
      } else if (word == "${program}") {
        if (program == nullptr) problems_.add(item.origin, "command", "there is no 'program'");
        words.push_back(program == nullptr ? std::string() : program->scalar);
      } else {
        const std::string mistake = wrong_macro(word);
        if (!mistake.empty()) problems_.add(item.origin, "command", mistake);
        words.push_back(word);
      }
    }
    return words;
  }

  static std::string option_text(const Node& value) {
    return value.kind == Node::Kind::kScalar ? value.scalar : config::to_json(value);
  }

  const TuneRegistries& registries_;
  const Node& root_;
  ObjectiveDefaults defaults_;
  Problems& problems_;
};

// Checks a formula and the names in it.
void check_constraint(const Node& item, const std::vector<std::string>& names, Problems& problems) {
  if (item.kind != Node::Kind::kScalar) {
    problems.add(item.origin, "constraints",
                 "expected a formula such as a < b, quoted if necessary");
    return;
  }
  try {
    const config::Expression formula(item.scalar);
    for (const std::string& name : formula.names()) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      // Short names such as x are close to any other name.
      const std::string nearest = name.size() > 2 ? nearest_name(name, names) : "";
      problems.add(item.origin, "constraints",
                   fmt::format("there is no parameter '{}'{}", printable(name),
                               nearest.empty() ? "" : ", did you mean '" + nearest + "'?"));
    }
  } catch (const UsageError& error) {
    problems.add(item.origin, "constraints", error.what());
  }
}

Space read_space(const Node& root, Problems& problems) {
  const Node* const parameters = root.find("parameters");
  if (parameters == nullptr) {
    problems.add(root.origin, "parameters", "is missing: at least one parameter is required");
    problems.throw_if_any();
  }
  std::vector<Parameter> read = read_parameters(*parameters, format_of(root), problems);
  std::vector<std::string> names;
  for (const Parameter& parameter : read) names.push_back(parameter.name);
  std::vector<std::string> constraints;
  if (const Node* const list = root.find("constraints")) {
    for (const Node& item : items_of(*list, "constraints", problems)) {
      check_constraint(item, names, problems);
      constraints.push_back(item.scalar);
    }
  }
  problems.throw_if_any();
  try {
    return {std::move(read), std::move(constraints)};
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("{}: {}", parameters->origin.describe(), error.what()));
  }
}

// A fixed option that an unconditional parameter sets, or that is nested in it, would have no
// effect.
void check_options(const Node& root, const Space& space, Problems& problems) {
  const Node* const options = root.find("options");
  if (options == nullptr) return;
  const auto check = [&](const auto& self, const Node& map, const std::string& prefix) -> void {
    for (const Node::Entry& entry : map.entries) {
      const std::string name = prefix + entry.key;
      for (const Parameter& parameter : space.parameters()) {
        if (parameter.condition) continue;
        if (name != parameter.name && !name.starts_with(parameter.name + ".")) continue;
        problems.add(entry.origin, "options." + name,
                     fmt::format("is already set by the parameter '{}'; remove it",
                                 printable(parameter.name)));
      }
      self(self, entry.value, name + ".");
    }
  };
  check(check, *options, "");
}

bool is_utf8(const std::string& text) {
  try {
    Json(text).dump();
    return true;
  } catch (const Json::exception&) {
    return false;
  }
}

}  // namespace

std::string to_json(const RunSpec& spec) {
  Json json = Json::object();
  if (!spec.recipe.empty()) json["recipe"] = spec.recipe;
  for (const auto& [name, value] : spec.options) json["options"][name] = value;
  if (!spec.command.empty()) json["command"] = spec.command;
  if (spec.python_words) json["python_words"] = true;
  if (!spec.nested.empty()) json["nested"] = spec.nested;
  if (spec.share) json["share"] = *spec.share;
  return json.dump();
}

RunSpec parse_run_spec(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    RunSpec spec;
    spec.recipe = json.value("recipe", "");
    spec.command = json.value("command", std::vector<std::string>());
    spec.python_words = json.value("python_words", false);
    spec.nested = json.value("nested", std::vector<std::string>());
    if (json.contains("share")) spec.share = json.at("share").get<int64_t>();
    if (json.contains("options")) {
      for (const auto& [name, value] : json.at("options").items()) {
        spec.options.emplace_back(name, value);
      }
    }
    return spec;
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("not a run specification: {}", error.what()));
  }
}

namespace {

// Without a number of trials, a grid has as many as points.
void try_whole_grid(Sweep& sweep) {
  const Json sampler = Json::parse(sweep.settings.sampler);
  if (sampler.value("name", "") != "grid") return;
  GridConfig config;
  if (const auto points = sampler.find("points"); points != sampler.end()) {
    config.points = points->get<int64_t>();
  }
  sweep.settings.trials =
      grid_size(sweep.settings.space, config) + static_cast<int64_t>(sweep.start.size());
}

}  // namespace

Sweep parse_sweep(const TuneRegistries& registries, const std::string& yaml,
                  const std::string& file_name, const std::string& name,
                  const ObjectiveDefaults& defaults) {
  // A study is stored as JSON, which is UTF-8.
  if (!is_utf8(yaml)) throw UsageError(fmt::format("{}: not UTF-8", printable(file_name)));
  Node root = config::parse_yaml(yaml, file_name);
  Problems problems;
  Sweep sweep{.settings = {.name = name}};
  if (root.kind != Node::Kind::kMap) {
    problems.add({config::Origin::Source::kFile, file_name, 1, 1}, "",
                 "expected a map with 'parameters' and 'metric'");
    problems.throw_if_any();
  }
  if (format_of(root) == SweepFormat::kWandb) {
    for (const char* key : {"parameters", "early_terminate", "run_cap"}) {
      if (Node* const node = root.find(key)) read_as_yaml_1_1(*node);
    }
  }
  Reader(registries, root, defaults, problems).read(sweep);
  sweep.settings.space = read_space(root, problems);
  check_options(root, sweep.settings.space, problems);
  if (const Node* const start = root.find("start")) {
    for (const Node& item : items_of(*start, "start", problems)) {
      const size_t mistakes = problems.list().size();
      sweep.start.push_back(read_point(sweep.settings.space, item, format_of(root), problems));
      const bool is_point = problems.list().size() == mistakes;
      if (is_point && !sweep.settings.space.allows(sweep.start.back())) {
        problems.add(item.origin, "start", "this point violates a constraint");
      }
    }
  }
  problems.throw_if_any();
  if (root.find("trials") == nullptr && root.find("run_cap") == nullptr) try_whole_grid(sweep);
  return sweep;
}

}  // namespace gallop::tune
