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

/// A number at a step, as TensorBoard draws it.
struct Scalar {
  std::string tag;  ///< "train/loss": what stands before a slash is a group.
  int64_t step = 0;
  double time = 0;   ///< Seconds since 1970.
  double value = 0;  ///< Files keep 32 bits of it.
};

/// So many values between two numbers.
struct Bucket {
  double left = 0, right = 0, count = 0;
};

/// Values at a step, as TensorBoard's page of histograms draws them.
struct Buckets {
  std::string tag;
  int64_t step = 0;
  double time = 0;
  std::vector<Bucket> buckets;  ///< Side by side.
};

/// A picture at a step.
struct Picture {
  std::string tag;
  int64_t step = 0;
  double time = 0;
  int width = 0, height = 0, channels = 0;
  std::string png;  ///< The content of its file.
};

/// An option of a run.
using Option = std::variant<bool, double, std::string>;

/// How a run ended, for the table of options.
enum class Ending : uint8_t { kSuccess = 1, kFailure = 2, kRunning = 3 };

/// The name of a new file of events that TensorBoard looks for.
std::string event_file_name(double time);

/// Writes a file of events: records of length, data and CRC-32C's, as TensorFlow's TFRecord, each
/// an Event of Protocol Buffers.
class EventFileWriter {
 public:
  /// `time`: of its first record. Throws DeviceError.
  EventFileWriter(const fs::path& path, double time);

  void write(const Scalar& scalar);
  void write(const Buckets& buckets);
  void write(const Picture& picture);
  /// The run's row in the table of options (plugin hparams).
  void write_options(const std::map<std::string, Option>& options, double time);
  void write_end(Ending ending, double time);
  /// Writes what is left and makes it durable. Throws DeviceError.
  void finish();

 private:
  void write_event(std::string_view event);
  void write_value(std::string_view value, int64_t step, double time);
  void write_plugin(const char* tag, std::string_view content, double time);

  FileWriter file_;
  std::string waiting_;
};

/// Bytes of a file of events that are none, or an event with a wrong checksum or content.
struct Damage {
  size_t at = 0;  ///< In the file.
  size_t bytes = 0;
  std::string what;
};

/// What of a file of events is read; the rest (images, graphs, ...) is passed over and counted.
struct EventVisitor {
  std::function<void(const Scalar&)> scalar;
  std::function<void(const std::map<std::string, Option>&)> options;
  std::function<void(Ending)> end;
  std::function<void(size_t bytes)> torn{};  ///< So many bytes of an event that is not whole.
  /// Called for each damage that is passed over; null: the first one is an error.
  std::function<void(const Damage&)> damaged{};
};

/// Reads a file of events, also one that is being written: what is torn at its end is no error.
/// Behind a damage it goes on with the next whole event. Returns how many values were passed over.
/// Throws DataError, which names the file and the place, where there is no event at all, and where
/// a damage is not to be passed over.
int64_t read_event_file(const fs::path& path, const EventVisitor& visitor);

/// The same for one event, a message without length and checksums.
int64_t read_event(std::string_view message, const EventVisitor& visitor);

}  // namespace gallop::track::tensorboard
