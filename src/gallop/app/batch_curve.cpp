#include "gallop/app/batch_curve.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/text.h"

namespace gallop::app {

std::vector<plot::XyPlot> batch_curves(const std::string& recipe, const FoundBatch& found) {
  plot::Series speed{.name = "samples/s", .x = {}, .y = {}},
      memory{.name = "MiB", .x = {}, .y = {}};
  for (const auto& point : found.search.points) {
    speed.x.push_back(static_cast<double>(point.batch));
    speed.y.push_back(point.samples_per_second);
    memory.x.push_back(static_cast<double>(point.batch));
    memory.y.push_back(static_cast<double>(point.bytes) / 0x1p20);
  }
  const plot::Axis batches{.label = "batch", .scale = plot::Scale::kLog};
  plot::XyPlot speeds{.title = recipe + ": samples per second by batch",
                      .x = batches,
                      .y = {.label = "samples/s", .min = 0},
                      .series = {speed}};
  speeds.marks.push_back({.x = static_cast<double>(found.fastest()), .label = "fastest from"});
  if (found.critical) speeds.marks.push_back({.x = *found.critical, .label = "critical"});
  return {speeds,
          {.title = recipe + ": memory by batch",
           .x = batches,
           .y = {.label = "MiB", .min = 0},
           .series = {memory}}};
}

std::string batch_curve_json(const std::string& recipe, const FoundBatch& found) {
  nlohmann::ordered_json object = {{"recipe", recipe}, {"memory", found.limit_bytes}};
  for (const Override& one : found.format) object["format"][one.path] = one.value;
  for (const auto& point : found.search.points) {
    object["points"].push_back({{"batch", point.batch},
                                {"samples_per_second", point.samples_per_second},
                                {"bytes", point.bytes}});
  }
  object["largest"] = found.search.largest();
  if (found.search.too_large) object["too_large"] = *found.search.too_large;
  object["cut_short"] = found.search.cut_short;
  object["fastest_from"] = found.fastest();
  if (found.critical) object["critical"] = *found.critical;
  object["batch"] = found.suggested();
  object["seconds"] = found.seconds;
  object["busy"] = found.busy;
  return object.dump();
}

std::string why_suggested(const FoundBatch& found) {
  std::string text = "the smallest with 95 % of the maximum throughput";
  if (found.suggested() < found.fastest()) {
    text = fmt::format("limited to the critical batch size {}, although {} is faster",
                       format_count(static_cast<int64_t>(*found.critical)),
                       format_count(found.fastest()));
  } else if (found.critical) {
    text += fmt::format(", the critical batch is {}",
                        format_count(static_cast<int64_t>(*found.critical)));
  } else if (found.noise_takes) {
    text += fmt::format("; the critical batch was not measured, as that would take {}",
                        format_duration(*found.noise_takes));
  }
  if (found.is_uncertain()) {
    text += fmt::format(", measured while the machine was busy with other programs ({:.0f} %)",
                        100 * found.busy);
  }
  return text;
}

}  // namespace gallop::app
