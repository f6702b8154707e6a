#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "gallop/plot/plot.h"
#include "gallop/train/metrics/figure_data.h"

namespace gallop::train {

/// For people: "ROC curve of each class".
std::string figure_title(const FigureData& figure);

/// The figure as plots, for SVG and for text. Large confusion matrices are drawn as bars of the
/// most frequent confusions, of many residuals some thousand.
plot::Page figure_page(const FigureData& figure);

/// All data of a figure. Numbers that JSON has not are texts (config/json_numbers.h); what is
/// undefined is null.
nlohmann::ordered_json figure_json(const FigureData& figure);

}  // namespace gallop::train
