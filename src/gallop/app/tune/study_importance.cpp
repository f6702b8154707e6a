#include <algorithm>
#include <numeric>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/command.h"
#include "gallop/app/terminal.h"
#include "gallop/app/tune/subcommands.h"
#include "gallop/app/tune/which_study.h"
#include "gallop/plot/plot.h"
#include "gallop/tune/importance/importance.h"

namespace gallop::app {

namespace {

std::vector<double> shares_of(const tune::Study& study, const std::string& method) {
  return method == "fanova" ? tune::fanova(study) : tune::ped_anova(study);
}

}  // namespace

ExitCode tune_importance(const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Show how much each parameter of a study matters for its metric.\n\n"
      "ped-anova: by how far the best tenth of the trials lies from the others.\n"
      "fanova: the share of the metric's variance that the parameter explains alone.\n\n"
      "Example: gallop tune importance my-study",
      "gallop tune importance");
  WhichStudy which;
  which.add_to(parser);
  std::string method = "ped-anova";
  bool json = false;
  parser.add_option("--method", method, "ped-anova (the default) or fanova")
      ->check(CLI::IsMember({"ped-anova", "fanova"}));
  parser.add_flag("--json", json, "print JSON");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const tune::Study study = which.find().read();
  if (!study.best()) throw UsageError("no trial is complete so far");
  const std::vector<double> shares = shares_of(study, method);
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&shares](size_t a, size_t b) { return shares[a] > shares[b]; });
  if (json) {
    auto object = nlohmann::ordered_json::object();
    for (const size_t i : order) object[study.space()[i].name] = shares[i];
    fmt::print("{}\n", object.dump());
    return ExitCode::kDone;
  }
  plot::BarPlot plot;
  for (const size_t i : order) {
    plot.bars.push_back(
        {study.space()[i].name, shares[i], fmt::format("{:.1f} %", 100 * shares[i])});
  }
  print_plot(plot);
  return ExitCode::kDone;
}

}  // namespace gallop::app
