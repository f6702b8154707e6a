#include "gallop/track/class_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/json_numbers.h"

namespace gallop::track {

namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostBytes = int64_t{1} << 28;
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
    const size_t digits = one.image.find_first_not_of("0123456789");
    if (digits == 0 || digits == std::string::npos || one.image.substr(digits) != ".png") {
      return "it names a file that is none of its images";
    }
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
  write_file_atomically(class_report_of(run) / kFile,
                        json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
}

std::optional<ClassReport> read_class_report(const fs::path& run) {
  const fs::path file = class_report_of(run) / kFile;
  if (!fs::exists(file)) return std::nullopt;
  const auto refuse = [&](const std::string& why) {
    throw DataError(fmt::format("{}: {}", printable(file.string()), why));
  };
  ClassReport report;
  try {
    const Json json = Json::parse(read_file(file, kMostBytes));
    report.step = json.at("step");
    report.part = json.at("part");
    json.at("classes").get_to(report.classes);
    json.at("counts").get_to(report.counts);
    for (const Json& mistake : json.at("mistakes")) report.mistakes.push_back(mistake_of(mistake));
  } catch (const Json::exception& error) {
    refuse(error.what());
  }
  const std::string mistake = mistake_in(report);
  if (!mistake.empty()) refuse(mistake);
  return report;
}

}  // namespace gallop::track
