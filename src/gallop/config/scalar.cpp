#include "gallop/config/scalar.h"

#include <cmath>

#include <fmt/format.h>

#include "gallop/base/text.h"

namespace gallop::config {

namespace {

template <typename T>
std::optional<T> parse_signed(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  return parse_number<T>(text);
}

std::string without_underscores(const std::string& text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool between_digits = i > 0 && i + 1 < text.size() &&
                                std::isdigit(static_cast<unsigned char>(text[i - 1])) &&
                                std::isdigit(static_cast<unsigned char>(text[i + 1]));
    if (text[i] != '_' || !between_digits) result += text[i];
  }
  return result;
}

bool is_plain_scalar(const Node& node) { return node.kind == Node::Kind::kScalar && !node.quoted; }

}  // namespace

std::optional<bool> as_bool(const Node& node) {
  if (!is_plain_scalar(node)) return std::nullopt;
  if (node.scalar == "true") return true;
  if (node.scalar == "false") return false;
  return std::nullopt;
}

std::optional<int64_t> as_integer(const Node& node) {
  if (!is_plain_scalar(node)) return std::nullopt;
  if (auto value = parse_signed<int64_t>(without_underscores(node.scalar))) return value;
  const auto number = as_number(node);
  if (!number || *number != std::floor(*number) || std::abs(*number) > 0x1p53) return std::nullopt;
  return static_cast<int64_t>(*number);
}

std::optional<double> as_number(const Node& node) {
  if (!is_plain_scalar(node)) return std::nullopt;
  const auto value = parse_signed<double>(without_underscores(node.scalar));
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return value;
}

bool is_null(const Node& node) {
  return node.kind == Node::Kind::kNull ||
         (is_plain_scalar(node) && (node.scalar == "null" || node.scalar == "~"));
}

bool is_auto(const Node& node) { return is_plain_scalar(node) && node.scalar == "auto"; }

std::string wrong_bytes(const std::string& text) {
  if (parse_bytes(text).value_or(0) > 0) return {};
  return "must be a number of bytes, such as '25 MiB'";
}

std::string number_text(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

}  // namespace gallop::config
