#include "gallop/model/exported/archive.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"
#include "gallop/model/exported/schema_reader.h"
#include "gallop/model/exported/stored_tensors.h"
#include "gallop/tensor/zip_bytes.h"

namespace gallop::model::exported {

namespace {

constexpr std::string_view kModels = "models/", kJson = ".json";
constexpr std::string_view kFingerprint = "extra/gallop_definition_of";
constexpr std::string_view kRemedy = "export the model again with torch 2.9 or newer";

std::string trimmed(std::string_view text) {
  const size_t end = text.find_last_not_of(" \r\n\t");
  return std::string(text.substr(0, end == std::string_view::npos ? 0 : end + 1));
}

// The storages of a config, with their content.
std::map<std::string, std::string_view> storages_of(const std::vector<StoredTensor>& stored,
                                                    const std::string& folder,
                                                    std::string_view kind, ZipArchive& zip,
                                                    const Place& place) {
  std::map<std::string, std::string_view> bytes;
  for (const StoredTensor& each : stored) {
    if (bytes.contains(each.storage)) continue;
    const std::string described = fmt::format("{} '{}'", kind, printable(each.name));
    const ZipEntry* entry = zip.find(folder + each.storage);
    if (entry == nullptr) {
      place.fail(fmt::format("{}: its data '{}' are missing", described, printable(each.storage)));
    }
    bytes.emplace(each.storage, zip.bytes(*entry, described));
  }
  return bytes;
}

}  // namespace

void add_by_name(const std::vector<ArchivedTensor>& stored,
                 std::map<std::string, at::Tensor>& tensors) {
  for (const ArchivedTensor& one : stored) {
    one.tensor.set_requires_grad(one.is_parameter && one.requires_grad);
    for (const std::string& name : one.names) tensors.emplace(name, one.tensor);
  }
}

Archive::Archive(const fs::path& path) : zip_(path) {
  check_format();
  find_models();
  check_layout();
  find_fingerprint();
}

void Archive::fail(const std::string& what) const {
  throw DataError(fmt::format("{}: {}", printable(zip_.path().string()), what));
}

// The content of an entry of the archive's folder; empty if it is missing.
std::string_view Archive::text(const std::string& name) {
  const ZipEntry* entry = zip_.find(folder_ + name);
  return entry == nullptr ? std::string_view() : zip_.bytes(*entry);
}

// Says what a zip archive of another kind is.
void Archive::fail_foreign() const {
  const auto ends = [](std::string_view end) {
    return [end](const ZipEntry& entry) { return entry.name.ends_with(end); };
  };
  const auto has = [&](std::string_view end) {
    return std::any_of(zip_.entries().begin(), zip_.entries().end(), ends(end));
  };
  if (has("serialized_exported_program.json")) {
    fail(
        fmt::format("was saved by torch 2.7 or older, whose layout is not supported; {}", kRemedy));
  }
  if (has("constants.pkl")) {
    fail("is a TorchScript file, not an exported program; save the model with torch.export.save()");
  }
  if (has("data.pkl")) {
    fail("is a file of torch.save(), not an exported program; save with torch.export.save()");
  }
  fail("is not an archive of torch.export.save(): it has no archive_format");
}

void Archive::check_format() {
  if (zip_.entries().empty()) fail("is an empty archive");
  const std::string& first = zip_.entries().front().name;
  folder_ = first.substr(0, first.find('/') + 1);
  if (folder_.empty() || zip_.find(folder_ + "archive_format") == nullptr) fail_foreign();
  if (const std::string format = trimmed(text("archive_format")); format != "pt2") {
    fail(fmt::format("has the format '{}' instead of 'pt2'", printable(format)));
  }
  if (const std::string version = trimmed(text("archive_version")); version != "0") {
    fail(fmt::format("has version '{}' of the archive's layout, and only 0 is supported",
                     printable(version)));
  }
  const std::string order = trimmed(text("byteorder"));
  if (!order.empty() && order != "little") {
    fail(fmt::format("has the byte order '{}', and only 'little' is supported", printable(order)));
  }
  for (const ZipEntry& entry : zip_.entries()) {
    if (!entry.name.starts_with(folder_)) {
      fail(fmt::format("entry '{}' is outside of the archive's folder '{}'", printable(entry.name),
                       printable(folder_)));
    }
  }
}

void Archive::find_models() {
  bool has_compiled = false;
  for (const ZipEntry& entry : zip_.entries()) {
    std::string_view name = std::string_view(entry.name).substr(folder_.size());
    has_compiled = has_compiled || name.starts_with("data/aotinductor/");
    if (!name.starts_with(kModels) || !name.ends_with(kJson)) continue;
    name = name.substr(kModels.size(), name.size() - kModels.size() - kJson.size());
    if (!name.empty() && name.find('/') == std::string_view::npos) models_.emplace_back(name);
  }
  std::sort(models_.begin(), models_.end());
  if (!models_.empty()) return;
  if (has_compiled) {
    fail(
        "holds a program compiled by AOTInductor, which is for inference alone; save what "
        "torch.export.export() returns");
  }
  fail(
      "holds no program: torch.export.save() did not finish; export a model that returns a tensor, "
      "tuple or dict");
}

// torch 2.8 has the same folders, but pickles the weights.
void Archive::check_layout() {
  for (const std::string& model : models_) {
    const std::string config = fmt::format("data/weights/{}_weights_config.json", model);
    if (zip_.find(folder_ + config) != nullptr) continue;
    const Place place(place_of(model));
    const Json json = parse_json(text(fmt::format("models/{}.json", model)), place);
    const Json* version = optional_member(json, "torch_version", place);
    const std::string torch = version == nullptr
                                  ? "2.8 or older"
                                  : printable(to_text(*version, "'torch_version'", place));
    if (zip_.find(folder_ + fmt::format("data/weights/{}.pt", model)) != nullptr) {
      fail(fmt::format("was saved by torch {}, which pickles the weights; {}", torch, kRemedy));
    }
    fail(fmt::format("entry '{}' is missing", printable(config)));
  }
}

void Archive::find_fingerprint() {
  fingerprint_ = text(std::string(kFingerprint));
  is_definition_ = !fingerprint_.empty();
  if (is_definition_) return;
  std::string entries;
  for (const ZipEntry& entry : zip_.entries()) {
    entries += fmt::format("{} {} {:08x}\n", std::string_view(entry.name).substr(folder_.size()),
                           entry.bytes, entry.crc32);
  }
  fingerprint_ = xxh3_128(entries);
}

void Archive::check_model(const std::string& model) const {
  if (std::find(models_.begin(), models_.end(), model) == models_.end()) {
    throw UsageError(fmt::format("{}: has no program '{}'; it has {}",
                                 printable(zip_.path().string()), printable(model),
                                 printable(join_names(models_, "and"))));
  }
}

// The beginning of errors, which names the program if there are several.
std::string Archive::place_of(const std::string& model) const {
  const std::string path = printable(zip_.path().string());
  return models_.size() == 1 ? path : fmt::format("{} (program '{}')", path, printable(model));
}

const std::string& Archive::training_program() const {
  const bool has_both = models_ == std::vector<std::string>{kEval, kTrain};
  if (models_.size() == 1 || has_both) return models_.back();
  throw UsageError(fmt::format("{}: has the programs {}; name them \"{}\" and \"{}\"",
                               printable(zip_.path().string()),
                               printable(join_names(models_, "and")), kTrain, kEval));
}

Program Archive::program(const std::string& model) {
  check_model(model);
  return parse_program(text(fmt::format("models/{}.json", model)), place_of(model));
}

std::vector<ArchivedTensor> Archive::weights(const std::string& model, const NamedTensors& given) {
  check_model(model);
  const Place place(place_of(model));
  const std::string folder = "data/weights/";
  const auto stored =
      read_config(text(fmt::format("{}{}_weights_config.json", folder, model)), "weight", place);
  const auto bytes = storages_of(stored, folder_ + folder, "weight", zip_, place);
  return load_tensors(stored, bytes, given, "weight", place, is_definition_);
}

std::vector<ArchivedTensor> Archive::constants(const std::string& model) {
  check_model(model);
  const Place place(place_of(model));
  const std::string folder = "data/constants/";
  const std::string config = fmt::format("{}{}_constants_config.json", folder, model);
  if (zip_.find(folder_ + config) == nullptr) return {};
  const auto stored = read_config(text(config), "constant", place);
  const auto bytes = storages_of(stored, folder_ + folder, "constant", zip_, place);
  return load_tensors(stored, bytes, {}, "constant", place, /*is_definition=*/false);
}

std::map<std::string, at::Tensor> Archive::constants_of(const std::string& model,
                                                        const Program& program) {
  std::map<std::string, at::Tensor> all, found;
  add_by_name(constants(model), all);
  for (const InputSpec& input : program.inputs) {
    if (input.kind != InputSpec::Kind::kTensorConstant) continue;
    if (const auto one = all.find(input.name); one != all.end()) found.insert(*one);
  }
  return found;
}

std::string_view Archive::sample_inputs(const std::string& model) {
  check_model(model);
  return text(fmt::format("data/sample_inputs/{}.pt", model));
}

std::string_view Archive::extra(const std::string& name) { return text("extra/" + name); }

std::string Archive::definition() {
  std::vector<std::pair<std::string, std::string_view>> entries;
  for (const ZipEntry& entry : zip_.entries()) {
    const std::string_view name = std::string_view(entry.name).substr(folder_.size());
    if (name.starts_with("data/sample_inputs/") || name == kFingerprint) continue;
    const bool is_weight = name.starts_with("data/weights/") && !name.ends_with(kJson);
    entries.emplace_back(entry.name, is_weight ? std::string_view() : zip_.bytes(entry));
  }
  entries.emplace_back(folder_ + std::string(kFingerprint), fingerprint_);
  return zip_bytes(entries);
}

}  // namespace gallop::model::exported
