#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track::tensorboard {

/// A scalar at a step.
struct Scalar {
  std::string tag;  ///< "train/loss": the part before the slash is a group.
  int64_t step = 0;
  double time = 0;   ///< Seconds since 1970.
  double value = 0;  ///< Files store 32 bits of it.
};

/// The count of values between two bounds.
struct Bucket {
  double left = 0, right = 0, count = 0;
};

/// A histogram at a step.
struct Buckets {
  std::string tag;
  int64_t step = 0;
  double time = 0;
  std::vector<Bucket> buckets;  ///< Adjacent.
};

/// An image at a step.
struct Picture {
  std::string tag;
  int64_t step = 0;
  double time = 0;
  int width = 0, height = 0, channels = 0;
  std::string png;  ///< The PNG file's content.
};

/// An option of a run.
using Option = std::variant<bool, double, std::string>;

/// The status of a run in the hparams table.
enum class Ending : uint8_t { kSuccess = 1, kFailure = 2, kRunning = 3 };

/// The name of a new event file, which TensorBoard recognizes.
std::string event_file_name(double time);
/// Whether a file has such a name, so that another program has not written it.
bool is_own_event_file(const fs::path& file);

/// Writes an event file: TFRecords (length, data, CRC-32C), each a Protocol Buffers Event.
class EventFileWriter {
 public:
  /// `time`: time of the first record. Throws DeviceError.
  EventFileWriter(const fs::path& path, double time);

  void write(const Scalar& scalar);
  void write(const Buckets& buckets);
  void write(const Picture& picture);
  /// Writes the run's row of the hparams table.
  void write_options(const std::map<std::string, Option>& options, double time);
  void write_end(Ending ending, double time);
  /// Flushes and syncs the file. Throws DeviceError.
  void finish();

 private:
  void write_event(std::string_view event);
  void write_value(std::string_view value, int64_t step, double time);
  void write_plugin(const char* tag, std::string_view content, double time);

  FileWriter file_;
  std::string waiting_;
};

/// A damaged part of an event file: invalid bytes, or an event with a wrong checksum or content.
struct Damage {
  size_t at = 0;  ///< Offset in the file.
  size_t bytes = 0;
  std::string what;
};

/// Callbacks for the supported content of an event file; other content is counted and skipped.
struct EventVisitor {
  std::function<void(const Scalar&)> scalar;
  std::function<void(const std::map<std::string, Option>&)> options;
  std::function<void(Ending)> end;
  std::function<void(size_t bytes)> torn{};  ///< Bytes of an incomplete event at the end.
  /// Called for each skipped damage; null: the first one is an error.
  std::function<void(const Damage&)> damaged{};
};

/// Reads an event file, which may still be written: a torn event at its end is not an error. After
/// damage, continues with the next intact event. Returns the number of skipped values. Throws
/// DataError with the file's name and offset if there is no event at all, or for damage that must
/// not be skipped.
int64_t read_event_file(const fs::path& path, const EventVisitor& visitor);

/// The same for one event, a message without length and checksums.
int64_t read_event(std::string_view message, const EventVisitor& visitor);

}  // namespace gallop::track::tensorboard
