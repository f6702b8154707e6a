#pragma once

#include <string>
#include <vector>

#include "gallop/plot/plot.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// The metric of complete trials by trial number, the best so far, and the last reports of pruned
/// trials.
plot::XyPlot history_plot(const Study& study, size_t objective);

/// The intermediate values of all trials by step, for the first metric.
plot::XyPlot intermediate_plot(const Study& study);

/// Parallel coordinates of complete trials within their limits.
plot::ParallelPlot parallel_plot(const Study& study, size_t objective,
                                 const std::vector<size_t>& parameters);

/// The metric of complete trials by a parameter, colored by trial number.
plot::XyPlot slice_plot(const Study& study, size_t objective, size_t parameter);

/// The metric as a surface, interpolated between complete trials that have both parameters.
plot::XyPlot contour_plot(const Study& study, size_t objective, size_t across, size_t up);

/// The importance of each of these parameters for the metric (ped_anova()), in descending order.
plot::BarPlot importance_plot(const Study& study, size_t objective,
                              const std::vector<size_t>& parameters);

/// Complete trials by two metrics, with their Pareto front.
plot::XyPlot pareto_plot(const Study& study, size_t across, size_t up);

/// A kind of plot of a study.
struct PlotKind {
  const char* name;  ///< "history"
  const char* summary;
  bool takes_parameters;
};
const std::vector<PlotKind>& plot_kinds();

/// The selection of metrics and parameters to plot.
struct PlotChoice {
  std::vector<size_t> objectives{};  ///< Which metrics; empty for each.
  /// Which parameters, in order; empty: the most important ones.
  std::vector<size_t> parameters{};
};

/// Why this kind of plot is unavailable, as a clause after its name; empty if it is available.
std::string why_not(const Study& study, const PlotKind& kind, const PlotChoice& choice);

/// All plots of one kind: one for each metric, parameter or pair of parameters, as the kind
/// requires. Throws UsageError if there is none.
std::vector<plot::Plot> study_plots(const Study& study, const PlotKind& kind,
                                    const PlotChoice& choice);

/// Several kinds of plots on one page, in order.
plot::Page study_page(const Study& study, const std::vector<const PlotKind*>& kinds,
                      const PlotChoice& choice);

}  // namespace gallop::tune
