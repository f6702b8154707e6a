#include "gallop/tune/wandb.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <regex>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "gallop/base/text.h"

namespace gallop::tune {

namespace {

using config::Node;
using Json = nlohmann::ordered_json;

template <size_t kCount>
bool is_one_of(const std::array<std::string_view, kCount>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Longer texts are not matched with the patterns of numbers, which recurse for each letter.
constexpr size_t kLongestNumber = 400;

// The values of https://yaml.org/type/bool.html, as far as PyYAML has them.
constexpr std::array<std::string_view, 9> kTrue = {"true", "True", "TRUE", "yes", "Yes",
                                                   "YES",  "on",   "On",   "ON"};
constexpr std::array<std::string_view, 9> kFalse = {"false", "False", "FALSE", "no", "No",
                                                    "NO",    "off",   "Off",   "OFF"};
constexpr std::array<std::string_view, 4> kNull = {"~", "null", "Null", "NULL"};

std::vector<std::string> split(const std::string& text, char mark) {
  std::vector<std::string> parts(1);
  for (const char letter : text) {
    if (letter == mark) {
      parts.emplace_back();
    } else {
      parts.back() += letter;
    }
  }
  return parts;
}

// The value of base-60 digits, "1:30", added in the order of PyYAML.
template <typename T>
std::optional<T> value_in_base_60(const std::string& digits) {
  T sum = 0, factor = 1;
  const std::vector<std::string> parts = split(digits, ':');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    const auto value = parse_number<T>(*part);
    if (!value || factor > 60 * 60 * 60) return std::nullopt;
    sum += *value * factor;
    factor *= 60;
  }
  return sum;
}

std::optional<int64_t> integer_of(const std::string& digits) {
  if (digits.find(':') != std::string::npos) return value_in_base_60<int64_t>(digits);
  const int base = digits.starts_with("0b")   ? 2
                   : digits.starts_with("0x") ? 16
                   : digits.starts_with('0')  ? 8
                                              : 10;
  const char* const begin = digits.data() + (base == 2 || base == 16 ? 2 : 0);
  const char* const end = digits.data() + digits.size();
  int64_t value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value, base);
  return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

// A number by PyYAML's rules, which differ from YAML 1.1: fractions have digits before the point
// if they have a sign, and exponents have a point and a sign. Without a value for other texts, and
// for integers beyond 64 bits.
Json number_of(std::string text) {
  static const std::regex kInteger(
      "[-+]?(0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*(:[0-5]?[0-9])*)");
  static const std::regex kFraction(
      "[-+]?[0-9][0-9_]*(\\.[0-9_]*([eE][-+][0-9]+)?|(:[0-5]?[0-9])+\\.[0-9_]*)"
      "|\\.[0-9][0-9_]*([eE][-+][0-9]+)?");
  if (text.size() > kLongestNumber) return {};
  const bool is_integer = std::regex_match(text, kInteger);
  if (!is_integer && !std::regex_match(text, kFraction)) return {};
  std::erase(text, '_');
  const bool is_negative = text.starts_with('-');
  if (is_negative || text.starts_with('+')) text.erase(0, 1);
  if (is_integer) {
    const auto value = integer_of(text);
    return value ? Json(is_negative ? -*value : *value) : Json();
  }
  const auto value = text.find(':') != std::string::npos ? value_in_base_60<double>(text)
                                                         : parse_number<double>(text);
  return value ? Json(is_negative ? -*value : *value) : Json();
}

// JSON has no infinity and no NaN: they are the texts that Python prints.
std::optional<std::string> odd_number(const std::string& text) {
  static constexpr std::array<std::string_view, 3> kInfinity = {".inf", ".Inf", ".INF"};
  static constexpr std::array<std::string_view, 3> kNan = {".nan", ".NaN", ".NAN"};
  if (is_one_of(kNan, text)) return "nan";
  const bool is_signed = text.starts_with('-') || text.starts_with('+');
  if (!is_one_of(kInfinity, std::string_view(text).substr(is_signed ? 1 : 0))) return std::nullopt;
  return text[0] == '-' ? "-inf" : "inf";
}

Json value_of_scalar(const Node& node) {
  const std::string& text = node.scalar;
  if (node.quoted) return text;
  if (is_one_of(kTrue, text)) return true;
  if (is_one_of(kFalse, text)) return false;
  if (is_one_of(kNull, text)) return nullptr;
  if (const auto odd = odd_number(text)) return *odd;
  const Json number = number_of(text);
  return number.is_null() ? Json(text) : number;
}

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

template <typename ValueOf>
Json nested_by(const Space& space, const Point& point, const std::vector<std::string>& nested,
               const ValueOf& value_of) {
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
    (*map)[name.substr(begin)] = value_of(space, i, point[i]);
  }
  return values;
}

// The shortest text with a point, 1.0e+16, which is a number in YAML 1.1, too.
std::string with_point(double number) {
  std::string text = fmt::format("{}", number);
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

}  // namespace

Json yaml_1_1_value(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull: return nullptr;
    case Node::Kind::kScalar: return value_of_scalar(node);
    case Node::Kind::kList: {
      Json list = Json::array();
      for (const Node& item : node.items) list.push_back(yaml_1_1_value(item));
      return list;
    }
    case Node::Kind::kMap: {
      Json map = Json::object();
      for (const Node::Entry& entry : node.entries) map[entry.key] = yaml_1_1_value(entry.value);
      return map;
    }
  }
  return nullptr;
}

void read_as_yaml_1_1(Node& node) {
  for (Node& item : node.items) read_as_yaml_1_1(item);
  for (Node::Entry& entry : node.entries) read_as_yaml_1_1(entry.value);
  if (node.kind != Node::Kind::kScalar) return;
  const Json value = value_of_scalar(node);
  if (value.is_boolean() || value.is_number_integer()) node.scalar = value.dump();
  if (value.is_number_float()) node.scalar = with_point(value.get<double>());
}

std::vector<std::string> nested_parameters(const Node& parameters) {
  std::vector<std::string> names;
  collect(parameters, "", names);
  return names;
}

Json nested_values(const Space& space, const Point& point, const std::vector<std::string>& nested) {
  return nested_by(space, point, nested, [](const Space& of, size_t index, double value) {
    return Json::parse(of.value_text(index, value));
  });
}

Json python_values(const Space& space, const Point& point, const std::vector<std::string>& nested) {
  return nested_by(space, point, nested, python_value);
}

Json python_value(const Space& space, size_t index, double value) {
  const Interval* const interval = space[index].interval();
  const bool is_float = interval != nullptr && !interval->integer && !std::isnan(value);
  return is_float ? Json(value) : Json::parse(space.value_text(index, value));
}

std::string python_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : written(value, kRepr);
}

std::string python_json(const Json& value) { return written(value, kJson); }

}  // namespace gallop::tune
