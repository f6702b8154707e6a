#include "gallop/tensor/safetensors_header.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <unordered_set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/checked.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop {

namespace {

constexpr int64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kMaxDimensions = 64;
constexpr size_t kMaxNameBytes = 4096;
constexpr std::string_view kMetadataKey = "__metadata__";

// Validates a name; empty if it is valid.
std::string name_problem(std::string_view name) {
  if (name.size() > kMaxNameBytes) {
    return fmt::format("has a name of {} bytes, where {} are allowed", name.size(), kMaxNameBytes);
  }
  const bool control = std::any_of(name.begin(), name.end(), [](char letter) {
    return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
  });
  return control ? "has a control character in its name" : "";
}

// A SAX parser that builds entries with offsets relative to the data. nlohmann's objects would
// silently keep one of two equal keys.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader header;
  std::string problem;

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return unexpected("a number with a fraction or exponent");
  }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ != Place::kShape && place_ != Place::kOffsets) return unexpected("a number");
    const auto size = checked_cast<int64_t>(value);
    if (!size) return fail(fmt::format("{} is too large", value));
    if (place_ == Place::kShape) {
      if (entry_.shape.size() == kMaxDimensions) {
        return fail(fmt::format("more than {} dimensions", kMaxDimensions));
      }
      entry_.shape.push_back(*size);
    } else {
      if (offsets_.size() == 2) return fail("data_offsets must hold two numbers");
      offsets_.push_back(*size);
    }
    return true;
  }

  bool string(string_t& value) override {
    if (place_ == Place::kMetadataValue) {
      header.metadata[key_] = value;
      place_ = Place::kMetadata;
      return true;
    }
    if (place_ != Place::kDtype) return unexpected("text");
    if (safetensors_bits(value) == 0) {
      return fail(fmt::format("unknown dtype '{}'", printable(value)));
    }
    entry_.dtype = value;
    place_ = Place::kTensor;
    return true;
  }

  bool start_object(std::size_t) override {
    switch (place_) {
      case Place::kStart: place_ = Place::kTop; return true;
      case Place::kMetadataStart: place_ = Place::kMetadata; return true;
      case Place::kTensorStart: place_ = Place::kTensor; return true;
      default: return unexpected("an object");
    }
  }

  bool key(string_t& value) override {
    key_ = value;
    if (place_ == Place::kTop) return start_member();
    if (place_ == Place::kMetadata) {
      place_ = Place::kMetadataValue;
      return !header.metadata.contains(value) || duplicate();
    }
    if (!fields_.insert(value).second) return duplicate();
    if (value == "dtype") {
      place_ = Place::kDtype;
    } else if (value == "shape") {
      place_ = Place::kShapeStart;
    } else if (value == "data_offsets") {
      place_ = Place::kOffsetsStart;
    } else {
      return fail(fmt::format("unknown key '{}'", printable(value)));
    }
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor && !finish_tensor()) return false;
    place_ = place_ == Place::kTop ? Place::kEnd : Place::kTop;
    return true;
  }

  bool start_array(std::size_t) override {
    switch (place_) {
      case Place::kShapeStart: place_ = Place::kShape; return true;
      case Place::kOffsetsStart: place_ = Place::kOffsets; return true;
      default: return unexpected("a list");
    }
  }

  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    where_.clear();
    return fail(fmt::format("the header is not JSON in UTF-8 (near its byte {})", position));
  }

 private:
  // Where in the header the next event belongs.
  enum class Place {
    kStart,
    kTop,
    kMetadataStart,
    kMetadata,
    kMetadataValue,
    kTensorStart,
    kTensor,
    kDtype,
    kShapeStart,
    kShape,
    kOffsetsStart,
    kOffsets,
    kEnd,
  };

  bool fail(const std::string& message) {
    problem = where_ + message;
    return false;
  }
  bool unexpected(const char* what) { return fail(fmt::format("{} is out of place", what)); }
  bool duplicate() { return fail(fmt::format("key '{}' is given twice", printable(key_))); }

  bool start_member() {
    where_.clear();
    if (!names_.insert(key_).second) return duplicate();
    where_ = fmt::format("tensor '{}': ", printable(key_));
    if (key_ == kMetadataKey) {
      where_ = "__metadata__: ";
      place_ = Place::kMetadataStart;
      return true;
    }
    if (const std::string wrong = name_problem(key_); !wrong.empty()) {
      where_.clear();
      return fail("a tensor " + wrong);
    }
    place_ = Place::kTensorStart;
    entry_ = {.name = key_};
    offsets_.clear();
    fields_.clear();
    return true;
  }

  bool finish_tensor() {
    for (const char* field : {"dtype", "shape", "data_offsets"}) {
      if (!fields_.contains(field)) return fail(fmt::format("{} is missing", field));
    }
    if (offsets_.size() != 2) return fail("data_offsets must hold two numbers");
    if (offsets_[1] < offsets_[0]) return fail("its data end before they begin");
    entry_.begin = offsets_[0];
    entry_.bytes = offsets_[1] - offsets_[0];
    header.entries.push_back(std::move(entry_));
    return true;
  }

  Place place_ = Place::kStart;
  std::string where_;
  std::string key_;
  SafetensorsEntry entry_;
  std::vector<int64_t> offsets_;
  std::set<std::string> fields_;
  std::unordered_set<std::string> names_;
};

// The size of a tensor in bytes by its shape and type; empty on overflow or for a fractional number
// of bytes. Dimensions of 0 do not hide an overflow of the others, as strides are products as well.
std::optional<int64_t> bytes_of(const SafetensorsEntry& entry) {
  std::vector<int64_t> at_least_1 = entry.shape;
  for (int64_t& size : at_least_1) size = std::max<int64_t>(size, 1);
  const auto largest = checked_product(at_least_1);
  if (!largest || !checked_multiply(*largest, safetensors_bits(entry.dtype))) return std::nullopt;
  const int64_t bits = *checked_product(entry.shape) * safetensors_bits(entry.dtype);
  if (bits % 8 != 0) return std::nullopt;
  return bits / 8;
}

// Checks sizes and order against the file, and makes offsets relative to its start.
std::string place_entries(std::vector<SafetensorsEntry>& entries, int64_t data_begin,
                          int64_t file_bytes) {
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.begin, a.bytes, a.name) < std::tie(b.begin, b.bytes, b.name);
  });
  const int64_t data_bytes = file_bytes - data_begin;
  int64_t end = 0;
  for (SafetensorsEntry& entry : entries) {
    const auto where = fmt::format("tensor '{}': ", printable(entry.name));
    if (entry.begin != end) return where + "its data leave a gap or overlap others";
    const auto expected = bytes_of(entry);
    if (!expected) return where + "its shape is too large for its type";
    if (*expected != entry.bytes) {
      return where + fmt::format("{} bytes of data, but shape and dtype require {}", entry.bytes,
                                 *expected);
    }
    if (entry.bytes > data_bytes - end) return where + "its data go beyond the end of the file";
    end += entry.bytes;
    entry.begin += data_begin;
  }
  if (end != data_bytes) {
    return fmt::format("{} unused bytes after the last tensor", data_bytes - end);
  }
  return "";
}

std::string parse(std::string_view file, SafetensorsHeader& header) {
  if (file.size() < kLengthBytes) return "the file ends within its first 8 bytes";
  uint64_t length = 0;
  for (int i = kLengthBytes - 1; i >= 0; --i) {
    length = length << 8 | static_cast<unsigned char>(file[static_cast<size_t>(i)]);
  }
  if (length > kMaxHeaderBytes) {
    return fmt::format("a header of {} bytes, where at most {} are allowed", length,
                       kMaxHeaderBytes);
  }
  if (length > file.size() - kLengthBytes) return "the file ends within its header";
  const std::string_view text = file.substr(kLengthBytes, length);
  if (text.empty() || text.front() != '{') return "the header does not begin with '{'";
  const size_t last = text.find_last_not_of(' ');
  if (text[last] != '}') return "the header does not end with '}' and spaces";

  HeaderReader reader;
  if (!nlohmann::json::sax_parse(text, &reader)) return reader.problem;
  header = std::move(reader.header);
  return place_entries(header.entries, kLengthBytes + static_cast<int64_t>(length),
                       static_cast<int64_t>(file.size()));
}

}  // namespace

int64_t safetensors_bits(std::string_view dtype) {
  struct Type {
    std::string_view name;
    int64_t bits;
  };
  static constexpr std::array<Type, 22> kTypes = {{
      {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
      {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
      {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
      {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
      {"I64", 64},        {"U64", 64},
  }};
  for (const Type& type : kTypes) {
    if (type.name == dtype) return type.bits;
  }
  return 0;
}

SafetensorsHeader parse_safetensors_header(std::string_view file, const std::string& file_name) {
  SafetensorsHeader header;
  if (const std::string problem = parse(file, header); !problem.empty()) {
    throw DataError(
        fmt::format("{}: not a valid safetensors file: {}", printable(file_name), problem));
  }
  return header;
}

std::string format_safetensors_header(SafetensorsHeader& header) {
  auto json = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) json[kMetadataKey] = header.metadata;
  int64_t end = 0;
  for (SafetensorsEntry& entry : header.entries) {
    std::string wrong = name_problem(entry.name);
    if (entry.name == kMetadataKey || json.contains(entry.name)) wrong = "has a name that is taken";
    if (entry.shape.size() > kMaxDimensions) wrong = "has too many dimensions";
    const auto bytes = bytes_of(entry);
    if (!bytes) wrong = "has a shape too large for its type";
    const auto next = checked_add(end, bytes.value_or(0));
    if (!next) wrong = "does not fit into one file";
    if (!wrong.empty()) {
      throw UsageError(
          fmt::format("a safetensors file cannot store '{}': it {}", printable(entry.name), wrong));
    }
    json[entry.name] = {
        {"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {end, *next}}};
    entry.begin = end;
    entry.bytes = *bytes;
    end = *next;
  }
  std::string text;
  try {
    text = json.dump();
  } catch (const nlohmann::json::exception&) {
    throw UsageError("names and metadata in a safetensors file must be UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kMaxHeaderBytes) {
    throw UsageError(fmt::format("a safetensors header of {} bytes; at most {} are allowed",
                                 text.size(), kMaxHeaderBytes));
  }
  std::string length(kLengthBytes, '\0');
  for (size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(text.size() >> (8 * i));
  for (SafetensorsEntry& entry : header.entries) {
    entry.begin += kLengthBytes + static_cast<int64_t>(text.size());
  }
  return length + text;
}

}  // namespace gallop
