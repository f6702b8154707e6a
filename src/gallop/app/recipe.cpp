#include "gallop/app/recipe.h"

#include <algorithm>
#include <filesystem>

#include <fmt/format.h>

#include "gallop/app/built_in_recipes.h"
#include "gallop/app/plugins.h"
#include "gallop/app/print.h"
#include "gallop/app/table_recipe.h"
#include "gallop/base/file.h"
#include "gallop/base/input.h"
#include "gallop/base/shell.h"
#include "gallop/base/text.h"
#include "gallop/config/renamed_options.h"
#include "gallop/config/resolve.h"
#include "gallop/config/scalar.h"
#include "gallop/data/exclusion.h"
#include "gallop/data/find.h"
#include "gallop/train/wrong_interval.h"

namespace gallop::app {

Recipe::Recipe(std::shared_ptr<const Registries> all)
    : registries(std::move(all)),
      data(registries->data_modules, registries->augmentations, registries->batch_transforms),
      model(registries->models, "resnet"),
      optimizer(registries->optimizers, "sgd"),
      wrappers(registries->wrappers),
      schedule(registries->schedules, "constant"),
      schedules(registries->schedules),
      loss(registries->losses, "cross-entropy"),
      metric(registries->metrics),
      strategy(registries->strategies, "ddp") {}

namespace {

// The option of a section that selects a family member.
struct Choice {
  const char* help;
  config::Component& component;
};

void visit(config::Visitor& visitor, Choice& choice) {
  visitor.field({.name = "name", .help = choice.help}, choice.component);
}

void visit_choice(config::Visitor& visitor, const char* section, const char* help,
                  config::Component& component) {
  Choice choice{help, component};
  visitor.section({.name = section, .help = ""}, choice);
}

struct OptimizerSection {
  config::Component& optimizer;
  config::ComponentList& wrappers;
  schedule::LrScaling& lr_scaling;
};

void visit(config::Visitor& visitor, OptimizerSection& section) {
  visitor.field({.name = "name", .help = "optimizer"}, section.optimizer);
  visitor.field(
      {.name = "wrappers",
       .help = "optimizer wrappers: weight averages (ema, swa) or slow weights (lookahead)"},
      section.wrappers);
  schedule::visit_lr_scaling(visitor, section.lr_scaling);
}

struct TrainSection {
  train::TrainConfig& train;
  config::Component& loss;
  train::MetricChoice& metric;
};

void visit(config::Visitor& visitor, TrainSection& section) {
  visit_choice(visitor, "loss", "loss function", section.loss);
  visit(visitor, section.train);
  visit_choice(visitor, "metric",
               "metric that determines the best evaluation, for checkpoints and early stopping; "
               "metric: NAME is short for it",
               section.metric.deciding);
  visitor.field({.name = "metrics", .help = "additional metrics of evaluations"},
                section.metric.further);
}

struct ParallelSection {
  config::Component& strategy;
  parallel::Limits& limits;
};

void visit(config::Visitor& visitor, ParallelSection& section) {
  visitor.field({.name = "name", .help = "parallel strategy with several processes"},
                section.strategy);
  parallel::visit_limits(visitor, section.limits);
}

void read(ResolvedRecipe& resolved, config::Problems& problems) {
  config::read_fields(
      resolved.written, [&](config::Visitor& visitor) { visit(visitor, resolved.recipe); },
      problems);
  problems.throw_if_any();
}

// Whether a recipe is empty: no text, only comments, "{}", or empty sections.
bool is_empty(const config::Node& node) {
  if (node.kind == config::Node::Kind::kNull) return true;
  return node.kind == config::Node::Kind::kMap &&
         std::all_of(node.entries.begin(), node.entries.end(),
                     [](const config::Node::Entry& entry) { return is_empty(entry.value); });
}

void apply(const std::vector<Override>& overrides, config::Node& written,
           std::vector<config::OldName>& old_names, config::Problems& problems) {
  for (const Override& one : overrides) {
    config::apply_override(written, one.path, config::parse_override_value(one.value, one.path),
                           problems);
    if (one.old_path.empty()) continue;
    old_names.push_back({{.source = config::Origin::Source::kCommandLine}, one.old_path, one.path});
    const auto has_current_name = [&](const Override& other) {
      return other.path == one.path && other.old_path.empty();
    };
    if (std::any_of(overrides.begin(), overrides.end(), has_current_name)) {
      config::add_has_both(old_names.back(), problems);
    }
  }
  // Values may be maps, whose keys are renamed as well.
  auto within = config::rename_old_options(written, problems);
  old_names.insert(old_names.end(), within.begin(), within.end());
}

struct PluginsOption {
  std::vector<std::string>& files;
};

void visit(config::Visitor& visitor, PluginsOption& option) {
  visitor.field(
      {.name = "plugins", .help = "shared libraries with additional components (plug-ins)"},
      option.files);
}

// The plug-in files of the recipe; other problems are reported later.
std::vector<std::string> plugin_files(const config::Node& written) {
  std::vector<std::string> files;
  const config::Node* const list = written.find("plugins");
  if (list == nullptr) return files;
  config::Node alone;
  alone.at_or_add("plugins", list->origin) = *list;
  PluginsOption option{files};
  config::Problems problems;
  config::read_fields(
      alone, [&](config::Visitor& visitor) { visit(visitor, option); }, problems);
  problems.throw_if_any();
  return files;
}

fs::path absolute_plugin(const config::Node& item) {
  const bool is_of_file = item.origin.source == config::Origin::Source::kFile;
  const fs::path folder = is_of_file ? fs::path(item.origin.file).parent_path() : fs::path();
  return fs::absolute(folder / item.scalar).lexically_normal();
}

// The components of the program and of the recipe's plug-ins, whose paths are made absolute.
std::shared_ptr<const Registries> load_plugins(const Registries& registries, config::Node& written,
                                               PluginUse use) {
  std::shared_ptr<const Registries> unowned(std::shared_ptr<void>(), &registries);
  if (plugin_files(written).empty()) return unowned;
  std::shared_ptr<Registries> all;
  config::Problems problems;
  for (config::Node& item : written.find("plugins")->items) {
    const fs::path file = absolute_plugin(item);
    item = config::Node::make_scalar(file.string(), item.origin);
    if (has_plugin(registries, file)) continue;
    try {
      if (use == PluginUse::kRefuse) throw UsageError(file.string() + " is not loaded");
      if (!all) all = std::make_shared<Registries>(registries);
      load_plugin(file, *all);
    } catch (const UsageError& error) {
      problems.add(item.origin, "plugins", error.what());
    }
  }
  problems.throw_if_any();
  return all ? all : unowned;
}

// Plug-ins of the command line are added to the recipe, so that its run can be resumed without
// them.
void add_plugins(const Registries& registries, config::Node& written) {
  const config::Origin origin{.source = config::Origin::Source::kCommandLine};
  for (const Plugin& one : registries.plugins) {
    config::Node& list = written.at_or_add("plugins", origin);
    const bool is_there =
        std::any_of(list.items.begin(), list.items.end(),
                    [&](const config::Node& item) { return one.is_of(item.scalar); });
    if (is_there) continue;
    list.kind = config::Node::Kind::kList;
    list.items.push_back(config::Node::make_scalar(one.file.string(), origin));
  }
}

// The encoding of the categories of a table that its model reads.
void choose_encoding(ResolvedRecipe& resolved) {
  if (resolved.recipe.data.module.name() != "table") return;
  const config::Node* const written = resolved.find("data", "encoding");
  if (written != nullptr && !config::is_auto(*written)) return;
  const bool embeds = model::embeds_categories(resolved.recipe.model.name());
  config::Problems problems;
  config::apply_override(resolved.written, "data.encoding",
                         config::Node::make_scalar(embeds ? "index" : "one-hot"), problems);
  read(resolved, problems);
}

bool is_path(const std::string& text) {
  return text.find('/') != std::string::npos || text.ends_with(".yaml") || text.ends_with(".yml");
}

}  // namespace

SchedulesConfig::SchedulesConfig(const config::Catalog& schedules)
    : label_smoothing(schedules),
      momentum(schedules),
      beta2(schedules),
      weight_decay(schedules),
      dropout(schedules) {}

void visit(config::Visitor& visitor, SchedulesConfig& config) {
  visitor.section({.name = "label_smoothing", .help = ""}, config.label_smoothing);
  visitor.section({.name = "momentum", .help = ""}, config.momentum);
  visitor.section({.name = "beta2", .help = ""}, config.beta2);
  visitor.section({.name = "weight_decay", .help = ""}, config.weight_decay);
  visitor.section({.name = "dropout", .help = ""}, config.dropout);
}

void visit(config::Visitor& visitor, TrackConfig& config) {
  visitor.field(
      {.name = "histograms", .help = "log weight histograms at each evaluation, for TensorBoard"},
      config.histograms);
  visitor.field({.name = "log_samples",
                 .help = "number of first samples to log as the model sees them, for the page",
                 .min = 0,
                 .max = 64},
                config.log_samples);
}

std::optional<int64_t> ProfileConfig::most() const { return parse_number<int64_t>(keep); }

static std::string wrong_number_to_keep(const std::string& text) {
  if (text == "all" || parse_number<int64_t>(text).value_or(0) >= 1) return {};
  return fmt::format("must be an integer of at least 1, or 'all', not '{}'", printable(text));
}

void visit(config::Visitor& visitor, ProfileConfig& config) {
  visitor.field({.name = "every",
                 .help = "interval of profiles during a run: '1000 steps', '1 epoch' or 'never'",
                 .check = train::wrong_interval_of_steps},
                config.every);
  visitor.field({.name = "steps",
                 .help = "number of steps per profile: the last ones of each interval",
                 .min = 1,
                 .max = 1000},
                config.steps);
  visitor.field({.name = "keep",
                 .help = "number of most recent profiles to keep, or 'all'",
                 .check = &wrong_number_to_keep},
                config.keep);
}

void visit(config::Visitor& visitor, Recipe& recipe) {
  visitor.section({.name = "data", .help = ""}, recipe.data);
  visit_choice(visitor, "model", "model architecture", recipe.model);
  OptimizerSection optimizer{recipe.optimizer, recipe.wrappers, recipe.lr_scaling};
  visitor.section({.name = "optimizer", .help = ""}, optimizer);
  visit_choice(visitor, "schedule", "learning rate schedule", recipe.schedule);
  visitor.section({.name = "schedules", .help = ""}, recipe.schedules);
  TrainSection train{recipe.train, recipe.loss, recipe.metric};
  visitor.section({.name = "train", .help = ""}, train);
  visitor.section({.name = "evaluate", .help = ""}, recipe.evaluate);
  ParallelSection parallel{recipe.strategy, recipe.limits};
  visitor.section({.name = "parallel", .help = ""}, parallel);
  visitor.section({.name = "track", .help = ""}, recipe.track);
  visitor.section({.name = "profile", .help = ""}, recipe.profile);
  PluginsOption plugins{recipe.plugins};
  visit(visitor, plugins);
}

const config::Node* ResolvedRecipe::find(const std::string& section,
                                         const std::string& option) const {
  const config::Node* const map = written.find(section);
  return map != nullptr ? map->find(option) : nullptr;
}

bool ResolvedRecipe::is_auto(const std::string& section, const std::string& option) const {
  const config::Node* const node = find(section, option);
  return node != nullptr && config::is_auto(*node);
}

void ResolvedRecipe::resolve(const std::string& path, const std::string& found) {
  config::Problems problems;
  config::apply_override(
      written, path,
      config::Node::make_scalar(found, {.source = config::Origin::Source::kMeasured}), problems);
  read(*this, problems);
}

void ResolvedRecipe::make_data_path_absolute() {
  const std::string path = data::absolute_data_path(recipe.data.path);
  if (path == recipe.data.path) return;
  recipe.data.path = path;
  config::Node* section = written.find("data");
  config::Node* node = section != nullptr ? section->find("path") : nullptr;
  if (node != nullptr) *node = config::Node::make_scalar(path, node->origin);
}

void ResolvedRecipe::read_excluded_names() {
  std::vector<std::string>& items = recipe.data.exclude;
  if (std::none_of(items.begin(), items.end(), data::is_name_file)) return;
  items = data::excluded_names(items);
  config::Node* section = written.find("data");
  config::Node* node = section != nullptr ? section->find("exclude") : nullptr;
  if (node == nullptr) return;
  const config::Origin origin = node->origin;
  *node = {.kind = config::Node::Kind::kList, .origin = origin};
  for (const std::string& item : items) {
    node->items.push_back(config::Node::make_scalar(item, origin));
    node->items.back().quoted = true;
  }
}

std::string ResolvedRecipe::to_yaml(bool show_origins) {
  const auto fields = [this](config::Visitor& visitor) { visit(visitor, recipe); };
  return config::to_yaml(config::write_fields(fields, written), show_origins);
}

ResolvedRecipe parse_recipe(const Registries& registries, const std::string& yaml,
                            const std::string& file_name, const std::vector<Override>& overrides,
                            PluginUse use) {
  config::Node written = config::parse_yaml(yaml, file_name);
  if (is_empty(written)) {
    throw UsageError(fmt::format(
        "{}: the recipe is empty; it must specify at least data and model, such as "
        "'data: {{name: folder, path: pictures}}' and 'model: {{name: resnet}}'; 'gallop recipes' "
        "lists those that come with Gallop",
        printable(file_name)));
  }
  config::Problems problems;
  std::vector<config::OldName> old_names = config::rename_old_options(written, problems);
  apply(overrides, written, old_names, problems);
  // The valid options depend on the plug-ins.
  auto all = load_plugins(registries, written, use);
  add_plugins(*all, written);
  ResolvedRecipe resolved{Recipe(std::move(all)), fs::path(file_name).stem().string(),
                          std::move(written), std::move(old_names)};
  read(resolved, problems);
  resolved.read_excluded_names();
  choose_encoding(resolved);
  train::check(resolved.recipe.train);
  train::check(resolved.recipe.evaluate);
  schedule::check(resolved.recipe.lr_scaling, resolved.is_auto("optimizer", "lr"));
  return resolved;
}

void warn_of_old_names(const ResolvedRecipe& resolved) {
  for (const config::OldName& one : resolved.old_names) {
    print_warning(one.describe());
  }
}

namespace {

[[noreturn]] void throw_folder(const std::string& path) {
  const bool has_archives = std::any_of(
      fs::directory_iterator(path), fs::directory_iterator(),
      [](const fs::directory_entry& entry) { return entry.path().extension() == ".tar"; });
  throw UsageError(fmt::format(
      "'{}' is a folder without tables (train.csv, train-00000-of-00002.parquet, ...). To train on "
      "images, give a recipe: a file with the lines 'data: {{name: {}, path: {}}}' and 'model: "
      "{{name: resnet}}', or start with: gallop train cifar10 data.name={} {}",
      printable(path), has_archives ? "tar" : "folder", printable(path),
      has_archives ? "tar" : "folder", shell_word("data.path=" + path)));
}

}  // namespace

ResolvedRecipe read_recipe(const Registries& registries, const std::string& name_or_path,
                           const std::vector<Override>& overrides) {
  std::vector<std::string> names;
  for (const auto& recipe : built_in_recipes()) {
    if (name_or_path == recipe.name) {
      return parse_recipe(registries, recipe.yaml, fmt::format("{}.yaml", recipe.name), overrides);
    }
    names.emplace_back(recipe.name);
  }
  if (is_table(name_or_path)) {
    ResolvedRecipe resolved =
        parse_recipe(registries, table_recipe(name_or_path), name_or_path, overrides);
    resolved.name = name_of_table(name_or_path);
    return resolved;
  }
  if (is_path(name_or_path)) {
    if (!fs::exists(name_or_path)) {
      throw UsageError(fmt::format("recipe file '{}' does not exist", printable(name_or_path)));
    }
    if (fs::is_directory(name_or_path)) throw_folder(name_or_path);
    return parse_recipe(registries, read_input(name_or_path, 1 << 20), name_or_path, overrides);
  }
  if (fs::is_directory(name_or_path)) throw_folder(name_or_path);
  const std::string nearest = nearest_name(name_or_path, names);
  throw UsageError(fmt::format(
      "unknown recipe '{}'{} Recipes: {}; or give the path of a YAML file", printable(name_or_path),
      nearest.empty() ? "." : "; did you mean '" + nearest + "'?", join_names(names, "and")));
}

ResolvedRecipe load_recipe(const Registries& registries, const std::string& name_or_path,
                           const std::vector<Override>& overrides) {
  ResolvedRecipe resolved = read_recipe(registries, name_or_path, overrides);
  warn_of_old_names(resolved);
  return resolved;
}

std::string to_text(ResolvedRecipe& resolved) {
  return resolved.name + "\n" + resolved.to_yaml(false);
}

ResolvedRecipe from_text(const Registries& registries, const std::string& text) {
  const size_t line = text.find('\n');
  return parse_recipe(registries, text.substr(line + 1), text.substr(0, line) + ".yaml", {});
}

ResolvedRecipe read_recipe(const Registries& registries, parallel::Collectives* collectives,
                           const std::string& name_or_path,
                           const std::vector<Override>& overrides) {
  std::optional<ResolvedRecipe> own;
  const std::string text = parallel::run_on_rank0(collectives, [&] {
    own.emplace(read_recipe(registries, name_or_path, overrides));
    return to_text(*own);
  });
  return own ? std::move(*own) : from_text(registries, text);
}

ResolvedRecipe load_recipe(const Registries& registries, parallel::Collectives* collectives,
                           const std::string& name_or_path,
                           const std::vector<Override>& overrides) {
  ResolvedRecipe resolved = read_recipe(registries, collectives, name_or_path, overrides);
  warn_of_old_names(resolved);  // The other processes receive current names.
  return resolved;
}

}  // namespace gallop::app
