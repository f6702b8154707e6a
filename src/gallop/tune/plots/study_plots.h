#pragma once

#include <string>
#include <vector>

#include "gallop/plot/plot.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// The metric of complete trials by their number, the best so far, and what pruned trials reported
/// last.
plot::XyPlot history_plot(const Study& study, size_t objective);

/// What trials reported, step by step, of the first metric.
plot::XyPlot intermediate_plot(const Study& study);

/// Complete trials within their limits as lines across the metric and these parameters.
plot::ParallelPlot parallel_plot(const Study& study, size_t objective,
                                 const std::vector<size_t>& parameters);

/// The metric of complete trials by a parameter, colored by their number.
plot::XyPlot slice_plot(const Study& study, size_t objective, size_t parameter);

/// The metric between the complete trials that have both parameters, as a surface.
plot::XyPlot contour_plot(const Study& study, size_t objective, size_t across, size_t up);

/// How much each of these parameters matters for the metric (ped_anova()), the most first.
plot::BarPlot importance_plot(const Study& study, size_t objective,
                              const std::vector<size_t>& parameters);

/// Complete trials by two metrics, and which of them are on the Pareto front of all.
plot::XyPlot pareto_plot(const Study& study, size_t across, size_t up);

/// What can be plotted of a study.
struct PlotKind {
  const char* name;  ///< "history"
  const char* summary;
  bool takes_parameters;
};
const std::vector<PlotKind>& plot_kinds();

/// What of a study is to be plotted.
struct PlotChoice {
  std::vector<size_t> objectives{};  ///< Which metrics; empty for each.
  std::vector<size_t> parameters{};  ///< Which parameters, in this order; empty: those that matter.
};

/// Why there is no plot of this kind, in words that follow its name; empty where there is one.
std::string why_not(const Study& study, const PlotKind& kind, const PlotChoice& choice);

/// Plots of one kind: for each metric, each parameter or each pair of them, as the kind has it.
/// Throws UsageError where there is none.
std::vector<plot::Plot> study_plots(const Study& study, const PlotKind& kind,
                                    const PlotChoice& choice);

/// Plots of several kinds on one page, in their order.
plot::Page study_page(const Study& study, const std::vector<const PlotKind*>& kinds,
                      const PlotChoice& choice);

}  // namespace gallop::tune
