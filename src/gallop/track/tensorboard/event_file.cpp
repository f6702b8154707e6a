#include "gallop/track/tensorboard/event_file.h"

#include <unistd.h>

#include <atomic>
#include <cstring>

#include <fmt/format.h>

#include "gallop/base/crc32c.h"
#include "gallop/base/error.h"
#include "gallop/base/hardware.h"
#include "gallop/base/protobuf.h"
#include "gallop/base/text.h"

namespace gallop::track::tensorboard {

namespace {

constexpr size_t kHead = sizeof(uint64_t) + sizeof(uint32_t);
constexpr size_t kTail = sizeof(uint32_t);
constexpr size_t kWrittenAtOnce = size_t{1} << 20;
constexpr size_t kLongest = size_t{1} << 30;
constexpr const char* kVersion = "brain.Event:2";
// TensorBoard reads files whose names contain "tfevents".
constexpr const char* kOwnEnding = ".gallop";

// Field numbers of TensorFlow's and TensorBoard's .proto files.
namespace event {
constexpr uint32_t kTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
}
namespace summary {
constexpr uint32_t kValue = 1;
}
namespace value {
constexpr uint32_t kTag = 1, kSimple = 2, kImage = 4, kTensor = 8, kMetadata = 9;
}
namespace image {
constexpr uint32_t kHeight = 1, kWidth = 2, kChannels = 3, kEncoded = 4;
}
namespace metadata {
constexpr uint32_t kPluginData = 1, kDataClass = 4;
constexpr uint64_t kTensorData = 2;
}  // namespace metadata
namespace plugin_data {
constexpr uint32_t kName = 1, kContent = 2;
}
namespace tensor {
constexpr uint32_t kType = 1, kShape = 2, kContent = 4, kFloats = 5, kDoubles = 6;
constexpr uint64_t kFloat = 1, kDouble = 2;
}  // namespace tensor
namespace shape {
constexpr uint32_t kDim = 2;
}
namespace dim {
constexpr uint32_t kSize = 1;
}
namespace hparams {
constexpr const char* kName = "hparams";
constexpr const char* kStartTag = "_hparams_/session_start_info";
constexpr const char* kEndTag = "_hparams_/session_end_info";
constexpr uint32_t kStart = 3, kEnd = 4;
constexpr uint32_t kOptions = 1, kStartTime = 5;  // Fields of the session start.
constexpr uint32_t kStatus = 1, kEndTime = 2;     // Fields of the session end.
constexpr uint32_t kKey = 1, kOption = 2;         // Fields of a map entry.
constexpr uint32_t kNumber = 2, kText = 3, kBool = 4;
}  // namespace hparams

uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8; }

template <typename Number>
std::string bytes_of(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

template <typename Number>
Number number_at(std::string_view bytes, size_t at) {
  Number number;
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

std::string message_of(const Option& option) {
  ProtobufWriter writer;
  if (const auto* truth = std::get_if<bool>(&option)) {
    writer.integer(hparams::kBool, *truth ? 1 : 0);
  } else if (const auto* number = std::get_if<double>(&option)) {
    writer.real(hparams::kNumber, *number);
  } else {
    writer.bytes(hparams::kText, std::get<std::string>(option));
  }
  return writer.message();
}

Option option_of(std::string_view message) {
  Option option = std::string();
  for (ProtobufReader reader(message); reader.next();) {
    if (reader.field() == hparams::kBool) option = reader.integer() != 0;
    if (reader.field() == hparams::kNumber) option = reader.real();
    if (reader.field() == hparams::kText) option = std::string(reader.bytes());
  }
  return option;
}

std::map<std::string, Option> options_of(std::string_view plugin_content) {
  std::map<std::string, Option> options;
  for (ProtobufReader content(plugin_content); content.next();) {
    if (content.field() != hparams::kStart) continue;
    for (ProtobufReader start(content.bytes()); start.next();) {
      if (start.field() != hparams::kOptions) continue;
      std::string key;
      Option option;
      for (ProtobufReader entry(start.bytes()); entry.next();) {
        if (entry.field() == hparams::kKey) key = entry.bytes();
        if (entry.field() == hparams::kOption) option = option_of(entry.bytes());
      }
      options[key] = option;
    }
  }
  return options;
}

Ending ending_of(std::string_view plugin_content) {
  for (ProtobufReader content(plugin_content); content.next();) {
    if (content.field() != hparams::kEnd) continue;
    for (ProtobufReader end(content.bytes()); end.next();) {
      if (end.field() != hparams::kStatus) continue;
      if (end.integer() == static_cast<uint64_t>(Ending::kFailure)) return Ending::kFailure;
      if (end.integer() == static_cast<uint64_t>(Ending::kRunning)) return Ending::kRunning;
    }
  }
  return Ending::kSuccess;
}

// The value of a scalar tensor; nothing for others.
std::optional<double> number_of_tensor(std::string_view message) {
  uint64_t type = 0;
  bool has_dims = false;
  std::string_view content;
  std::optional<double> number;
  for (ProtobufReader reader(message); reader.next();) {
    switch (reader.field()) {
      case tensor::kType: type = reader.integer(); break;
      case tensor::kShape:
        for (ProtobufReader dims(reader.bytes()); dims.next();) {
          has_dims = has_dims || dims.field() == shape::kDim;
        }
        break;
      case tensor::kContent: content = reader.bytes(); break;
      case tensor::kFloats:  // A packed list or a single value.
        number = reader.bytes().size() == sizeof(float) ? number_at<float>(reader.bytes(), 0)
                                                        : reader.real();
        break;
      case tensor::kDoubles:
        number = reader.bytes().size() == sizeof(double) ? number_at<double>(reader.bytes(), 0)
                                                         : reader.real();
        break;
      default: break;
    }
  }
  if (has_dims) return {};
  if (type == tensor::kFloat && content.size() == sizeof(float))
    return number_at<float>(content, 0);
  if (type == tensor::kDouble && content.size() == sizeof(double)) {
    return number_at<double>(content, 0);
  }
  return number;
}

struct Value {
  std::string tag, plugin;
  std::string_view plugin_content;
  std::optional<double> number;
};

Value read_value(std::string_view message) {
  Value result;
  for (ProtobufReader reader(message); reader.next();) {
    switch (reader.field()) {
      case value::kTag: result.tag = reader.bytes(); break;
      case value::kSimple: result.number = reader.real(); break;
      case value::kTensor: result.number = number_of_tensor(reader.bytes()); break;
      case value::kMetadata:
        for (ProtobufReader meta(reader.bytes()); meta.next();) {
          if (meta.field() != metadata::kPluginData) continue;
          for (ProtobufReader plugin(meta.bytes()); plugin.next();) {
            if (plugin.field() == plugin_data::kName) result.plugin = plugin.bytes();
            if (plugin.field() == plugin_data::kContent) result.plugin_content = plugin.bytes();
          }
        }
        break;
      default: break;
    }
  }
  return result;
}

/// Iterates over the events of a file.
class EventFinder {
 public:
  explicit EventFinder(std::string_view bytes) : bytes_(bytes) {}

  // Nothing at the end, or for an incomplete event.
  template <typename PassOver>
  std::optional<std::string_view> next(const PassOver& pass_over) {
    while (left() >= kHead) {
      const std::string what = mistake_at(at_);
      if (what.empty() && left() < size_at(at_)) return std::nullopt;
      if (what.empty()) {
        const std::string_view event = bytes_.substr(at_ + kHead, size_at(at_) - kHead - kTail);
        at_ += size_at(at_);
        return event;
      }
      const size_t begin = at_;
      find_whole_event();
      pass_over(Damage{begin, at_ - begin, what});
    }
    return std::nullopt;
  }
  size_t left() const { return bytes_.size() - at_; }

 private:
  // Includes header and footer.
  size_t size_at(size_t at) const {
    return kHead + static_cast<size_t>(number_at<uint64_t>(bytes_, at)) + kTail;
  }

  bool has_head(size_t at) const {
    const std::string_view size = bytes_.substr(at, sizeof(uint64_t));
    return number_at<uint32_t>(bytes_, at + size.size()) == masked(crc32c(size));
  }

  // Empty for none, also if the event extends beyond the end of the file.
  std::string mistake_at(size_t at) const {
    if (!has_head(at)) return "not an event file, or damaged";
    if (number_at<uint64_t>(bytes_, at) > kLongest) return "an event of more than 1 GiB";
    const size_t size = size_at(at);
    if (bytes_.size() - at < size) return {};
    const std::string_view event = bytes_.substr(at + kHead, size - kHead - kTail);
    const bool is_good = number_at<uint32_t>(bytes_, at + size - kTail) == masked(crc32c(event));
    return is_good ? std::string() : "a damaged event";
  }

  // Finds the next event with correct checksums, or the end. Limits the total work, as a file of
  // crafted headers would otherwise be checksummed repeatedly.
  void find_whole_event() {
    for (++at_; left() >= kHead; ++at_) {
      if (!has_head(at_) || number_at<uint64_t>(bytes_, at_) > kLongest) continue;
      const size_t size = size_at(at_);
      if (left() < size) continue;
      if (summed_ + size > kMostSums * bytes_.size()) break;
      summed_ += size;
      if (mistake_at(at_).empty()) return;
    }
    at_ = bytes_.size();
  }

  static constexpr size_t kMostSums = 4;
  std::string_view bytes_;
  size_t at_ = 0;
  size_t summed_ = 0;  // Bytes checksummed by find_whole_event().
};

}  // namespace

std::string event_file_name(double time) {
  static std::atomic<int> files = 0;
  return fmt::format("events.out.tfevents.{:010}.{}.{}.{}{}", static_cast<int64_t>(time),
                     host_name(), getpid(), files++, kOwnEnding);
}

bool is_own_event_file(const fs::path& file) { return file.extension() == kOwnEnding; }

EventFileWriter::EventFileWriter(const fs::path& path, double time) : file_(path) {
  ProtobufWriter first;
  first.real(event::kTime, time);
  first.bytes(event::kFileVersion, kVersion);
  write_event(first.message());
}

void EventFileWriter::write(const Scalar& scalar) {
  ProtobufWriter one;
  one.bytes(value::kTag, scalar.tag);
  one.real32(value::kSimple, static_cast<float>(scalar.value));
  write_value(one.message(), scalar.step, scalar.time);
}

// A tensor of left edge, right edge and count for each bucket.
void EventFileWriter::write(const Buckets& buckets) {
  constexpr uint64_t kColumns = 3;
  std::string numbers;
  for (const Bucket& bucket : buckets.buckets) {
    for (const double number : {bucket.left, bucket.right, bucket.count}) {
      numbers += bytes_of(number);
    }
  }
  ProtobufWriter rows, columns, dims, tensor, plugin, meta, one;
  rows.integer(dim::kSize, buckets.buckets.size());
  columns.integer(dim::kSize, kColumns);
  dims.bytes(shape::kDim, rows.message());
  dims.bytes(shape::kDim, columns.message());
  tensor.integer(tensor::kType, tensor::kDouble);
  tensor.bytes(tensor::kShape, dims.message());
  tensor.bytes(tensor::kContent, numbers);
  plugin.bytes(plugin_data::kName, "histograms");
  meta.bytes(metadata::kPluginData, plugin.message());
  meta.integer(metadata::kDataClass, metadata::kTensorData);
  one.bytes(value::kTag, buckets.tag);
  one.bytes(value::kTensor, tensor.message());
  one.bytes(value::kMetadata, meta.message());
  write_value(one.message(), buckets.step, buckets.time);
}

void EventFileWriter::write(const Picture& picture) {
  ProtobufWriter content, one;
  content.integer(image::kHeight, static_cast<uint64_t>(picture.height));
  content.integer(image::kWidth, static_cast<uint64_t>(picture.width));
  content.integer(image::kChannels, static_cast<uint64_t>(picture.channels));
  content.bytes(image::kEncoded, picture.png);
  one.bytes(value::kTag, picture.tag);
  one.bytes(value::kImage, content.message());
  write_value(one.message(), picture.step, picture.time);
}

void EventFileWriter::write_value(std::string_view value, int64_t step, double time) {
  ProtobufWriter values;
  values.bytes(summary::kValue, value);
  ProtobufWriter event;
  event.real(event::kTime, time);
  event.integer(event::kStep, static_cast<uint64_t>(step));
  event.bytes(event::kSummary, values.message());
  write_event(event.message());
}

void EventFileWriter::write_options(const std::map<std::string, Option>& options, double time) {
  ProtobufWriter start;
  for (const auto& [key, option] : options) {
    ProtobufWriter entry;
    entry.bytes(hparams::kKey, key);
    entry.bytes(hparams::kOption, message_of(option));
    start.bytes(hparams::kOptions, entry.message());
  }
  start.real(hparams::kStartTime, time);
  ProtobufWriter content;
  content.bytes(hparams::kStart, start.message());
  write_plugin(hparams::kStartTag, content.message(), time);
}

void EventFileWriter::write_end(Ending ending, double time) {
  ProtobufWriter end;
  end.integer(hparams::kStatus, static_cast<uint64_t>(ending));
  end.real(hparams::kEndTime, time);
  ProtobufWriter content;
  content.bytes(hparams::kEnd, end.message());
  write_plugin(hparams::kEndTag, content.message(), time);
}

void EventFileWriter::write_plugin(const char* tag, std::string_view content, double time) {
  ProtobufWriter plugin;
  plugin.bytes(plugin_data::kName, hparams::kName);
  plugin.bytes(plugin_data::kContent, content);
  ProtobufWriter meta;
  meta.bytes(metadata::kPluginData, plugin.message());
  // TensorBoard requires a tensor here; it is empty.
  ProtobufWriter none, dims;
  none.integer(dim::kSize, 0);
  dims.bytes(shape::kDim, none.message());
  ProtobufWriter empty;
  empty.integer(tensor::kType, tensor::kFloat);
  empty.bytes(tensor::kShape, dims.message());
  ProtobufWriter one;
  one.bytes(value::kTag, tag);
  one.bytes(value::kTensor, empty.message());
  one.bytes(value::kMetadata, meta.message());
  write_value(one.message(), /*step=*/0, time);
}

void EventFileWriter::write_event(std::string_view event) {
  const std::string size = bytes_of(uint64_t{event.size()});
  waiting_ += size + bytes_of(masked(crc32c(size)));
  waiting_ += event;
  waiting_ += bytes_of(masked(crc32c(event)));
  if (waiting_.size() < kWrittenAtOnce) return;
  file_.write(waiting_);
  waiting_.clear();
}

void EventFileWriter::finish() {
  file_.write(waiting_);
  waiting_.clear();
  file_.finish();
}

int64_t read_event(std::string_view message, const EventVisitor& visitor) {
  Scalar scalar;
  std::vector<Value> values;
  for (ProtobufReader reader(message); reader.next();) {
    if (reader.field() == event::kTime) scalar.time = reader.real();
    if (reader.field() == event::kStep) scalar.step = static_cast<int64_t>(reader.integer());
    if (reader.field() != event::kSummary) continue;
    for (ProtobufReader parts(reader.bytes()); parts.next();) {
      if (parts.field() == summary::kValue) values.push_back(read_value(parts.bytes()));
    }
  }
  int64_t left_out = 0;
  for (Value& one : values) {
    if (one.plugin == hparams::kName) {
      if (one.tag == hparams::kStartTag && visitor.options) {
        visitor.options(options_of(one.plugin_content));
      } else if (one.tag == hparams::kEndTag && visitor.end) {
        visitor.end(ending_of(one.plugin_content));
      }
    } else if (one.number && (one.plugin.empty() || one.plugin == "scalars")) {
      scalar.tag = std::move(one.tag);
      scalar.value = *one.number;
      if (visitor.scalar) visitor.scalar(scalar);
    } else {
      ++left_out;
    }
  }
  return left_out;
}

int64_t read_event_file(const fs::path& path, const EventVisitor& visitor) {
  const MappedFile file(path);
  EventFinder events(file.bytes());
  int64_t left_out = 0, read = 0;
  const auto pass_over = [&](const Damage& damage) {
    const bool is_no_file = read == 0 && damage.at + damage.bytes == file.bytes().size();
    if (visitor.damaged && !is_no_file) return visitor.damaged(damage);
    throw DataError(
        fmt::format("{}: {} at byte {}", printable(path.string()), damage.what, damage.at));
  };
  while (const auto event = events.next(pass_over)) {
    try {
      left_out += read_event(*event, visitor);
      ++read;
    } catch (const DataError& error) {
      const auto at = static_cast<size_t>(event->data() - file.bytes().data()) - kHead;
      pass_over({at, kHead + event->size() + kTail, error.what()});
    }
  }
  if (events.left() > 0 && visitor.torn) visitor.torn(events.left());
  return left_out;
}

}  // namespace gallop::track::tensorboard
