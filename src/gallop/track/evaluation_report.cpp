#include "gallop/track/evaluation_report.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "gallop/config/json_numbers.h"
#include "gallop/track/json_file.h"

namespace gallop::track {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFile = "report.json";
constexpr const char* kPage = "report.html";
constexpr const char* kGroups[] = {"first", "lowest-iou"};  // By EvaluationReport::Overlay::Group.

EvaluationReport::Mistake mistake_of(const Json& json) {
  EvaluationReport::Mistake mistake;
  mistake.image = json.at("image");
  mistake.width = json.at("width");
  mistake.height = json.at("height");
  mistake.channels = json.at("channels");
  mistake.truth = json.at("truth");
  mistake.guess = json.at("guess");
  mistake.probability = config::number_of(json.at("probability"));
  return mistake;
}

// The overlay's image files by JSON key.
template <typename Overlay>
auto files_of(Overlay& overlay) {
  return std::array{std::pair("image", &overlay.image), std::pair("truth", &overlay.truth),
                    std::pair("prediction", &overlay.prediction),
                    std::pair("differences", &overlay.differences)};
}

EvaluationReport::Overlay overlay_of(const Json& json) {
  using Group = EvaluationReport::Overlay::Group;
  EvaluationReport::Overlay overlay;
  overlay.group = json.at("group") == kGroups[1] ? Group::kLowest : Group::kFirst;
  overlay.sample = json.at("sample");
  if (!json.at("iou").is_null()) overlay.iou = config::number_of(json.at("iou"));
  for (const auto& [name, file] : files_of(overlay)) *file = json.at(name);
  return overlay;
}

Json overlay_json(const EvaluationReport::Overlay& overlay) {
  Json json{{"group", kGroups[static_cast<size_t>(overlay.group)]},
            {"sample", overlay.sample},
            {"iou", overlay.iou ? config::number_json(*overlay.iou) : Json()}};
  for (const auto& [name, file] : files_of(overlay)) json[name] = *file;
  return json;
}

bool is_color(const std::string& text) {
  constexpr size_t kLength = 7;  // "#e69f00"
  return text.size() == kLength && text.front() == '#' &&
         text.find_first_not_of("0123456789abcdef", 1) == std::string::npos;
}

bool is_file_of_report(const fs::path& path) {
  const std::string name = path.filename().string();
  // Figures, and lists of names for a recipe's data.exclude.
  const bool is_plain = is_figure_name(path.stem().string()) &&
                        (path.extension() == ".svg" || path.extension() == ".txt");
  return name == kFile || name == kPage || is_plain || is_image_name(name);
}

// Validates a report; returns the first error, or an empty text.
std::string mistake_in(const EvaluationReport& report) {
  const size_t classes = report.classes.size();
  const auto is_label = [&](int64_t label) {
    return label >= 0 && static_cast<size_t>(label) < classes;
  };
  if (!report.counts.empty() && report.counts.size() != classes) {
    return "it must have one row per class";
  }
  for (const auto& row : report.counts) {
    if (row.size() != classes) return "it must have one count per class";
  }
  for (const auto& one : report.mistakes) {
    if (!is_label(one.truth) || !is_label(one.guess)) return "it refers to an unknown class";
    if (!is_image_name(one.image)) return "it refers to an unknown image";
  }
  for (const auto& one : report.overlays) {
    for (const auto& [name, file] : files_of(one)) {
      if (!is_image_name(*file)) return "it refers to an unknown image";
    }
  }
  if (!report.overlays.empty() && report.colors.size() != classes) {
    return "it must have one color per class";
  }
  if (!std::all_of(report.colors.begin(), report.colors.end(), is_color)) {
    return "it has an invalid color";
  }
  for (const auto& one : report.figures) {
    if (!is_figure_name(one.name)) return "it refers to an unknown figure";
  }
  return {};
}

}  // namespace

fs::path evaluation_report_of(const fs::path& run) { return run / "report"; }

void write_evaluation_report(const fs::path& folder, const EvaluationReport& report) {
  Json metrics = Json::object(), figures = Json::array(), mistakes = Json::array();
  Json overlays = Json::array();
  for (const auto& overlay : report.overlays) overlays.push_back(overlay_json(overlay));
  for (const auto& [name, value] : report.metrics) {
    metrics[name] = value ? config::number_json(*value) : Json();
  }
  for (const auto& figure : report.figures) {
    figures.push_back({{"name", figure.name},
                       {"title", figure.title},
                       {"file", figure_file(figure.name)},
                       {"data", Json::parse(figure.data)}});
  }
  for (const auto& mistake : report.mistakes) {
    mistakes.push_back({{"image", mistake.image},
                        {"width", mistake.width},
                        {"height", mistake.height},
                        {"channels", mistake.channels},
                        {"truth", mistake.truth},
                        {"guess", mistake.guess},
                        {"probability", config::number_json(mistake.probability)}});
  }
  const Json json{{"runs", report.runs},
                  {"step", report.step},
                  {"split", report.part},
                  {"part", report.part},
                  {"samples", report.samples},
                  {"targets", report.targets},
                  {"metrics", std::move(metrics)},
                  {"figures", std::move(figures)},
                  {"classes", report.classes},
                  {"counts", report.counts},
                  {"mistakes", std::move(mistakes)},
                  {"overlays", std::move(overlays)},
                  {"colors", report.colors}};
  write_json_file(folder / kFile, json);
}

std::optional<EvaluationReport> read_evaluation_report(const fs::path& run) {
  EvaluationReport report;
  const bool is_there = read_json_file(evaluation_report_of(run) / kFile, [&](const Json& json) {
    report.step = json.at("step");
    report.part = json.at("part");
    json.at("classes").get_to(report.classes);
    json.at("counts").get_to(report.counts);
    for (const Json& mistake : json.at("mistakes")) report.mistakes.push_back(mistake_of(mistake));
    // Reports of older versions have no overlays.
    for (const Json& overlay : json.value("overlays", Json::array())) {
      report.overlays.push_back(overlay_of(overlay));
    }
    report.colors = json.value("colors", std::vector<std::string>());
    for (const Json& figure : json.value("figures", Json::array())) {
      report.figures.push_back({.name = figure.at("name"), .title = figure.at("title")});
    }
    return mistake_in(report);
  });
  if (!is_there) return std::nullopt;
  return report;
}

bool is_figure_name(const std::string& name) {
  return !name.empty() &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
}

std::string figure_file(const std::string& name) { return name + ".svg"; }

bool is_report_folder(const fs::path& folder) {
  std::error_code error;
  if (!fs::exists(folder, error) || fs::is_empty(folder, error)) return true;
  if (error || !fs::exists(folder / kFile, error)) return false;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!is_file_of_report(entry.path())) return false;
  }
  return !error;
}

void clear_report_folder(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (is_file_of_report(entry.path())) files.push_back(entry.path());
  }
  for (const fs::path& file : files) fs::remove(file, ignored);
}

}  // namespace gallop::track
