#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "gallop/base/text.h"
#include "gallop/model/summary.h"

namespace gallop::model {

namespace {

constexpr size_t kColumns = 6;
using Row = std::array<std::string, kColumns>;

std::string sizes_text(const std::vector<int64_t>& sizes) {
  return sizes.empty() ? "-" : fmt::format("{}", fmt::join(sizes, "x"));
}

Row row_of(const LayerSummary& layer, const std::string& name) {
  const auto or_dash = [](int64_t number, const std::string& text) {
    return number == 0 ? "-" : text;
  };
  const double millions = static_cast<double>(layer.flops) / 1e6;
  return {name,
          layer.type,
          sizes_text(layer.output_sizes),
          or_dash(layer.parameters, format_count(layer.parameters)),
          or_dash(layer.flops, fmt::format("{:.3f}", millions)),
          or_dash(layer.activation_bytes, format_bytes(layer.activation_bytes))};
}

nlohmann::ordered_json json_of(const LayerSummary& layer) {
  return {{"name", layer.name},
          {"type", layer.type},
          {"output_sizes", layer.output_sizes},
          {"parameters", layer.parameters},
          {"flops", layer.flops},
          {"activation_bytes", layer.activation_bytes},
          {"active_parameters", layer.active_parameters()}};
}

}  // namespace

std::string to_table(const std::vector<LayerSummary>& layers) {
  std::vector<Row> rows{{"layer", "type", "output", "parameters", "MFLOP", "kept"}};
  for (const auto& layer : layers) rows.push_back(row_of(layer, layer.name));
  auto total = total_of(layers);
  total.type.clear();
  total.output_sizes.clear();
  rows.push_back(row_of(total, "total"));
  rows.back()[2].clear();

  std::array<size_t, kColumns> widths{};
  for (const auto& row : rows) {
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    // Text is left-aligned, numbers are right-aligned.
    text += fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>{}}  {:>{}}  {:>{}}\n", row[0], widths[0],
                        row[1], widths[1], row[2], widths[2], row[3], widths[3], row[4], widths[4],
                        row[5], widths[5]);
  }
  if (total.idle_parameters > 0) {
    text += fmt::format("\n{} of the parameters are active for a token\n",
                        format_count(total.active_parameters()));
  }
  return text;
}

std::string to_json(const std::vector<LayerSummary>& layers) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& layer : layers) list.push_back(json_of(layer));
  return nlohmann::ordered_json{{"layers", list}, {"total", json_of(total_of(layers))}}.dump();
}

}  // namespace gallop::model
