// A custom reader: PCM WAV files as signals of fixed length, PATH/CLASS/NAME.wav.
#include "gallop/app/plugin.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/data/data_config.h"
#include "gallop/data/data_module.h"

namespace wav {
using namespace gallop;

/// Reads little-endian integers of a file that may be damaged.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}
  std::string_view take(size_t count) {
    if (count > bytes_.size()) throw DataError("the file ends too early");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  uint32_t number(size_t count) {
    uint32_t value = 0;
    for (size_t i = 0; const char c : take(count)) {
      value |= uint32_t{static_cast<uint8_t>(c)} << (8 * i++);
    }
    return value;
  }
  bool empty() const { return bytes_.empty(); }
  size_t size() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
};

/// The first `length` samples in -1 to 1, the mean of all channels; zeros follow a shorter signal.
std::vector<float> parse(std::string_view file, size_t length) {
  constexpr uint32_t kPcm = 1, kExtensible = 0xFFFE;
  Bytes bytes(file);
  if (bytes.take(4) != "RIFF") throw DataError("is not a WAV file");
  bytes.take(4);
  if (bytes.take(4) != "WAVE") throw DataError("is not a WAV file");
  uint32_t channels = 0, bits = 0;
  while (!bytes.empty()) {
    const std::string_view kind = bytes.take(4);
    const uint32_t size = bytes.number(4);
    if (kind == "fmt ") {
      Bytes format(bytes.take(size));
      const uint32_t code = format.number(2);
      channels = format.number(2);
      format.take(10);  // Sampling rate, bytes per second, bytes per frame.
      bits = format.number(2);
      if ((code != kPcm && code != kExtensible) || channels == 0 || bits == 0 || bits % 8 != 0 ||
          bits > 32) {
        throw DataError(
            fmt::format("format {} with {} channels of {} bits is not read; convert it "
                        "to PCM of 8, 16, 24 or 32 bits",
                        code, channels, bits));
      }
    } else if (kind == "data") {
      if (channels == 0) throw DataError("has no format before its data");
      // A recorder that was stopped leaves a size beyond the file.
      Bytes data(bytes.take(std::min<size_t>(size, bytes.size())));
      const size_t frame_bytes = size_t{channels} * bits / 8;
      const size_t frames = std::min(length, data.size() / frame_bytes);
      std::vector<float> signal(length, 0.0F);
      for (size_t frame = 0; frame < frames; ++frame) {
        double sum = 0;
        for (uint32_t channel = 0; channel < channels; ++channel) {
          // Aligned at the sign bit; 8 bits are stored as unsigned.
          uint32_t value = data.number(bits / 8) << (32 - bits);
          if (bits == 8) value ^= 0x80000000U;
          sum += static_cast<double>(static_cast<int32_t>(value)) / 2147483648.0;
        }
        signal[frame] = static_cast<float>(sum / channels);
      }
      return signal;
    } else {
      bytes.take(std::min<size_t>(size + size % 2, bytes.size()));
    }
  }
  throw DataError("has no data");
}

class Signals final : public data::Samples {
 public:
  explicit Signals(int64_t length)
      : Samples({{.name = "signal", .shape = {.sizes = {length}}},
                 {.name = "label", .shape = {.dtype = c10::ScalarType::Long}}}),
        length_(length) {}

  void add(fs::path file, int64_t label) {
    files_.push_back(std::move(file));
    labels_.push_back(label);
  }

  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  bool every_target_counts() const override { return true; }
  std::optional<int64_t> label(int64_t index) const override { return labels_[index]; }
  std::string describe(int64_t index) const override { return files_[index].string(); }
  bool fill(int64_t index, int64_t /*epoch*/, const data::SampleRow& row,
            data::Scratch&) const override {
    try {
      const auto signal = parse(read_file(files_[index]), static_cast<size_t>(length_));
      std::copy(signal.begin(), signal.end(), row.as<float>(0));
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: {}", describe(index), error.what()));
    }
    *row.as<int64_t>(1) = labels_[index];
    return true;
  }

 private:
  int64_t length_;
  std::vector<fs::path> files_;
  std::vector<int64_t> labels_;
};

struct WavConfig {
  int64_t length = 16000;
};
void visit(config::Visitor& visitor, WavConfig& config) {
  visitor.field({.name = "length", .help = "samples of each signal; longer ones are cut", .min = 1},
                config.length);
}

std::vector<fs::path> sorted_entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder)) entries.push_back(entry.path());
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::unique_ptr<data::DataModule> open(const WavConfig& config, const data::DataContext& context) {
  const fs::path root = context.config.path;
  if (!fs::is_directory(root)) {
    throw DataError(fmt::format("data.path: there is no folder '{}'", root.string()));
  }
  auto module = std::make_unique<data::DataModule>();
  module->signature.kind = "numbers";
  module->signature.task = data::choose_task(context.config, {"classification"});
  for (int64_t i = 0; i < config.length; ++i) {
    module->signature.columns.push_back(fmt::format("signal[{}]", i));
  }
  auto signals = std::make_unique<Signals>(config.length);
  for (const fs::path& folder : sorted_entries(root)) {
    if (!fs::is_directory(folder)) continue;
    const auto label = static_cast<int64_t>(module->signature.classes.size());
    module->signature.classes.push_back(folder.filename().string());
    for (const fs::path& file : sorted_entries(folder)) {
      if (file.extension() == ".wav") signals->add(file, label);
    }
  }
  if (signals->size() == 0) {
    throw DataError(fmt::format("{}: has no files CLASS/NAME.wav", root.string()));
  }
  module->files.push_back(root.string());
  module->train = std::move(signals);
  return module;
}

void register_components(Registries& registries) {
  registries.data_modules.add(
      "wav", "PCM WAV files as signals of fixed length, a folder for each class", open);
}

}  // namespace wav

GALLOP_PLUGIN("wav-reader", wav::register_components)
