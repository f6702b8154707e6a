#include "gallop/model/exported/argument.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/text.h"
#include "gallop/model/exported/schema_reader.h"

namespace gallop::model::exported {

namespace {

constexpr int kMaxGraphs = 16;

// Converts each element of a list.
template <typename Convert>
auto read_list(const Json& json, const Place& place, Convert convert) {
  std::vector<decltype(convert(json))> list;
  const Json& values = to_list(json, "a list of arguments", place);
  list.reserve(values.size());
  for (const Json& value : values) list.push_back(convert(value));
  return list;
}

TensorName read_tensor(const Json& json, const Place& place) {
  return {text_member(json, "name", place)};
}

std::optional<TensorName> read_optional_tensor(const Json& json, const Place& place) {
  const auto [kind, value] = to_union(json, "an optional tensor", place);
  if (kind == "as_none") return std::nullopt;
  if (kind == "as_tensor") return read_tensor(value, place);
  place.fail(fmt::format("unknown optional tensor '{}'", printable(kind)));
}

// A name or, under `constant`, a value.
template <typename T, typename Convert>
std::variant<T, ScalarName> read_scalar(const Json& json, const char* constant, const Place& place,
                                        Convert convert) {
  const auto [kind, value] = to_union(json, "a scalar", place);
  if (kind == "as_name") return ScalarName{to_text(value, "'as_name'", place)};
  if (kind == constant) return convert(value);
  place.fail(fmt::format("unknown scalar '{}'", printable(kind)));
}

// The list as one of constants if it names no scalar of the graph.
template <typename T>
Argument simplest(Scalars<T> scalars) {
  std::vector<T> constants;
  for (const auto& scalar : scalars) {
    if (std::holds_alternative<ScalarName>(scalar)) return scalars;
    constants.push_back(std::get<T>(scalar));
  }
  return constants;
}

template <typename T>
Argument simplest(std::variant<T, ScalarName> scalar) {
  if (auto* name = std::get_if<ScalarName>(&scalar)) return std::move(*name);
  return std::get<T>(scalar);
}

template <typename T, typename Convert>
Argument read_scalars(const Json& json, const char* constant, const Place& place, Convert convert) {
  return simplest<T>(read_list(json, place, [&](const Json& value) {
    return read_scalar<T>(value, constant, place, convert);
  }));
}

c10::MemoryFormat read_memory_format(const Json& json, const Place& place) {
  const int64_t number = to_integer(json, "a memory format", place);
  switch (number) {
    case 1: return c10::MemoryFormat::Contiguous;
    case 2: return c10::MemoryFormat::ChannelsLast;
    case 3: return c10::MemoryFormat::ChannelsLast3d;
    case 4: return c10::MemoryFormat::Preserve;
    default: place.fail(fmt::format("unknown memory format {}", number));
  }
}

c10::Layout read_layout(const Json& json, const Place& place) {
  constexpr int64_t kStrided = 7;
  const int64_t number = to_integer(json, "a layout", place);
  if (number != kStrided) {
    place.fail(fmt::format("layout {} (sparse or of a library) is not supported", number));
  }
  return c10::Layout::Strided;
}

DeviceName read_device(const Json& json, const Place& place) {
  DeviceName device{.type = text_member(json, "type", place)};
  if (const Json* index = optional_member(json, "index", place)) {
    device.index = to_integer(*index, "'index'", place);
  }
  return device;
}

Argument read_subgraph(const Json& json, const Place& place, const Place& file, int depth) {
  if (depth >= kMaxGraphs) place.fail(fmt::format("over {} graphs in one another", kMaxGraphs));
  const std::string name = text_member(json, "name", place);
  Graph graph = read_graph(object_member(json, "graph", place), file, depth + 1);
  return Subgraph{.name = name, .graph = std::make_shared<const Graph>(std::move(graph))};
}

// What is meant by a kind that is not supported; null for an unknown one.
const char* unsupported(std::string_view kind) {
  if (kind == "as_custom_obj") return "an object (of a class of Python or TorchScript)";
  if (kind == "as_operator") return "an operator as an argument";
  if (kind == "as_string_to_argument") return "a dict as an argument";
  return nullptr;
}

}  // namespace

Argument read_argument(const Json& json, const Place& place, const Place& file, int depth) {
  const auto [kind, value] = to_union(json, "an argument", place);
  const auto tensor = [&](const Json& each) { return read_tensor(each, place); };
  const auto integer = [&](const Json& each) { return to_integer(each, "an integer", place); };
  const auto number = [&](const Json& each) { return to_number(each, "a number", place); };
  const auto boolean = [&](const Json& each) { return to_boolean(each, "a boolean", place); };
  const auto text = [&](const Json& each) { return to_text(each, "a text", place); };
  const auto integers = [&](const Json& each) { return read_list(each, place, integer); };
  const auto numbers = [&](const Json& each) { return read_list(each, place, number); };
  const auto tensors = [&](const Json& each) { return read_list(each, place, tensor); };

  if (kind == "as_none") return std::monostate();
  if (kind == "as_tensor") return tensor(value);
  if (kind == "as_tensors") return tensors(value);
  if (kind == "as_nested_tensors") return read_list(value, place, tensors);
  if (kind == "as_optional_tensors") {
    return read_list(value, place, [&](const Json& e) { return read_optional_tensor(e, place); });
  }
  if (kind == "as_optional_tensor") {
    const auto optional = read_optional_tensor(value, place);
    return optional ? Argument(*optional) : Argument();
  }
  if (kind == "as_int") return integer(value);
  if (kind == "as_ints") return integers(value);
  if (kind == "as_int_lists") return read_list(value, place, integers);
  if (kind == "as_float") return number(value);
  if (kind == "as_floats") return numbers(value);
  if (kind == "as_float_lists") return read_list(value, place, numbers);
  if (kind == "as_bool") return boolean(value);
  if (kind == "as_bools") return read_list(value, place, boolean);
  if (kind == "as_string") return text(value);
  if (kind == "as_strings") return read_list(value, place, text);
  if (kind == "as_complex") {
    return std::complex<double>(number(member(value, "real", place)),
                                number(member(value, "imag", place)));
  }
  if (kind == "as_sym_int") {
    return simplest(read_scalar<int64_t>(value, "as_int", place, integer));
  }
  if (kind == "as_sym_float") {
    return simplest(read_scalar<double>(value, "as_float", place, number));
  }
  if (kind == "as_sym_bool") {
    return simplest(read_scalar<bool>(value, "as_bool", place, boolean));
  }
  if (kind == "as_sym_ints") return read_scalars<int64_t>(value, "as_int", place, integer);
  if (kind == "as_sym_floats") return read_scalars<double>(value, "as_float", place, number);
  if (kind == "as_sym_bools") return read_scalars<bool>(value, "as_bool", place, boolean);
  if (kind == "as_scalar_type") return to_dtype(value, place);
  if (kind == "as_memory_format") return read_memory_format(value, place);
  if (kind == "as_layout") return read_layout(value, place);
  if (kind == "as_device") return read_device(value, place);
  if (kind == "as_graph") return read_subgraph(value, place, file, depth);
  if (const char* what = unsupported(kind)) place.fail(fmt::format("{} is not supported", what));
  place.fail(fmt::format("arguments of kind '{}' are not supported", printable(kind)));
}

void visit_names(const Argument& argument,
                 const std::function<void(const TensorName&)>& visit_tensor,
                 const std::function<void(const ScalarName&)>& visit_scalar) {
  const auto visit_scalars = [&](const auto& scalars) {
    for (const auto& scalar : scalars) {
      if (const auto* name = std::get_if<ScalarName>(&scalar)) visit_scalar(*name);
    }
  };
  if (const auto* tensor = std::get_if<TensorName>(&argument)) {
    visit_tensor(*tensor);
  } else if (const auto* scalar = std::get_if<ScalarName>(&argument)) {
    visit_scalar(*scalar);
  } else if (const auto* tensors = std::get_if<std::vector<TensorName>>(&argument)) {
    for (const TensorName& each : *tensors) visit_tensor(each);
  } else if (const auto* optionals = std::get_if<OptionalTensors>(&argument)) {
    for (const auto& each : *optionals) {
      if (each) visit_tensor(*each);
    }
  } else if (const auto* lists = std::get_if<std::vector<std::vector<TensorName>>>(&argument)) {
    for (const auto& list : *lists) {
      for (const TensorName& each : list) visit_tensor(each);
    }
  } else if (const auto* integers = std::get_if<Scalars<int64_t>>(&argument)) {
    visit_scalars(*integers);
  } else if (const auto* numbers = std::get_if<Scalars<double>>(&argument)) {
    visit_scalars(*numbers);
  } else if (const auto* booleans = std::get_if<Scalars<bool>>(&argument)) {
    visit_scalars(*booleans);
  }
}

}  // namespace gallop::model::exported
