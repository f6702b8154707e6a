#include "gallop/tune/plots/study_plots.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/tune/importance/history.h"
#include "gallop/tune/importance/importance.h"
#include "gallop/tune/plots/results.h"

namespace gallop::tune {

namespace {

constexpr size_t kMostAxes = 10;  // Axes of parallel coordinates, unless parameters are given.
constexpr size_t kContourParameters =
    2;  // Parameters of contour plots, unless parameters are given.

/// A kind of plot: its requirements and how it is made.
struct Maker {
  PlotKind kind;
  std::string (*why_not)(const Study& study, const PlotChoice& choice);
  std::vector<plot::Plot> (*make)(const Study& study, const PlotChoice& choice);
  size_t columns;  ///< Number of plots side by side.
};

std::vector<size_t> objectives_of(const Study& study, const PlotChoice& choice) {
  if (!choice.objectives.empty()) return choice.objectives;
  std::vector<size_t> all(study.objectives());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

std::vector<size_t> variable_parameters(const Study& study) {
  std::vector<size_t> found;
  for (size_t i = 0; i < study.space().size(); ++i) {
    if (is_variable(study.space()[i])) found.push_back(i);
  }
  return found;
}

// The given parameters, or the most important ones, in the order of the space.
std::vector<size_t> parameters_of(const Study& study, const PlotChoice& choice, size_t objective,
                                  size_t most) {
  if (!choice.parameters.empty()) return choice.parameters;
  std::vector<size_t> all = variable_parameters(study);
  if (all.size() <= most) return all;
  const auto shares = ped_anova(study, {.objective = objective});
  std::stable_sort(all.begin(), all.end(),
                   [&shares](size_t a, size_t b) { return shares[a] > shares[b]; });
  all.resize(most);
  std::sort(all.begin(), all.end());
  return all;
}

// Whether any trial has a result for each metric.
template <typename Has>
bool each_has(const Study& study, const PlotChoice& choice, const Has& has) {
  const auto objectives = objectives_of(study, choice);
  return std::all_of(objectives.begin(), objectives.end(),
                     [&](size_t objective) { return has(results_of(study, objective)); });
}

std::string no_parameter(const Study& study) {
  return variable_parameters(study).empty() ? "no parameter of this study has several values" : "";
}

std::string no_complete(const Study& study, const PlotChoice& choice) {
  const bool has = each_has(study, choice, [](const Results& results) {
    return !results.good.empty() || !results.over_limit.empty();
  });
  return has ? no_parameter(study) : "no trial is complete with a finite metric so far";
}

std::string no_history(const Study& study, const PlotChoice& choice) {
  const bool has =
      each_has(study, choice, [](const Results& results) { return !results.is_empty(); });
  return has ? "" : "no trial has a finite metric so far";
}

std::vector<plot::Plot> histories(const Study& study, const PlotChoice& choice) {
  std::vector<plot::Plot> plots;
  for (const size_t i : objectives_of(study, choice)) plots.emplace_back(history_plot(study, i));
  return plots;
}

std::string no_intermediate(const Study& study, const PlotChoice& choice) {
  const auto objectives = objectives_of(study, choice);
  if (std::find(objectives.begin(), objectives.end(), size_t{0}) == objectives.end()) {
    return fmt::format("trials report only {}", study.settings().objectives[0].metric);
  }
  const bool has = std::any_of(study.trials().begin(), study.trials().end(), [](const Trial& one) {
    return one.state != TrialState::kFailed &&
           std::any_of(one.reports.begin(), one.reports.end(),
                       [](const Report& report) { return std::isfinite(report.loss); });
  });
  return has ? "" : "no trial has reported intermediate values";
}

std::vector<plot::Plot> intermediates(const Study& study, const PlotChoice&) {
  return {intermediate_plot(study)};
}

std::string no_parallel(const Study& study, const PlotChoice& choice) {
  const bool has =
      each_has(study, choice, [](const Results& results) { return !results.good.empty(); });
  return has ? no_parameter(study) : "no trial is complete within its limits so far";
}

std::vector<plot::Plot> parallels(const Study& study, const PlotChoice& choice) {
  std::vector<plot::Plot> plots;
  const size_t all = variable_parameters(study).size();
  for (const size_t i : objectives_of(study, choice)) {
    const auto parameters = parameters_of(study, choice, i, kMostAxes);
    plot::ParallelPlot plot = parallel_plot(study, i, parameters);
    if (parameters.size() < all) {
      plot.title = fmt::format("{} by {} of {} parameters{}", plot.axes[0].label, parameters.size(),
                               all, choice.parameters.empty() ? ", the most important ones" : "");
    }
    plots.emplace_back(std::move(plot));
  }
  return plots;
}

std::vector<plot::Plot> slices(const Study& study, const PlotChoice& choice) {
  std::vector<plot::Plot> plots;
  for (const size_t i : objectives_of(study, choice)) {
    for (const size_t parameter : parameters_of(study, choice, i, study.space().size())) {
      plot::XyPlot plot = slice_plot(study, i, parameter);
      if (!plot.points.empty()) plots.emplace_back(std::move(plot));
    }
  }
  return plots;
}

using Pair = std::pair<size_t, size_t>;

// Pairs of parameters that are both active in some complete trial.
std::vector<Pair> pairs_of(const Study& study, const PlotChoice& choice, size_t objective) {
  const auto parameters = parameters_of(study, choice, objective, kContourParameters);
  const auto results = results_of(study, objective).complete();
  std::vector<Pair> pairs;
  for (size_t i = 0; i < parameters.size(); ++i) {
    for (size_t j = i + 1; j < parameters.size(); ++j) {
      const bool meet = std::any_of(results.begin(), results.end(), [&](const Result& result) {
        return !std::isnan(result.trial->point[parameters[i]] + result.trial->point[parameters[j]]);
      });
      if (meet) pairs.emplace_back(parameters[i], parameters[j]);
    }
  }
  return pairs;
}

std::string no_contour(const Study& study, const PlotChoice& choice) {
  if (choice.parameters.size() == 1) return "at least two parameters are required, got one";
  if (variable_parameters(study).size() < 2) {
    return "at least two parameters are required; this study has one";
  }
  if (std::string why = no_complete(study, choice); !why.empty()) return why;
  for (const size_t i : objectives_of(study, choice)) {
    if (pairs_of(study, choice, i).empty()) {
      return "no complete trial has two of these parameters; choose others with --parameters";
    }
  }
  return "";
}

std::vector<plot::Plot> contours(const Study& study, const PlotChoice& choice) {
  std::vector<plot::Plot> plots;
  for (const size_t i : objectives_of(study, choice)) {
    for (const auto& [across, up] : pairs_of(study, choice, i)) {
      plots.emplace_back(contour_plot(study, i, across, up));
    }
  }
  return plots;
}

std::string no_importance(const Study& study, const PlotChoice& choice) {
  for (const size_t i : objectives_of(study, choice)) {
    const std::string reason = no_importance_reason(study, i);
    if (!reason.empty()) return reason;
  }
  return no_parameter(study);
}

std::vector<plot::Plot> importances(const Study& study, const PlotChoice& choice) {
  std::vector<plot::Plot> plots;
  for (const size_t i : objectives_of(study, choice)) {
    plots.emplace_back(
        importance_plot(study, i, parameters_of(study, choice, i, study.space().size())));
  }
  return plots;
}

std::string no_pareto(const Study& study, const PlotChoice& choice) {
  const auto objectives = objectives_of(study, choice);
  if (study.objectives() < 2) return "at least two metrics are required; this study has one";
  if (objectives.size() < 2) return "at least two metrics are required, got one";
  const bool has = std::any_of(study.trials().begin(), study.trials().end(), [&](const Trial& one) {
    return one.state == TrialState::kComplete &&
           std::all_of(objectives.begin(), objectives.end(),
                       [&](size_t i) { return std::isfinite(one.losses[i]); });
  });
  return has ? "" : "no trial is complete with finite metrics so far";
}

std::vector<plot::Plot> paretos(const Study& study, const PlotChoice& choice) {
  const auto objectives = objectives_of(study, choice);
  std::vector<plot::Plot> plots;
  for (size_t i = 0; i < objectives.size(); ++i) {
    for (size_t j = i + 1; j < objectives.size(); ++j) {
      plots.emplace_back(pareto_plot(study, objectives[i], objectives[j]));
    }
  }
  return plots;
}

const std::vector<Maker>& makers() {
  static const std::vector<Maker> kMakers = {
      {{"history", "the metric by trial, with the best so far", false}, no_history, histories, 2},
      {{"pareto", "the Pareto front of two metrics", false}, no_pareto, paretos, 2},
      {{"importance", "hyperparameter importances", true}, no_importance, importances, 2},
      {{"intermediate", "intermediate values of all trials", false},
       no_intermediate,
       intermediates,
       2},
      {{"contour", "the metric by each pair of parameters", true}, no_contour, contours, 2},
      {{"parallel", "parallel coordinates of metric and parameters", true},
       no_parallel,
       parallels,
       1},
      {{"slice", "the metric by each parameter", true}, no_complete, slices, 3},
  };
  return kMakers;
}

const Maker& maker_of(const PlotKind& kind) {
  return *std::find_if(makers().begin(), makers().end(),
                       [&kind](const Maker& maker) { return maker.kind.name == kind.name; });
}

}  // namespace

const std::vector<PlotKind>& plot_kinds() {
  static const std::vector<PlotKind> kKinds = [] {
    std::vector<PlotKind> kinds;
    for (const Maker& maker : makers()) kinds.push_back(maker.kind);
    return kinds;
  }();
  return kKinds;
}

std::string why_not(const Study& study, const PlotKind& kind, const PlotChoice& choice) {
  return maker_of(kind).why_not(study, choice);
}

std::vector<plot::Plot> study_plots(const Study& study, const PlotKind& kind,
                                    const PlotChoice& choice) {
  if (const std::string why = why_not(study, kind, choice); !why.empty()) {
    throw UsageError(fmt::format("{}: {}", kind.name, why));
  }
  return maker_of(kind).make(study, choice);
}

plot::Page study_page(const Study& study, const std::vector<const PlotKind*>& kinds,
                      const PlotChoice& choice) {
  plot::Page page{.title = study.settings().name, .rows = {}};
  for (const PlotKind* const kind : kinds) {
    const size_t columns = maker_of(*kind).columns;
    for (plot::Plot& plot : study_plots(study, *kind, choice)) {
      const bool has_room = !page.rows.empty() && page.rows.back().columns == columns &&
                            page.rows.back().plots.size() < columns;
      if (!has_room) page.rows.push_back({.plots = {}, .columns = columns});
      page.rows.back().plots.push_back(std::move(plot));
    }
  }
  if (page.rows.size() == 1) page.rows[0].columns = page.rows[0].plots.size();
  return page;
}

}  // namespace gallop::tune
