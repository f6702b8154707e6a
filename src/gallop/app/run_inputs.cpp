#include "gallop/app/run_inputs.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::app {

void visit(config::Visitor& visitor, RunInputs& inputs) {
  visitor.field({.name = "kind", .help = "what goes in", .choices = {"images", "text"}},
                inputs.kind);
  visitor.field({.name = "channels", .help = "of an image", .min = 0, .max = 3}, inputs.channels);
  visitor.field({.name = "height", .help = "of an image", .min = 0, .max = 1 << 20}, inputs.height);
  visitor.field({.name = "width", .help = "of an image", .min = 0, .max = 1 << 20}, inputs.width);
  visitor.field({.name = "mean", .help = "of each channel"}, inputs.mean);
  visitor.field({.name = "deviation", .help = "of each channel"}, inputs.deviation);
  visitor.field({.name = "classes", .help = "names of the outputs"}, inputs.classes);
  visitor.field({.name = "context", .help = "tokens in one input", .min = 0}, inputs.context);
  visitor.field({.name = "vocabulary", .help = "bytes of each token, in hexadecimal"},
                inputs.vocabulary);
}

model::Task RunInputs::task() const {
  if (kind == "text") {
    return {.kind = model::Task::Kind::kText,
            .classes = static_cast<int64_t>(vocabulary.size()),
            .context = context};
  }
  return {.channels = channels,
          .height = height,
          .width = width,
          .classes = static_cast<int64_t>(classes.size())};
}

namespace {

// One byte that begins a character of UTF-8, and those that go on with it.
bool is_character(const std::string& token) {
  const auto goes_on = [](unsigned char byte) { return (byte & 0xc0) == 0x80; };
  return !token.empty() && !goes_on(token.front()) &&
         std::all_of(token.begin() + 1, token.end(), goes_on);
}

}  // namespace

train::MetricTask RunInputs::metric_task() const {
  const int64_t outputs = task().classes;
  if (kind != "text") return {.classes = outputs, .class_names = classes};
  return {.target = train::MetricTask::Target::kTokens,
          .classes = outputs,
          .tokens_are_characters = std::all_of(
              vocabulary.begin(), vocabulary.end(),
              [](const std::string& digits) { return is_character(from_hex(digits)); })};
}

data::ImagePipeline RunInputs::pipeline() const {
  data::ImagePipeline pipeline;
  pipeline.shape = {.height = static_cast<int>(height),
                    .width = static_cast<int>(width),
                    .channels = static_cast<int>(channels)};
  pipeline.resize = true;
  pipeline.mean = mean;
  pipeline.deviation = deviation;
  return pipeline;
}

std::string to_hex(const std::string& bytes) {
  std::string digits;
  for (const unsigned char byte : bytes) digits += fmt::format("{:02x}", byte);
  return digits;
}

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2) {
    unsigned value = 0;
    const char* begin = digits.data() + i;
    const char* end = begin + std::min<size_t>(2, digits.size() - i);
    const auto [stop, error] = std::from_chars(begin, end, value, 16);
    if (error != std::errc() || stop != begin + 2) {
      throw DataError(fmt::format("'{}' is no token in hexadecimal digits", digits));
    }
    bytes += static_cast<char>(value);
  }
  return bytes;
}

}  // namespace gallop::app
