#include "gallop/train/checkpoint.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iterator>
#include <memory>
#include <set>
#include <sstream>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/checked.h"
#include "gallop/base/device_error.h"
#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/base/text.h"
#include "gallop/optim/average.h"
#include "gallop/tensor/safetensors.h"
#include "gallop/train/manifest.h"
#include "gallop/train/progress.h"
#include "gallop/train/replica_state.h"
#include "gallop/train/slice_files.h"

namespace gallop::train {

namespace {

constexpr const char* kModel = "model";
constexpr const char* kState = "state";
constexpr const char* kTrainer = "trainer.json";
constexpr const char* kManifest = "manifest.json";
constexpr const char* kLatest = "latest";
constexpr const char* kBest = "best";
constexpr const char* kSnapshots = "snapshots";
constexpr const char* kPrefixes = "beginnings";
constexpr const char* kPrefix = "step-";
constexpr const char* kTemporary = ".tmp-";
constexpr const char* kOwn = "own.";
constexpr const char* kAdopted = "adopted";  // An entry of TrainingState::trainer.

std::string name_of(const fs::path& path) { return printable(path.string()); }

Manifest open_manifest(const fs::path& folder) {
  Manifest manifest = read_manifest(folder / kManifest);
  if (!count_slices(manifest.files)) {
    throw DataError(
        fmt::format("{}: lists other files than a checkpoint's", name_of(folder / kManifest)));
  }
  return manifest;
}

NamedTensors read_all(const CheckpointInfo& checkpoint, const Manifest& manifest,
                      const char* kind) {
  return read_slices(checkpoint.folder, slice_names(kind, *count_slices(manifest.files)), manifest,
                     checkpoint.is_verified);
}

// Removes the rank state from `tensors` and returns it.
NamedTensors take_own(NamedTensors& tensors) {
  const auto own = std::stable_partition(
      tensors.begin(), tensors.end(), [](const auto& one) { return !one.name.starts_with(kOwn); });
  NamedTensors taken(std::make_move_iterator(own), std::make_move_iterator(tensors.end()));
  tensors.erase(own, tensors.end());
  return taken;
}

std::map<std::string, std::string> parse_trainer(const MappedFile& file) {
  try {
    return nlohmann::json::parse(file.bytes()).get<std::map<std::string, std::string>>();
  } catch (const nlohmann::json::exception&) {
    throw DataError(fmt::format("{}: is not a map from strings to strings", name_of(file.path())));
  }
}

int64_t bytes_in_file(const NamedTensors& tensors) {
  constexpr int64_t kHeaderBytes = 256;  // Per tensor, besides its name; rarely over 100.
  int64_t bytes = bytes_of(tensors);
  for (const auto& one : tensors) bytes += static_cast<int64_t>(one.name.size()) + kHeaderBytes;
  return bytes;
}

int64_t bytes_needed(const TrainingState& state) {
  constexpr int64_t kRest = int64_t{64} << 10;  // Manifest, pointers and folders.
  int64_t bytes = bytes_in_file(state.model) + bytes_in_file(state.optimizer) +
                  bytes_in_file(state.own) + kRest;
  for (const auto& [name, text] : state.trainer) {
    bytes += static_cast<int64_t>(name.size() + text.size());
  }
  return bytes;
}

void check_free_space(const fs::path& folder, int64_t needed) {
  struct statvfs info = {};
  // If the file system cannot report it, writing fails instead.
  if (statvfs(folder.c_str(), &info) != 0) return;
  const auto free = checked_multiply<uint64_t>(info.f_bavail, info.f_frsize);
  if (!free || *free >= static_cast<uint64_t>(needed)) return;
  throw DeviceError(fmt::format("{}: only {} are free", name_of(folder),
                                format_bytes(static_cast<int64_t>(*free))));
}

CheckpointInfo info_of(const fs::path& folder) {
  const Manifest manifest = open_manifest(folder);
  CheckpointInfo info{.folder = folder, .step = manifest.step, .sequence = manifest.sequence};
  for (const auto& [name, file] : manifest.files) {
    std::error_code error;
    const auto bytes = fs::file_size(folder / name, error);
    if (error || bytes != static_cast<uintmax_t>(file.bytes)) {
      throw DataError(fmt::format("{}: missing or damaged: {} bytes were written",
                                  name_of(folder / name), file.bytes));
    }
    info.bytes += file.bytes;
  }
  return info;
}

WrittenFile write_text(const fs::path& path, std::string_view text) {
  FileWriter writer(path);
  writer.write(text);
  writer.finish();
  return {.bytes = static_cast<int64_t>(text.size()), .xxh3_128 = xxh3_128(text)};
}

bool is_intact(const CheckpointInfo& checkpoint) {
  try {
    CheckpointStore::verify(checkpoint);
    return true;
  } catch (const DataError&) {
    return false;
  }
}

// Returns a folder name for a step that may have been reached before, if the run has gone back
// since. The older folder remains until retention removes it.
fs::path free_name(const fs::path& folder, int64_t step) {
  const std::string name = fmt::format("{}{:08}", kPrefix, step);
  fs::path target = folder / name;
  for (int again = 2; fs::exists(target); ++again) {
    target = folder / fmt::format("{}.{}", name, again);
  }
  return target;
}

// What cannot be removed now is retried at the next save.
void remove_quietly(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// The state for an optimizer that keeps more or fewer tensors per weight than the saved one, as SGD
// with and without momentum. Missing tensors keep their initial values, and those that are second
// copies of the model's tensors become copies of the saved ones. If neither set of names contains
// the other, `given` is returned unchanged, and loading it fails.
NamedTensors fitted(NamedTensors given, const NamedTensors& wanted, const NamedTensors& model) {
  std::set<std::string> there, needed;
  for (const auto& [name, tensor] : given) there.insert(name);
  for (const auto& [name, tensor] : wanted) needed.insert(name);
  if (std::includes(there.begin(), there.end(), needed.begin(), needed.end())) {
    std::erase_if(given, [&](const NamedTensor& one) { return !needed.contains(one.name); });
  } else if (std::includes(needed.begin(), needed.end(), there.begin(), there.end())) {
    for (const NamedTensor& one : wanted) {
      if (there.contains(one.name)) continue;
      const at::Tensor* const original = find_tensor(model, optim::tensor_copied_by(one.name));
      given.push_back(original == nullptr
                          ? one
                          : NamedTensor{one.name, original->to(one.tensor.scalar_type())});
    }
  }
  return given;
}

// Tensors of which a process has a part are handed on as they were saved.
void take_in_place_of_meta(const NamedTensors& saved, NamedTensors& into) {
  for (auto& [name, tensor] : into) {
    if (tensor.is_meta()) tensor = *find_tensor(saved, name);
  }
}

}  // namespace

std::map<std::string, std::string> slice_metadata() { return {{"format", "pt"}}; }

std::string rank_state_name(int rank, const std::string& name) {
  return fmt::format("{}{}.{}", kOwn, rank, name);
}

void or_tell_bytes(const CheckpointDraft& draft, const std::function<void()>& function) {
  try {
    function();
  } catch (const DeviceError& error) {
    remove_quietly(draft.folder);
    throw DeviceError(
        fmt::format("{}; a checkpoint needs {}. Make room there; older checkpoints are untouched",
                    error.what(), format_bytes(draft.bytes)));
  } catch (...) {
    remove_quietly(draft.folder);
    throw;
  }
}

fs::path slice_path(const CheckpointDraft& draft, SliceKind kind, int slice) {
  const char* const name = kind == SliceKind::kModel ? kModel : kState;
  return draft.folder / slice_names(name, draft.slices)[static_cast<size_t>(slice)];
}

CheckpointStore::CheckpointStore(fs::path folder, const CheckpointConfig& config)
    : folder_(std::move(folder)), config_(config) {
  if (config_.keep_last < 1) {
    throw UsageError(fmt::format("keep_last must be at least 1, not {}", config_.keep_last));
  }
}

CheckpointInfo CheckpointStore::save(const TrainingState& state, int64_t step, bool best) {
  const CheckpointDraft draft = draft_of(state, step);
  begin(draft);
  return publish(draft, write_slice(draft, state, 0), state.trainer, best);
}

fs::path CheckpointStore::draft_folder(int64_t step) const {
  return folder_ / fmt::format("{}{}{:08}", kTemporary, kPrefix, step);
}

CheckpointDraft CheckpointStore::draft_of(const TrainingState& state, int64_t step) const {
  return {.folder = draft_folder(step), .step = step, .slices = 1, .bytes = bytes_needed(state)};
}

void CheckpointStore::begin(const CheckpointDraft& draft) const {
  or_tell_bytes(draft, [&] {
    make_folders(folder_);
    remove_remains();
    check_free_space(folder_, draft.bytes);
    make_folders(draft.folder);
  });
}

WrittenFiles CheckpointStore::write_slice(const CheckpointDraft& draft, const TrainingState& state,
                                          int slice) {
  WrittenFiles files;
  or_tell_bytes(draft, [&] {
    for (const auto& [kind, tensors] : {std::pair(SliceKind::kModel, &state.model),
                                        std::pair(SliceKind::kState, &state.optimizer)}) {
      const fs::path path = slice_path(draft, kind, slice);
      files[path.filename().string()] = write_safetensors(path, *tensors, slice_metadata());
    }
  });
  return files;
}

CheckpointInfo CheckpointStore::publish(const CheckpointDraft& draft, WrittenFiles files,
                                        const std::map<std::string, std::string>& trainer,
                                        bool best) {
  using nlohmann::json;
  const auto existing = list();
  Manifest manifest{.sequence = existing.empty() ? 1 : existing.front().sequence + 1,
                    .step = draft.step,
                    .files = std::move(files)};
  const fs::path target = free_name(folder_, draft.step);
  or_tell_bytes(draft, [&] {
    manifest.files[kTrainer] =
        write_text(draft.folder / kTrainer,
                   json(trainer).dump(1, ' ', false, json::error_handler_t::replace) + "\n");
    write_text(draft.folder / kManifest, render_manifest(manifest));
    sync_folder(draft.folder);
    if (std::rename(draft.folder.c_str(), target.c_str()) != 0) {
      throw_device_error(target, "create", errno);
    }
    sync_folder(folder_);
    const std::string pointer = target.filename().string() + "\n";
    // In this order, so that a run that continues from the latest checkpoint knows the best one.
    if (best) write_file_atomically(folder_ / kBest, pointer);
    write_file_atomically(folder_ / kLatest, pointer);
  });
  remove_old();
  int64_t bytes = 0;
  for (const auto& [name, file] : manifest.files) bytes += file.bytes;
  return {.folder = target, .step = draft.step, .sequence = manifest.sequence, .bytes = bytes};
}

CheckpointInfo CheckpointStore::adopt(const CheckpointInfo& other) {
  auto trainer = read_trainer(other);
  Progress::forget_checkpoints(trainer);
  forget_replicas(trainer);
  trainer[kAdopted] = "true";
  return copy(other, trainer, false);
}

CheckpointInfo CheckpointStore::take_over(const CheckpointInfo& other, bool best) {
  return copy(other, read_trainer(other), best);
}

CheckpointInfo CheckpointStore::copy(const CheckpointInfo& other,
                                     const std::map<std::string, std::string>& trainer, bool best) {
  const Manifest manifest = open_manifest(other.folder);
  const CheckpointDraft draft{
      .folder = draft_folder(other.step), .step = other.step, .bytes = other.bytes};
  begin(draft);
  WrittenFiles files = manifest.files;
  files.erase(kTrainer);
  or_tell_bytes(draft, [&] {
    for (const auto& [name, file] : files) {
      const auto source = open_verified(other.folder, manifest, name);
      std::error_code error;
      fs::create_hard_link(source->path(), draft.folder / name, error);
      if (error) write_text(draft.folder / name, source->bytes());
    }
  });
  return publish(draft, std::move(files), trainer, best);
}

void CheckpointStore::load(const CheckpointInfo& checkpoint, TrainingState& state) const {
  const Manifest manifest = open_manifest(checkpoint.folder);
  const NamedTensors model = read_all(checkpoint, manifest, kModel);
  NamedTensors optimizer = read_all(checkpoint, manifest, kState);
  NamedTensors own = take_own(optimizer);
  auto trainer = parse_trainer(*open_verified(checkpoint.folder, manifest, kTrainer));
  if (trainer.erase(kAdopted) > 0) {
    optimizer = fitted(std::move(optimizer), state.optimizer, model);
  }
  const std::string problems =
      differences(model, state.model) + differences(optimizer, state.optimizer);
  if (!problems.empty()) {
    throw UsageError(fmt::format("{} does not fit the recipe that it is loaded into:{}",
                                 name_of(checkpoint.folder), problems));
  }
  copy_by_name(model, checkpoint.folder.string(), state.model);
  copy_by_name(optimizer, checkpoint.folder.string(), state.optimizer);
  take_in_place_of_meta(model, state.model);
  take_in_place_of_meta(optimizer, state.optimizer);
  state.trainer = std::move(trainer);
  state.own = std::move(own);
}

NamedTensors CheckpointStore::read_model(const CheckpointInfo& checkpoint) const {
  return read_all(checkpoint, open_manifest(checkpoint.folder), kModel);
}

NamedTensors CheckpointStore::load_model(const CheckpointInfo& checkpoint,
                                         NamedTensors model) const {
  NamedTensors weights = read_model(checkpoint);
  std::set<std::string> wide;
  for (const auto& [name, tensor] : model) {
    if (tensor.scalar_type() == at::kFloat) wide.insert(name);
  }
  for (auto& [name, tensor] : weights) {
    const bool is_narrow = tensor.scalar_type() == at::kBFloat16;
    if (is_narrow && wide.contains(name)) tensor = tensor.to(at::kFloat);
  }
  copy_by_name(weights, checkpoint.folder.string(), model);
  take_in_place_of_meta(weights, model);
  return model;
}

std::map<std::string, std::string> CheckpointStore::read_trainer(
    const CheckpointInfo& checkpoint) const {
  return parse_trainer(
      *open_verified(checkpoint.folder, open_manifest(checkpoint.folder), kTrainer));
}

void CheckpointStore::verify(const CheckpointInfo& checkpoint) {
  const Manifest manifest = open_manifest(checkpoint.folder);
  for (const auto& [name, file] : manifest.files) open_verified(checkpoint.folder, manifest, name);
}

std::string CheckpointStore::model_checksum(const CheckpointInfo& checkpoint) const {
  const WrittenFiles files = open_manifest(checkpoint.folder).files;
  std::string sums;
  for (const auto& name : slice_names(kModel, *count_slices(files))) {
    sums += files.at(name).xxh3_128;
  }
  return files.size() == 3 ? sums : xxh3_128(sums);
}

std::vector<CheckpointInfo> CheckpointStore::list() const {
  std::vector<CheckpointInfo> entries;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    try {
      entries.push_back(info_of(entry.path()));
    } catch (const DataError&) {
      continue;  // Incomplete checkpoints are not listed.
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.sequence > b.sequence; });
  return entries;
}

std::optional<CheckpointInfo> CheckpointStore::newest() const {
  if (const auto target = follow(kLatest)) return info_of(*target);
  const auto entries = list();
  if (entries.empty()) return std::nullopt;
  return entries.front();
}

std::optional<CheckpointInfo> CheckpointStore::newest_intact(
    const std::function<void(const std::string& line)>& on_damage) const {
  std::optional<DataError> damage;
  const auto is_intact = [&](const auto& find) -> std::optional<CheckpointInfo> {
    try {
      std::optional<CheckpointInfo> one = find();
      if (one) verify(*one);
      if (one) one->is_verified = true;
      return one;
    } catch (const DataError& error) {
      if (!damage) damage = error;
      on_damage(error.what());
      return {};
    }
  };
  const auto pointed_at = follow(kLatest);
  if (pointed_at) {
    if (auto one = is_intact([&] { return std::optional(info_of(*pointed_at)); })) return one;
  }
  for (const CheckpointInfo& entry : list()) {
    if (entry.folder == pointed_at) continue;
    if (auto one = is_intact([&] { return std::optional(entry); })) return one;
  }
  if (damage) throw DataError(*damage);
  return {};
}

std::optional<CheckpointInfo> CheckpointStore::best() const {
  const auto target = follow(kBest);
  return target ? std::optional(info_of(*target)) : std::nullopt;
}

void CheckpointStore::keep(const CheckpointInfo& checkpoint, Kept why) {
  const char* const pointer = why == Kept::kSnapshot ? kSnapshots : kPrefixes;
  std::string names;
  for (const fs::path& folder : follow_all(pointer)) {
    if (folder == checkpoint.folder) return;
    names += folder.filename().string() + "\n";
  }
  write_file_atomically(folder_ / pointer, names + checkpoint.folder.filename().string() + "\n");
}

std::optional<CheckpointInfo> CheckpointStore::of_step(int64_t step) const {
  for (const CheckpointInfo& entry : list()) {
    if (entry.step == step) return entry;
  }
  return std::nullopt;
}

std::vector<CheckpointInfo> CheckpointStore::snapshots() const {
  std::vector<CheckpointInfo> kept;
  for (const fs::path& folder : follow_all(kSnapshots)) kept.push_back(info_of(folder));
  return kept;
}

std::vector<fs::path> CheckpointStore::follow_all(const char* pointer) const {
  constexpr int64_t kMaxBytes = 1 << 20;
  std::istringstream lines;
  try {
    lines.str(read_file(folder_ / pointer, kMaxBytes));
  } catch (const DataError&) {
    return {};
  }
  std::vector<fs::path> folders;
  for (std::string name; std::getline(lines, name);) {
    // A pointer contains the name of a sibling folder, never a path.
    if (!name.starts_with(kPrefix) || name.find('/') != std::string::npos) continue;
    std::error_code error;
    if (fs::is_directory(folder_ / name, error)) folders.push_back(folder_ / name);
  }
  return folders;
}

std::optional<fs::path> CheckpointStore::follow(const char* pointer) const {
  const auto folders = follow_all(pointer);
  return folders.empty() ? std::nullopt : std::optional(folders.front());
}

void CheckpointStore::remove_remains() const {
  std::vector<fs::path> remains;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    const std::string name = entry.path().filename().string();
    if (name.find(kTemporary) != std::string::npos) remains.push_back(entry.path());
  }
  for (const fs::path& path : remains) remove_quietly(path);
}

void CheckpointStore::remove_old() const {
  std::vector<fs::path> pinned = follow_all(kSnapshots);
  for (fs::path& folder : follow_all(kPrefixes)) pinned.push_back(std::move(folder));
  if (const auto best_folder = follow(kBest)) pinned.push_back(*best_folder);
  if (const auto one = of_step(pinned_step_)) pinned.push_back(one->folder);
  const auto all = list();
  if (static_cast<int64_t>(all.size()) <= config_.keep_last) return;
  int64_t kept = 0;
  for (const CheckpointInfo& entry : all) {
    if (kept < config_.keep_last) {
      kept += is_intact(entry) ? 1 : 0;
      continue;
    }
    if (std::find(pinned.begin(), pinned.end(), entry.folder) != pinned.end()) continue;
    // Renamed first, so that a half-removed folder is never taken for a checkpoint.
    const fs::path doomed = folder_ / (kTemporary + ("old-" + entry.folder.filename().string()));
    std::error_code error;
    fs::rename(entry.folder, doomed, error);
    if (!error) remove_quietly(doomed);
  }
}

}  // namespace gallop::train
