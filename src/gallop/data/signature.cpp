#include "gallop/data/signature.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::data {

int64_t Signature::outputs() const {
  if (views > 1) return 0;
  if (!classes.empty()) return static_cast<int64_t>(classes.size());
  if (!targets.empty()) {
    return static_cast<int64_t>(targets.size() * std::max<size_t>(1, target_outputs.size()));
  }
  return static_cast<int64_t>(vocabulary.size());
}

void visit(config::Visitor& visitor, Signature& signature) {
  visitor.field({.name = "kind", .help = "kind of input", .choices = {"images", "text", "numbers"}},
                signature.kind);
  visitor.field({.name = "task", .help = "task"}, signature.task);
  visitor.field({.name = "channels", .help = "image channels", .min = 0, .max = 3},
                signature.channels);
  visitor.field({.name = "height", .help = "image height", .min = 0, .max = 1 << 20},
                signature.height);
  visitor.field({.name = "width", .help = "image width", .min = 0, .max = 1 << 20},
                signature.width);
  visitor.field({.name = "mean", .help = "mean of each channel or column"}, signature.mean);
  visitor.field({.name = "deviation", .help = "standard deviation of each channel or column"},
                signature.deviation);
  visitor.field({.name = "classes", .help = "names of classes or labels"}, signature.classes);
  visitor.field({.name = "blank", .help = "class that is no target of sequences", .min = 0},
                signature.blank);
  visitor.field({.name = "class_counts", .help = "training samples of each class", .min = 0},
                signature.class_counts);
  visitor.field({.name = "context", .help = "tokens of one input", .min = 0}, signature.context);
  visitor.field({.name = "unit",
                 .help = "what a token of text is",
                 .choices = {"", "characters", "bytes", "words"}},
                signature.unit);
  visitor.field({.name = "separate_texts", .help = "each sample is a separate text"},
                signature.separate_texts);
  visitor.field({.name = "padded", .help = "short texts of a batch are padded"}, signature.padded);
  visitor.field({.name = "views", .help = "texts of a sample", .min = 1}, signature.views);
  visitor.field({.name = "vocabulary", .help = "bytes of each token, in hexadecimal"},
                signature.vocabulary);
  visitor.field({.name = "mask_token", .help = "bytes of the mask token, in hexadecimal"},
                signature.mask_token);
  visitor.field({.name = "end_token", .help = "bytes of the token between texts, in hexadecimal"},
                signature.end_token);
  visitor.field({.name = "columns", .help = "names of the input columns"}, signature.columns);
  visitor.list({.name = "features", .help = "inputs that are computed from the columns"},
               signature.features);
  visitor.field({.name = "missing", .help = "texts that stand for missing values"},
                signature.missing);
  visitor.field({.name = "header",
                 .help = "whether the first line names the columns",
                 .choices = {"auto", "yes", "no"}},
                signature.header);
  visitor.field({.name = "separator", .help = "what separates fields"}, signature.separator);
  visitor.field({.name = "targets", .help = "names of the predicted numbers"}, signature.targets);
  visitor.field({.name = "label", .help = "name of the column of classes"}, signature.label);
  visitor.field({.name = "target_mean", .help = "mean of each target that is standardized"},
                signature.target_mean);
  visitor.field({.name = "target_deviation", .help = "standard deviation of each target"},
                signature.target_deviation);
  visitor.field(
      {.name = "target_outputs", .help = "names of the outputs for each predicted number"},
      signature.target_outputs);
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
      throw DataError(fmt::format("'{}' is not a token in hexadecimal digits", digits));
    }
    bytes += static_cast<char>(value);
  }
  return bytes;
}

}  // namespace gallop::data
