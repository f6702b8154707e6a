#include "gallop/data/npy.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "gallop/base/checked.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::data {

namespace {

using namespace std::string_view_literals;
using Dtype = c10::ScalarType;

uint32_t little_endian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = bytes.size(); i > 0; --i) value = value << 8 | static_cast<uint8_t>(bytes[i - 1]);
  return value;
}

Dtype dtype_of(const std::string& text) {
  static const std::map<std::string, Dtype, std::less<>> kDtypes = {
      {"b1", Dtype::Bool}, {"u1", Dtype::Byte},  {"i1", Dtype::Char},   {"i2", Dtype::Short},
      {"i4", Dtype::Int},  {"i8", Dtype::Long},  {"u2", Dtype::UInt16}, {"u4", Dtype::UInt32},
      {"f2", Dtype::Half}, {"f4", Dtype::Float}, {"f8", Dtype::Double},
  };
  if (text.starts_with('>')) {
    throw DataError(
        fmt::format("the array is big-endian ('{}'); convert it: "
                    "numpy.save(file, array.astype(array.dtype.newbyteorder('<')))",
                    printable(text)));
  }
  const auto found = kDtypes.find(text.empty() ? text : text.substr(1));
  if (found != kDtypes.end()) return found->second;
  throw DataError(fmt::format(
      "the array's dtype '{}' is none of bool, int8 to int64, uint8 to uint32 and float16 to "
      "float64",
      printable(text)));
}

/// Reads the header: a dictionary of Python.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : rest_(text) {}

  void parse() {
    take('{');
    while (!is_next('}')) {
      const std::string key = take_string();
      take(':');
      if (key == "descr") {
        if (!is_next('\'')) throw DataError("the array has records, not numbers");
        descr = take_string();
      } else if (key == "fortran_order") {
        fortran_order = take_word() == "True";
      } else if (key == "shape") {
        take_shape();
      } else {
        fail();
      }
      if (!is_next('}')) take(',');
    }
    if (!descr || !fortran_order || !sizes) fail();
  }

  std::optional<std::string> descr;
  std::optional<bool> fortran_order;
  std::optional<std::vector<int64_t>> sizes;

 private:
  [[noreturn]] static void fail() { throw DataError("damaged .npy: its header is invalid"); }
  void skip_blanks() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  bool is_next(char c) {
    skip_blanks();
    return !rest_.empty() && rest_.front() == c;
  }
  void take(char c) {
    if (!is_next(c)) fail();
    rest_.remove_prefix(1);
  }
  std::string take_string() {
    take('\'');
    const size_t end = rest_.find('\'');
    if (end == std::string_view::npos) fail();
    std::string text(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return text;
  }
  std::string_view take_word() {
    skip_blanks();
    size_t end = 0;
    while (end < rest_.size() && ",}() "sv.find(rest_[end]) == std::string_view::npos) ++end;
    const std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }
  void take_shape() {
    sizes.emplace();
    take('(');
    while (!is_next(')')) {
      const auto size = parse_number<int64_t>(take_word());
      if (!size || *size < 0) fail();
      sizes->push_back(*size);
      if (!is_next(')')) take(',');
    }
    take(')');
  }

  std::string_view rest_;
};

}  // namespace

size_t NpyArray::row_bytes() const {
  return std::accumulate(
      sizes.begin() + 1, sizes.end(), c10::elementSize(dtype),
      [](size_t bytes, int64_t size) { return bytes * static_cast<size_t>(size); });
}

NpyArray parse_npy(std::string_view file) {
  constexpr size_t kStart = 8;
  if (!file.starts_with("\x93NUMPY"sv)) throw DataError("is not an .npy file");
  if (file.size() < kStart + 4) throw DataError("damaged .npy: the file ends in its header");
  const int version = static_cast<uint8_t>(file[6]);
  if (version < 1 || version > 3) {
    throw DataError(fmt::format("version {} of .npy is not known", version));
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  const size_t begin = kStart + length_bytes;
  const size_t length = little_endian(file.substr(kStart, length_bytes));
  if (length > file.size() - begin) throw DataError("damaged .npy: the file ends in its header");
  HeaderParser header(file.substr(begin, length));
  header.parse();
  NpyArray array{.dtype = dtype_of(*header.descr),
                 .sizes = *header.sizes,
                 .values = file.substr(begin + length)};
  if (*header.fortran_order && array.sizes.size() > 1) {
    throw DataError("the array is in Fortran order; save numpy.ascontiguousarray(array)");
  }
  const auto elements = checked_product(array.sizes);
  const auto bytes =
      elements ? checked_multiply(*elements, static_cast<int64_t>(c10::elementSize(array.dtype)))
               : std::nullopt;
  if (!bytes || *bytes > static_cast<int64_t>(array.values.size())) {
    throw DataError(fmt::format("damaged .npy: {} bytes of values are too few for its shape",
                                array.values.size()));
  }
  array.values = array.values.substr(0, static_cast<size_t>(*bytes));
  return array;
}

}  // namespace gallop::data
