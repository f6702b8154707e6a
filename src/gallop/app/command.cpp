#include "gallop/app/command.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <string_view>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/help_formatter.h"
#include "gallop/app/terminal.h"
#include "gallop/config/renamed_options.h"

namespace gallop::app {

const std::vector<Command>& commands() {
  static const std::vector<Command> kCommands = {
      {"train", "train a model from a recipe, or resume a run", run_train},
      {"evaluate", "measure a trained model on data", run_evaluate},
      {"predict", "predict images, tables or texts, or continue a text", run_predict},
      {"recipes", "list, show or copy the built-in recipes, plot a schedule", run_recipes},
      {"find-lr", "find a learning rate for a recipe", run_find_lr},
      {"find-batch", "find a batch size for a recipe", run_find_batch},
      {"tune", "tune the hyperparameters of a recipe or of any command", run_tune},
      {"runs", "list, show, compare, label and delete runs", run_runs},
      {"ui", "show runs in a browser: a table, curves, and details", run_ui},
      {"graph", "show a training step as a graph, with the time of each node", run_graph},
      {"profile", "show where the time of training steps goes", run_profile},
      {"optimize", "make a recipe faster: try changes one at a time, keep what helps",
       run_optimize},
      {"prove", "compare training steps with a plain reference", run_prove},
      {"model", "describe a model: an archive of torch.export, or the layers of a recipe's",
       run_model},
      {"launch", "train in several processes, and restart them after a failure", run_launch},
      {"pipeline", "draw a pipeline schedule, or compare all of them", run_pipeline},
      {"convert", "export the weights of a run to one safetensors file", run_convert},
      {"env", "describe this machine, or a recipe's data", run_env},
  };
  return kCommands;
}

const Registries& CommandContext::registries() const {
  if (registries_ == nullptr) throw InternalError("this command belongs to the full program");
  return *registries_;
}

namespace {

// Sections that a recipe may have as a whole: schedule=cosine, model={name: mlp}.
constexpr std::string_view kSections[] = {"data",      "model",   "optimizer", "schedule",
                                          "schedules", "train",   "evaluate",  "parallel",
                                          "track",     "profile", "plugins"};

// The option that `argument` names, or empty: a name with a dot, a section, or what looks like one,
// as it has a list or map.
std::string option_name(const std::string& argument) {
  const bool dashed = argument.starts_with("--");
  const std::string body = dashed ? argument.substr(2) : argument;
  const auto equals = body.find('=');
  if (!dashed && equals == std::string::npos) return {};
  const std::string name = body.substr(0, equals);
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '.' || c == '-';
  });
  const bool is_known =
      std::find(std::begin(kSections), std::end(kSections), name) != std::end(kSections);
  const bool has_list_or_map = !name.empty() && body.size() > equals + 1 &&
                               (body[equals + 1] == '{' || body[equals + 1] == '[');
  const bool is_section = !dashed && (is_known || has_list_or_map);
  return plain && (is_section || name.find('.') != std::string::npos) ? name : std::string();
}

}  // namespace

Override Override::parse(const std::string& path, const std::string& value) {
  std::string current = config::current_path(path);
  const bool is_old = current != path;
  return {.path = std::move(current), .value = value, .old_path = is_old ? path : std::string()};
}

std::vector<std::string> options_of(const std::vector<Override>& overrides) {
  std::vector<std::string> options;
  options.reserve(overrides.size());
  for (const Override& one : overrides) options.push_back(one.path + "=" + one.value);
  return options;
}

std::vector<Override> take_overrides(std::vector<std::string>& arguments) {
  std::vector<Override> overrides;
  std::vector<std::string> rest;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::string name = option_name(argument);
    if (name.empty()) {
      rest.push_back(argument);
      continue;
    }
    const auto equals = argument.find('=');
    if (equals != std::string::npos) {
      overrides.push_back(Override::parse(name, argument.substr(equals + 1)));
    } else if (i + 1 < arguments.size()) {
      overrides.push_back(Override::parse(name, arguments[++i]));
    } else {
      throw UsageError(fmt::format("--{} needs a value, as in --{} 1", name, name));
    }
  }
  arguments = std::move(rest);
  return overrides;
}

bool parse_arguments(CLI::App& parser, const std::vector<std::string>& arguments) {
  parser.formatter(std::make_shared<HelpFormatter>());
  parser.get_formatter()->column_width(kHelpColumn);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    parser.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    const auto columns = static_cast<size_t>(text_columns());
    std::fputs(wrapped_help(parser.help(), columns).c_str(), stdout);
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError(
        fmt::format("{}. '{} --help' shows how it is used", error.what(), parser.get_name()));
  }
  return true;
}

}  // namespace gallop::app
