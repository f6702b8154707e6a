#include "gallop/track/class_report.h"

#include <nlohmann/json.hpp>

#include "gallop/config/json_numbers.h"
#include "gallop/track/json_file.h"

namespace gallop::track {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFile = "report.json";

ClassReport::Mistake mistake_of(const Json& json) {
  ClassReport::Mistake mistake;
  mistake.image = json.at("image");
  mistake.width = json.at("width");
  mistake.height = json.at("height");
  mistake.channels = json.at("channels");
  mistake.truth = json.at("truth");
  mistake.guess = json.at("guess");
  mistake.probability = config::number_of(json.at("probability"));
  return mistake;
}

// What is wrong with it; empty for nothing.
std::string mistake_in(const ClassReport& report) {
  const size_t classes = report.classes.size();
  const auto is_label = [&](int64_t label) {
    return label >= 0 && static_cast<size_t>(label) < classes;
  };
  if (report.counts.size() != classes) return "it does not have a row for each class";
  for (const auto& row : report.counts) {
    if (row.size() != classes) return "it does not have a count for each class";
  }
  for (const auto& one : report.mistakes) {
    if (!is_label(one.truth) || !is_label(one.guess)) return "it names a class that is not there";
    if (!is_image_name(one.image)) return "it names a file that is none of its images";
  }
  return {};
}

}  // namespace

fs::path class_report_of(const fs::path& run) { return run / "report"; }

void write_class_report(const fs::path& run, const ClassReport& report) {
  Json mistakes = Json::array();
  for (const auto& mistake : report.mistakes) {
    mistakes.push_back({{"image", mistake.image},
                        {"width", mistake.width},
                        {"height", mistake.height},
                        {"channels", mistake.channels},
                        {"truth", mistake.truth},
                        {"guess", mistake.guess},
                        {"probability", config::number_json(mistake.probability)}});
  }
  const Json json{{"step", report.step},
                  {"part", report.part},
                  {"classes", report.classes},
                  {"counts", report.counts},
                  {"mistakes", std::move(mistakes)}};
  write_json_file(class_report_of(run) / kFile, json);
}

std::optional<ClassReport> read_class_report(const fs::path& run) {
  ClassReport report;
  const bool is_there = read_json_file(class_report_of(run) / kFile, [&](const Json& json) {
    report.step = json.at("step");
    report.part = json.at("part");
    json.at("classes").get_to(report.classes);
    json.at("counts").get_to(report.counts);
    for (const Json& mistake : json.at("mistakes")) report.mistakes.push_back(mistake_of(mistake));
    return mistake_in(report);
  });
  if (!is_there) return std::nullopt;
  return report;
}

}  // namespace gallop::track
