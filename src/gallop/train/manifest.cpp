#include "gallop/train/manifest.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"

namespace gallop::train {

namespace {

constexpr int kFormat = 1;
constexpr int64_t kMaxBytes = int64_t{1} << 20;

}  // namespace

std::string render_manifest(const Manifest& manifest) {
  nlohmann::ordered_json json = {
      {"format", kFormat}, {"sequence", manifest.sequence}, {"step", manifest.step}};
  for (const auto& [name, file] : manifest.files) {
    json["files"][name] = {{"bytes", file.bytes}, {"xxh3_128", file.xxh3_128}};
  }
  json["checksum"] = xxh3_128(json.dump());
  return json.dump(1) + "\n";
}

Manifest read_manifest(const fs::path& path) {
  const std::string name = printable(path.string());
  const std::string text = read_file(path, kMaxBytes);
  Manifest manifest;
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.at("format").get<int>() > kFormat) {
      throw DataError(fmt::format("{}: written by a newer Gallop, or damaged", name));
    }
    json.at("sequence").get_to(manifest.sequence);
    json.at("step").get_to(manifest.step);
    for (const auto& [file, entry] : json.at("files").items()) {
      manifest.files[file] = {.bytes = entry.at("bytes").get<int64_t>(),
                              .xxh3_128 = entry.at("xxh3_128").get<std::string>()};
    }
    // The text has a single valid form, so that every change of it is detected.
    if (render_manifest(manifest) == text) return manifest;
  } catch (const nlohmann::json::exception&) {
    throw DataError(fmt::format("{}: damaged: it is not a manifest of a checkpoint", name));
  }
  throw DataError(fmt::format("{}: damaged: its checksum is wrong", name));
}

}  // namespace gallop::train
