#include <algorithm>
#include <numeric>
#include <optional>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/app/command.h"
#include "gallop/app/json_line.h"
#include "gallop/app/terminal.h"
#include "gallop/app/tune/subcommands.h"
#include "gallop/app/tune/which_study.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/plot/plot.h"
#include "gallop/tune/importance/importance.h"

namespace gallop::app {

namespace {

// The index of a metric; without a name all metrics, if the method supports that.
std::optional<size_t> metric_of(const tune::Study& study, const std::string& method,
                                const std::string& name) {
  std::vector<std::string> names;
  for (const auto& objective : study.settings().objectives) names.push_back(objective.metric);
  if (name.empty() && names.size() == 1) return 0;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  if (!name.empty() || (method == "fanova" && names.size() > 1)) {
    throw UsageError(
        name.empty()
            ? fmt::format("--method fanova: give one --metric of {}", join_names(names, "and"))
            : fmt::format("there is no metric '{}'; there {} {}", printable(name),
                          names.size() == 1 ? "is" : "are", join_names(names, "and")));
  }
  return std::nullopt;
}

std::vector<double> shares_of(const tune::Study& study, const std::string& method,
                              std::optional<size_t> metric) {
  if (method == "fanova") return tune::fanova(study, {.objective = metric.value_or(0)});
  return tune::ped_anova(study, {.objective = metric});
}

}  // namespace

ExitCode tune_importance(const CommandContext& /*command*/,
                         const std::vector<std::string>& arguments) {
  CLI::App parser(
      "Show the importance of each parameter of a study for its metric.\n\n"
      "ped-anova: divergence between the distributions of the best tenth of the trials and of all "
      "trials.\n"
      "fanova: variance of the metric that the parameter alone explains.\n"
      "Both are relative to the sum over all parameters.\n\n"
      "Example: gallop tune importance my-study",
      "gallop tune importance");
  WhichStudy which;
  which.add_to(parser);
  std::string method = "ped-anova";
  std::string metric;
  bool json = false;
  parser.add_option("--metric", metric,
                    "metric, if there are several; ped-anova uses all by default");
  parser.add_option("--method", method, "ped-anova (the default) or fanova")
      ->check(CLI::IsMember({"ped-anova", "fanova"}));
  parser.add_flag("--json", json, "print JSON");
  if (!parse_arguments(parser, arguments)) return ExitCode::kDone;
  const tune::Study study = which.find().read();
  const auto objective = metric_of(study, method, metric);
  const std::string reason = tune::no_importance_reason(study, objective);
  if (!reason.empty()) throw UsageError("importance: " + reason);
  const std::vector<double> shares = shares_of(study, method, objective);
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&shares](size_t a, size_t b) { return shares[a] > shares[b]; });
  if (json) {
    auto object = nlohmann::ordered_json::object();
    for (const size_t i : order) object[study.space()[i].name] = shares[i];
    fmt::print("{}\n", json_line(object));
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
