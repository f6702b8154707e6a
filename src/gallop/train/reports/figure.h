#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gallop/plot/plot.h"
#include "gallop/train/metrics/figure_data.h"

namespace gallop::train {

/// What the targets of a figure are called.
struct TargetNames {
  std::vector<std::string> numbers{};  ///< Of residuals; those without a name have their index.
  bool are_labels = false;  ///< Any number of labels for a sample, in place of one class.
};

/// For people: "ROC curves, each class against the others", "Residuals of price".
std::string figure_title(const FigureData& figure, const TargetNames& names = {});

/// The figure as plots, for SVG and for text. Large confusion matrices are drawn as bars of the
/// most frequent confusions, of many residuals some thousand.
plot::Page figure_page(const FigureData& figure, const TargetNames& names = {});

/// All data of a figure. Numbers that JSON has not are texts (config/json_numbers.h); what is
/// undefined is null.
nlohmann::ordered_json figure_json(const FigureData& figure);

}  // namespace gallop::train
