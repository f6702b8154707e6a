#include "gallop/track/run_samples.h"

#include <nlohmann/json.hpp>

#include "gallop/track/json_file.h"

namespace gallop::track {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFile = "samples.json";

RunSamples::One one_of(const Json& json) {
  RunSamples::One one;
  one.label = json.at("label");
  one.image = json.at("image");
  one.before = json.at("before");
  one.text = json.at("text");
  return one;
}

// Validates samples; returns the first error, or an empty text.
std::string mistake_in(const RunSamples& samples) {
  for (const auto& one : samples.samples) {
    for (const std::string& image : {one.image, one.before}) {
      if (!image.empty() && !is_image_name(image)) {
        return "it refers to an unknown image";
      }
    }
  }
  return {};
}

}  // namespace

fs::path run_samples_of(const fs::path& run) { return run / "samples"; }

void write_run_samples(const fs::path& run, const RunSamples& samples) {
  Json list = Json::array();
  for (const auto& one : samples.samples) {
    list.push_back(
        {{"label", one.label}, {"image", one.image}, {"before", one.before}, {"text", one.text}});
  }
  write_json_file(run_samples_of(run) / kFile,
                  {{"augmented_by", samples.augmented_by}, {"samples", std::move(list)}});
}

std::optional<RunSamples> read_run_samples(const fs::path& run) {
  RunSamples samples;
  const bool is_there = read_json_file(run_samples_of(run) / kFile, [&](const Json& json) {
    json.at("augmented_by").get_to(samples.augmented_by);
    for (const Json& one : json.at("samples")) samples.samples.push_back(one_of(one));
    return mistake_in(samples);
  });
  if (!is_there) return std::nullopt;
  return samples;
}

}  // namespace gallop::track
