#include <cstdio>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/command.h"
#include "gallop/app/distributed_context.h"
#include "gallop/app/json_line.h"
#include "gallop/app/output_file.h"
#include "gallop/app/recipe_components.h"
#include "gallop/app/session.h"
#include "gallop/compile/graph_json.h"
#include "gallop/compile/graph_stages.h"
#include "gallop/compile/graph_svg.h"
#include "gallop/compile/graph_text.h"
#include "gallop/train/step/step.h"

namespace gallop::app {

namespace {

constexpr size_t kColumns = 120;

struct Arguments {
  std::string recipe;
  std::string pass;
  std::string svg;
  bool all = false;
  bool wide = false;
  bool json = false;
  std::vector<Override> overrides;

  std::string stage() const {
    if (all) return {};
    return pass.empty() ? "last" : pass;
  }
};

// "after dce"
std::string text_of(const compile::GraphStage& stage) {
  return stage.name == compile::all_stages().front().name ? stage.name : "after " + stage.name;
}

std::string list_of_passes() {
  std::string text;
  for (const auto& [name, help] : compile::all_stages()) {
    text += fmt::format("  {:<16} {}\n", name, help);
  }
  return text;
}

bool parse(const std::vector<std::string>& args, Arguments& arguments) {
  CLI::App parser(
      "Show the compiled graph of one training step of a recipe, with the time of each node.\n"
      "Nothing is trained, and no run folder is created.\n\n"
      "Example: gallop graph cifar10 data.path=pictures --svg step.svg\n\n"
      "Passes, in order:\n" +
          list_of_passes(),
      "gallop graph");
  parser.add_option("RECIPE", arguments.recipe, "a recipe's name or file")->required();
  auto* pass = parser.add_option("--pass", arguments.pass,
                                 "show the graph after this pass; by default the last one");
  auto* all =
      parser.add_flag("--all", arguments.all,
                      "one line per pass: nodes, time, memory, added and removed operators");
  all->excludes(pass);
  parser.add_option("--svg", arguments.svg, "write the graph to this SVG file")->excludes(all);
  parser.add_flag("--wide", arguments.wide, "do not truncate lines at 120 columns");
  parser.add_flag("--json", arguments.json, "print JSON");
  std::vector<std::string> rest = args;
  arguments.overrides = take_overrides(rest);
  return parse_arguments(parser, rest);
}

void draw(const std::string& title, const compile::GraphStage& stage, const std::string& file) {
  write_output(file,
               compile::graph_svg(stage.listing, fmt::format("{}, {}", title, text_of(stage))));
}

void print_json(Session& session, int64_t samples, const compile::GraphStages& graphs, bool all) {
  nlohmann::ordered_json object = {{"recipe", session.resolved().name},
                                   {"samples", samples},
                                   {"training", session.describe_training()}};
  if (!graphs.fallbacks.empty()) object["fallbacks"] = graphs.fallbacks;
  if (!graphs.refusal.empty()) {
    object["refusal"] = graphs.refusal;
  } else if (all) {
    object["stages"] = compile::stages_json(graphs.stages);
  } else {
    object["pass"] = graphs.stages.front().name;
    object.update(compile::graph_json(graphs.stages.front().listing));
  }
  fmt::print("{}\n", json_line(object));
}

void print_text(const std::string& title, const compile::GraphStages& graphs,
                const Arguments& arguments) {
  fmt::print("{}\n", title);
  const size_t width = arguments.wide ? 0 : kColumns;
  if (!graphs.refusal.empty()) {
    fmt::print("the step cannot be captured, and runs eagerly: {}\n", graphs.refusal);
    return;
  }
  for (const std::string& line : graphs.fallbacks) fmt::print("{}\n", line);
  if (arguments.all) {
    fmt::print("\n{}", compile::stages_text(graphs.stages, width));
  } else {
    const compile::GraphStage& stage = graphs.stages.front();
    fmt::print("{}: {}", text_of(stage), compile::summary_text(stage.listing));
    if (arguments.svg.empty()) {
      fmt::print("\n{}", compile::nodes_text(stage.listing, width));
    } else {
      fmt::print("\nthe nodes are in {}\n", arguments.svg);
    }
  }
}

}  // namespace

ExitCode run_graph(const CommandContext& command, const std::vector<std::string>& arguments) {
  Arguments parsed;
  if (!parse(arguments, parsed)) return ExitCode::kDone;
  require_alone("graph");
  compile::check_stage(parsed.stage());

  const Registries& registries = command.registries();
  ResolvedRecipe resolved = load_recipe(registries, parsed.recipe, parsed.overrides);
  Session session(std::move(resolved));
  const data::Batch batch = session.first_batch(session.recipe().data.batch_size);
  session.model().set_training(true);
  train::TrainStep step(session.model(), session.optimizer(), session.step_config());
  const auto graphs = step.graphs(batch.by_role(), parsed.stage());

  const std::string title =
      fmt::format("{}: a step of {}; {}", session.resolved().name,
                  samples_text(session.inputs(), batch.size()), session.describe_training());
  if (!parsed.svg.empty() && graphs.refusal.empty()) {
    draw(title, graphs.stages.front(), parsed.svg);
  }
  if (parsed.json) {
    print_json(session, batch.size(), graphs, parsed.all);
  } else {
    print_text(title, graphs, parsed);
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
