#include "gallop/model/exported/tensor_meta.h"

#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/text.h"
#include "gallop/model/exported/schema_reader.h"

namespace gallop::model::exported {

namespace {

constexpr size_t kMaxDimensions = 64;
constexpr int64_t kStrided = 7;

struct TypePair {
  int64_t number;
  c10::ScalarType type;
};

constexpr std::array<TypePair, 21> kTypes = {{
    {1, c10::ScalarType::Byte},
    {2, c10::ScalarType::Char},
    {3, c10::ScalarType::Short},
    {4, c10::ScalarType::Int},
    {5, c10::ScalarType::Long},
    {6, c10::ScalarType::Half},
    {7, c10::ScalarType::Float},
    {8, c10::ScalarType::Double},
    {9, c10::ScalarType::ComplexHalf},
    {10, c10::ScalarType::ComplexFloat},
    {11, c10::ScalarType::ComplexDouble},
    {12, c10::ScalarType::Bool},
    {13, c10::ScalarType::BFloat16},
    {28, c10::ScalarType::UInt16},
    {29, c10::ScalarType::Float8_e4m3fn},
    {30, c10::ScalarType::Float8_e5m2},
    {31, c10::ScalarType::Float8_e4m3fnuz},
    {32, c10::ScalarType::Float8_e5m2fnuz},
    {33, c10::ScalarType::Float8_e8m0fnu},
    {34, c10::ScalarType::UInt32},
    {35, c10::ScalarType::UInt64},
}};

std::vector<Size> read_sizes(const Json& json, const char* key, const Place& place) {
  const Json& list = list_member(json, key, place);
  if (list.size() > kMaxDimensions) {
    place.fail(fmt::format("{} dimensions, where {} are allowed", list.size(), kMaxDimensions));
  }
  std::vector<Size> sizes;
  sizes.reserve(list.size());
  for (const Json& size : list) sizes.push_back(read_size(size, place));
  return sizes;
}

// A symbol as its name; anything else is empty.
std::string symbol_of(const std::string& formula) {
  const bool is_name = formula.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyz"
                           "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == std::string::npos;
  const bool is_number = formula.find_first_not_of("0123456789") == std::string::npos;
  return is_name && !is_number ? formula : "";
}

}  // namespace

c10::ScalarType to_dtype(const Json& value, const Place& place) {
  const int64_t number = to_integer(value, "a dtype", place);
  for (const TypePair& pair : kTypes) {
    if (pair.number == number) return pair.type;
  }
  place.fail(fmt::format("dtype {} is not supported", number));
}

Size read_size(const Json& json, const Place& place) {
  const auto [kind, value] = to_union(json, "a size", place);
  if (kind == "as_int") {
    return {.hint = to_integer(value, "a size", place), .expression = "", .symbol = ""};
  }
  if (kind != "as_expr") place.fail(fmt::format("unknown size '{}'", printable(kind)));
  Size size;
  size.expression = sympy_formula(text_member(value, "expr_str", place));
  size.symbol = symbol_of(size.expression);
  if (const Json* hint = optional_member(value, "hint", place)) {
    const auto [type, number] = to_union(*hint, "a hint", place);
    if (type == "as_int") size.hint = to_integer(number, "a hint", place);
  }
  if (size.expression.empty()) place.fail("a size has an empty expression");
  return size;
}

TensorMeta read_tensor_meta(const Json& json, const Place& place) {
  TensorMeta meta;
  meta.dtype = to_dtype(member(json, "dtype", place), place);
  meta.sizes = read_sizes(json, "sizes", place);
  meta.strides = read_sizes(json, "strides", place);
  if (meta.sizes.size() != meta.strides.size()) {
    place.fail(fmt::format("{} sizes, but {} strides", meta.sizes.size(), meta.strides.size()));
  }
  meta.storage_offset = read_size(member(json, "storage_offset", place), place);
  meta.requires_grad = boolean_member(json, "requires_grad", place);
  if (integer_member(json, "layout", place) != kStrided) {
    place.fail("a sparse or quantized tensor, which is not supported; export dense tensors");
  }
  return meta;
}

}  // namespace gallop::model::exported
