#include "gallop/tune/wandb.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace gallop::tune {

namespace {

using config::Node;
using Json = nlohmann::ordered_json;

template <size_t kCount>
bool is_one_of(const std::array<std::string_view, kCount>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Of https://yaml.org/type/bool.html, as far as PyYAML has them.
constexpr std::array<std::string_view, 9> kTrue = {"true", "True", "TRUE", "yes", "Yes",
                                                   "YES",  "on",   "On",   "ON"};
constexpr std::array<std::string_view, 9> kFalse = {"false", "False", "FALSE", "no", "No",
                                                    "NO",    "off",   "Off",   "OFF"};
constexpr std::array<std::string_view, 4> kNull = {"~", "null", "Null", "NULL"};

void collect(const Node& parameters, const std::string& prefix, std::vector<std::string>& names) {
  for (const Node::Entry& entry : parameters.entries) {
    const Node* const inner =
        entry.value.kind == Node::Kind::kMap ? entry.value.find("parameters") : nullptr;
    if (inner == nullptr) continue;
    names.push_back(prefix + entry.key);
    collect(*inner, names.back() + ".", names);
  }
}

// repr() of a string.
std::string quoted(const std::string& text) {
  const bool has_single = text.find('\'') != std::string::npos;
  const char quote = has_single && text.find('"') == std::string::npos ? '"' : '\'';
  std::string result(1, quote);
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (letter == quote || letter == '\\') {
      result += '\\';
      result += letter;
    } else if (letter == '\n') {
      result += "\\n";
    } else if (letter == '\r') {
      result += "\\r";
    } else if (letter == '\t') {
      result += "\\t";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += letter;
    }
  }
  return result + quote;
}

std::string json_quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', /*ensure_ascii=*/true);
}

/// Python's format of values, by repr() or json.dumps().
struct Style {
  const char *none, *yes, *no;
  std::string (*quote)(const std::string&);
};
constexpr Style kRepr = {.none = "None", .yes = "True", .no = "False", .quote = quoted};
constexpr Style kJson = {.none = "null", .yes = "true", .no = "false", .quote = json_quoted};

template <typename Items, typename Text>
std::string joined(const Items& items, const Text& text) {
  std::string all;
  for (const auto& item : items) {
    if (!all.empty()) all += ", ";
    all += text(item);
  }
  return all;
}

std::string written(const Json& value, const Style& style) {
  if (value.is_null()) return style.none;
  if (value.is_boolean()) return value.get<bool>() ? style.yes : style.no;
  if (value.is_string()) return style.quote(value.get<std::string>());
  if (value.is_number_float()) {
    const std::string text = fmt::format("{}", value.get<double>());
    return text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  }
  if (value.is_array()) {
    return "[" + joined(value, [&](const Json& item) { return written(item, style); }) + "]";
  }
  if (value.is_object()) {
    const auto entry = [&](const auto& item) {
      return style.quote(item.key()) + ": " + written(item.value(), style);
    };
    return "{" + joined(value.items(), entry) + "}";
  }
  return value.dump();
}

// The first dot after `from` that ends the name of a nested map.
size_t end_of_map(const std::string& name, size_t from, const std::vector<std::string>& nested) {
  size_t dot = name.find('.', from);
  while (dot != std::string::npos &&
         std::find(nested.begin(), nested.end(), name.substr(0, dot)) == nested.end()) {
    dot = name.find('.', dot + 1);
  }
  return dot;
}

}  // namespace

void read_as_yaml_1_1(Node& node) {
  for (Node& item : node.items) read_as_yaml_1_1(item);
  for (Node::Entry& entry : node.entries) read_as_yaml_1_1(entry.value);
  if (node.kind != Node::Kind::kScalar || node.quoted) return;
  if (is_one_of(kTrue, node.scalar)) node.scalar = "true";
  if (is_one_of(kFalse, node.scalar)) node.scalar = "false";
  if (!is_one_of(kNull, node.scalar)) return;
  node.kind = Node::Kind::kNull;
  node.scalar.clear();
}

std::vector<std::string> nested_parameters(const Node& parameters) {
  std::vector<std::string> names;
  collect(parameters, "", names);
  return names;
}

Json nested_values(const Space& space, const Point& point, const std::vector<std::string>& nested) {
  Json values = Json::object();
  for (size_t i = 0; i < space.size(); ++i) {
    if (std::isnan(point[i])) continue;
    const std::string& name = space[i].name;
    Json* map = &values;
    size_t begin = 0;
    for (size_t dot = end_of_map(name, 0, nested); dot != std::string::npos;
         dot = end_of_map(name, begin, nested)) {
      map = &(*map)[name.substr(begin, dot - begin)];
      begin = dot + 1;
    }
    (*map)[name.substr(begin)] = Json::parse(space.value_text(i, point[i]));
  }
  return values;
}

std::string python_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : written(value, kRepr);
}

std::string python_json(const Json& value) { return written(value, kJson); }

}  // namespace gallop::tune
