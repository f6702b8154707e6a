#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "gallop/plot/plot.h"
#include "gallop/train/metrics/figure_data.h"

namespace gallop::train {

/// The names of the targets in a figure.
struct TargetNames {
  std::vector<std::string> numbers{};  ///< Columns of residuals; unnamed ones have their index.
  bool are_labels = false;  ///< Targets are any number of labels per sample instead of one class.
};

/// A title: "ROC curves, each class against the others", "Residuals of price".
std::string figure_title(const FigureData& figure, const TargetNames& names = {});

/// The figure as plots, for SVG and for text. Large confusion matrices are drawn as bars of the
/// most frequent confusions; of many residuals, some thousand are drawn.
plot::Page figure_page(const FigureData& figure, const TargetNames& names = {});

/// All data of a figure. Numbers that JSON cannot represent are strings (config/json_numbers.h);
/// undefined values are null.
nlohmann::ordered_json figure_json(const FigureData& figure);

}  // namespace gallop::train
