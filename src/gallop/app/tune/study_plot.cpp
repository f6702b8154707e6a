#include <algorithm>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>

#include "gallop/app/command.h"
#include "gallop/app/output_file.h"
#include "gallop/app/terminal.h"
#include "gallop/app/tune/subcommands.h"
#include "gallop/app/tune/which_study.h"
#include "gallop/base/text.h"
#include "gallop/tune/importance/history.h"
#include "gallop/tune/plots/study_plots.h"
#include "gallop/tune/study_text.h"

namespace gallop::app {

namespace {

using Kinds = std::vector<const tune::PlotKind*>;

struct Arguments {
  WhichStudy which;
  std::vector<std::string> kinds, metrics, parameters;
  std::string svg;
};

std::string list_of_kinds() {
  std::string text;
  for (const tune::PlotKind& kind : tune::plot_kinds()) {
    text += fmt::format("  {:<14}{}\n", kind.name, kind.summary);
  }
  return text;
}

bool parse(const std::vector<std::string>& args, Arguments& arguments) {
  CLI::App parser(
      "Plot a study.\n\n"
      "Example: gallop tune plot my-study contour --parameters optimizer.lr,model.depth\n\n"
      "Without KIND the first two applicable plots are shown, and all applicable ones with "
      "--svg:\n" +
          list_of_kinds(),
      "gallop tune plot");
  arguments.which.add_to(parser);
  parser.add_option("KIND", arguments.kinds, "plots to draw");
  parser.add_option("--metric", arguments.metrics, "NAME,NAME: only these metrics")
      ->delimiter(',')
      ->allow_extra_args(false);
  parser
      .add_option("--parameters", arguments.parameters,
                  "NAME,NAME: only these parameters; contour plots each pair")
      ->delimiter(',')
      ->allow_extra_args(false);
  parser.add_option("--svg", arguments.svg,
                    "FILE: write the plots to this SVG file instead of the terminal");
  return parse_arguments(parser, args);
}

// The index of a name in a list of names.
size_t place_of(const std::string& what, const std::string& name,
                const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  const std::string nearest = nearest_name(name, names);
  throw UsageError(fmt::format("there is no {} '{}'{}; there {} {}", what, printable(name),
                               nearest.empty() ? "" : ", did you mean '" + nearest + "'?",
                               names.size() == 1 ? "is" : "are", join_names(names, "and")));
}

tune::PlotChoice choice_of(const tune::Study& study, const Arguments& arguments) {
  tune::PlotChoice choice;
  std::vector<std::string> metrics, parameters;
  for (const auto& objective : study.settings().objectives) metrics.push_back(objective.metric);
  for (const auto& parameter : study.space().parameters()) parameters.push_back(parameter.name);
  for (const std::string& name : arguments.metrics) {
    choice.objectives.push_back(place_of("metric", name, metrics));
  }
  for (const std::string& name : arguments.parameters) {
    const size_t index = place_of("parameter", name, parameters);
    if (!tune::is_variable(study.space()[index])) {
      throw UsageError(fmt::format("{} has the same value in all trials", printable(name)));
    }
    choice.parameters.push_back(index);
  }
  return choice;
}

Kinds named_kinds(const std::vector<std::string>& args) {
  std::vector<std::string> names;
  for (const auto& kind : tune::plot_kinds()) names.emplace_back(kind.name);
  Kinds kinds;
  for (const std::string& word : args) {
    kinds.push_back(&tune::plot_kinds()[place_of("kind of plot", word, names)]);
  }
  return kinds;
}

// The first applicable kinds.
Kinds fitting_kinds(const tune::Study& study, const tune::PlotChoice& choice, size_t most) {
  Kinds kinds;
  for (const auto& kind : tune::plot_kinds()) {
    const bool is_wanted = choice.parameters.empty() || kind.takes_parameters;
    if (kinds.size() < most && is_wanted && tune::why_not(study, kind, choice).empty()) {
      kinds.push_back(&kind);
    }
  }
  if (kinds.empty()) {
    throw UsageError(
        fmt::format("nothing to plot for {} so far; 'gallop tune status' "
                    "shows its progress",
                    study.settings().name));
  }
  return kinds;
}

void check_use_of_parameters(const Kinds& kinds, const tune::PlotChoice& choice) {
  const bool is_used = std::any_of(kinds.begin(), kinds.end(),
                                   [](const auto* kind) { return kind->takes_parameters; });
  if (choice.parameters.empty() || is_used) return;
  throw UsageError(fmt::format("--parameters does not apply to {}", kinds.front()->name));
}

}  // namespace

ExitCode tune_plot(const CommandContext& /*command*/, const std::vector<std::string>& arguments) {
  constexpr size_t kInTerminal = 2;
  constexpr int kFewRows = 9;  // Rows of each of many small plots.
  Arguments wanted;
  if (!parse(arguments, wanted)) return ExitCode::kDone;
  Kinds kinds = named_kinds(wanted.kinds);
  const tune::Study study = wanted.which.find().read();
  const tune::PlotChoice choice = choice_of(study, wanted);
  if (kinds.empty()) {
    kinds =
        fitting_kinds(study, choice, wanted.svg.empty() ? kInTerminal : tune::plot_kinds().size());
  }
  check_use_of_parameters(kinds, choice);
  plot::Page page = tune::study_page(study, kinds, choice);
  page.title += ": " + progress_text(study);
  if (!wanted.svg.empty()) {
    write_output(wanted.svg, plot::to_svg(page));
    if (is_standard_output(wanted.svg)) return ExitCode::kDone;
    std::vector<std::string> names;
    for (const auto* kind : kinds) names.emplace_back(kind->name);
    fmt::print("{}: {}\n", printable(wanted.svg), join_names(names, "and"));
    return ExitCode::kDone;
  }
  fmt::print("{}\n", printable(page.title));
  for (const plot::Row& row : page.rows) {
    for (const plot::Plot& plot : row.plots) {
      fmt::print("\n");
      print_plot(plot, row.columns > 2 ? kFewRows : plot::TextStyle().rows);
    }
  }
  return ExitCode::kDone;
}

}  // namespace gallop::app
